//! What a Qdrant server says is wrong, as what a collection cannot do.

use qdrant_client::QdrantError;

use crate::collection::CollectionError;

/// Codes of gRPC.
const CANCELLED: i32 = 1;
const UNKNOWN: i32 = 2;
const DEADLINE_EXCEEDED: i32 = 4;
const NOT_FOUND: i32 = 5;
const PERMISSION_DENIED: i32 = 7;
const RESOURCE_EXHAUSTED: i32 = 8;
const INTERNAL: i32 = 13;
const UNAVAILABLE: i32 = 14;
const UNAUTHENTICATED: i32 = 16;

/// What is wrong, in the words of the server. They name collections and hosts, so they belong into a log.
pub(super) fn of(error: &QdrantError) -> CollectionError {
    match error {
        QdrantError::ResponseError { status }
        | QdrantError::ResourceExhaustedError { status, .. } => {
            said(i32::from(status.code()), status.message())
        }
        other => CollectionError::Database { problem: other.to_string() },
    }
}

fn said(code: i32, message: &str) -> CollectionError {
    let problem = format!("{message} (gRPC code {code})");
    match code {
        UNAVAILABLE => CollectionError::Unreachable { problem },
        CANCELLED | DEADLINE_EXCEEDED | RESOURCE_EXHAUSTED => CollectionError::Slow { problem },
        // The client's own, where no connection can be made or one is lost.
        INTERNAL if message.starts_with("Failed to connect") || message.contains("h2 protocol") => {
            CollectionError::Unreachable { problem }
        }
        UNKNOWN if message.contains("transport") || message.contains("h2 protocol") => {
            CollectionError::Unreachable { problem }
        }
        NOT_FOUND => CollectionError::Unknown,
        INTERNAL if is_full(message) => CollectionError::Unwritable { problem },
        PERMISSION_DENIED | UNAUTHENTICATED => CollectionError::NotSetUp {
            problem: format!("the Qdrant server does not take the key: {problem}"),
        },
        _ => CollectionError::Database { problem },
    }
}

/// Whether the disk or the memory of the server is full.
fn is_full(message: &str) -> bool {
    let said = message.to_ascii_lowercase();
    ["no space left", "out of disk", "not enough space", "out of memory"]
        .iter()
        .any(|full| said.contains(full))
}

#[cfg(test)]
mod tests {
    use crate::collection::CollectionError;
    use crate::collection::qdrant::problem::said;

    #[test]
    fn what_may_pass_is_told_from_what_stays() {
        let is_lost =
            |code, message| matches!(said(code, message), CollectionError::Unreachable { .. });
        assert!(is_lost(13, "Failed to connect to http://127.0.0.1:1/: transport error"));
        assert!(is_lost(14, "Service is shutting down"));
        assert!(is_lost(2, "transport error"));
        assert!(!is_lost(13, "Service internal error: no point"));
        assert!(matches!(said(4, "Timeout expired"), CollectionError::Slow { .. }));
        assert!(matches!(said(5, "Collection `x` doesn't exist!"), CollectionError::Unknown));
        assert!(matches!(
            said(13, "Service internal error: No space left on device"),
            CollectionError::Unwritable { .. }
        ));
        assert!(matches!(said(16, "Must provide an API key"), CollectionError::NotSetUp { .. }));
        assert!(matches!(said(3, "Wrong input"), CollectionError::Database { .. }));
    }
}
