//! How each route is answered: which threads it computes on, what it pays for, what its memory is charged
//! to. What computes or allocates by the size of a request or of a collection has no other way.

use axum::response::Response;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A unit an item, and before that by the bytes of the body; computed where it was read or on the pool,
    /// in parts that look at the deadline. The answer is charged before it is computed.
    Question,
    /// One unit, held until the answer is written; on the pool, until the deadline. Those with a body pay for
    /// it and write in a turn first.
    Listing,
    /// No unit: one look in memory, on threads that wait for nothing, or in a database.
    Look,
    /// Units by the bytes of the body, and one where many items may be looked at; in its turn, on threads that
    /// wait for a disk. Taking out one item, or a collection, takes none.
    Write,
    /// A place among streams. Each chunk is a question, and its answers are charged or on a disk.
    Stream,
    /// Nothing: it takes the same whatever is asked, or is an order of the operator.
    Fixed,
}

impl Way {
    /// Notes for tests that an answer came this way.
    pub(crate) fn mark(self, response: &mut Response) {
        if cfg!(debug_assertions) {
            response.extensions_mut().insert(self);
        }
    }
}

/// Every route of the document, with the bodies of lines that some take as well.
pub const WAYS: [(Way, &[&str]); 6] = [
    (
        Way::Question,
        &[
            "GET /collections/{name}/items/{id}/similar",
            "POST /",
            "POST /api/embed",
            "POST /api/embeddings",
            "POST /collections/{name}/match",
            "POST /embed",
            "POST /explain",
            "POST /m/{model}/{method}/embed",
            "POST /m/{model}/{method}/similarity",
            "POST /rank",
            "POST /rerank",
            "POST /score",
            "POST /similarity",
            "POST /v1/embeddings",
            "POST /v2/rerank",
            "POST /vectors",
        ],
    ),
    (
        Way::Listing,
        &[
            "GET /collections/{name}/events",
            "GET /collections/{name}/events/{id}",
            "GET /collections/{name}/events/{id}/similar",
            "GET /collections/{name}/facets",
            "GET /collections/{name}/items",
            "POST /collections/{name}/events/{id}/merge",
            "POST /collections/{name}/events/{id}/split",
        ],
    ),
    (
        Way::Look,
        &["GET /collections", "GET /collections/{name}", "GET /collections/{name}/items/{id}"],
    ),
    (
        Way::Write,
        &[
            "DELETE /collections/{name}",
            "DELETE /collections/{name}/events/{id}",
            "DELETE /collections/{name}/items",
            "DELETE /collections/{name}/items/{id}",
            "PATCH /collections/{name}/items/{id}",
            "POST /collections/{name}/items",
            "PUT /collections/{name}",
            "PUT /collections/{name}/items/{id}",
        ],
    ),
    (
        Way::Stream,
        &[
            "GET /collections/{name}/events/stream",
            "PATCH /collections/{name}/items as lines",
            "POST /collections/{name}/items as lines",
            "POST /collections/{name}/match as lines",
            "POST /embed as lines",
            "POST /rank as lines",
            "POST /similarity as lines",
        ],
    ),
    (
        Way::Fixed,
        &[
            "GET /",
            "GET /api/tags",
            "GET /api/version",
            "GET /health",
            "GET /info",
            "GET /meta",
            "GET /methods",
            "GET /metrics",
            "GET /models",
            "GET /ready",
            "GET /v1/models",
            "GET /v1/models/{id}",
            "POST /-/reload",
            "POST /api/show",
        ],
    ),
];
