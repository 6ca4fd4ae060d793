//! How each route is answered: the threads it computes on, its units, and the memory it is charged
//! for. Work or memory that grows with a request or a collection is allowed in these ways only.

use axum::response::Response;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A unit for each item, and units for the bytes of the body before that; computed on the runtime or on
    /// the pool, in parts that check the deadline. The answer is charged before it is computed.
    Question,
    /// One unit until the answer is written; on the pool, until the deadline. A request with a body
    /// first pays units for its bytes and waits for its turn to write.
    Listing,
    /// No unit: one lookup in memory, on threads that never wait, or in a database.
    Look,
    /// Units by the bytes of the body, and one where many items may be searched; in its turn, on
    /// threads that wait for a disk. Deleting one item, or a collection, takes none.
    Write,
    /// A slot for streams. Each chunk is a question, whose answers are charged or lie on a disk.
    Stream,
    /// Nothing: every request costs the same, or it is an order of the operator.
    Fixed,
}

impl Way {
    /// Records for tests that an answer came this way.
    pub(crate) fn mark(self, response: &mut Response) {
        if cfg!(debug_assertions) {
            response.extensions_mut().insert(self);
        }
    }
}

/// Every route of the document; routes that also take bodies of lines are listed for both.
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
            "POST /-/backup",
            "POST /-/reload",
            "POST /api/show",
        ],
    ),
];
