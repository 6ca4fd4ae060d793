//! What a database says is wrong, as what a collection cannot do.

use postgres::Error;
use postgres::error::SqlState;

use crate::CollectionError;

/// Whether the same may succeed when it is asked again.
pub(super) fn is_passing(error: &Error) -> bool {
    match error.code() {
        Some(code) => {
            *code == SqlState::T_R_SERIALIZATION_FAILURE
                || *code == SqlState::T_R_DEADLOCK_DETECTED
                || is_ending(code)
        }
        None => is_lost(error),
    }
}

/// Whether the connection is lost, with whatever was on its way.
pub(super) fn is_lost(error: &Error) -> bool {
    error.code().is_some_and(is_ending) || (error.as_db_error().is_none() && !is_ours(error))
}

/// Whether the server is about to end, or not ready yet.
fn is_ending(code: &SqlState) -> bool {
    code.code().starts_with("08")
        || *code == SqlState::ADMIN_SHUTDOWN
        || *code == SqlState::CRASH_SHUTDOWN
        || *code == SqlState::CANNOT_CONNECT_NOW
}

/// Whether a value could not be written or read on this side: no connection is at fault.
fn is_ours(error: &Error) -> bool {
    use std::error::Error as _;
    // Both are told by the error's words alone.
    let said = error.to_string();
    error.source().is_some() && (said.contains("serializing") || said.contains("deserializing"))
}

/// What is wrong, in the words of the database. They name tables and hosts, so they belong into a log.
fn said(error: &Error) -> String {
    use std::error::Error as _;
    match error.as_db_error() {
        Some(error) => format!("{} (SQLSTATE {})", error.message(), error.code().code()),
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

impl From<Error> for CollectionError {
    fn from(error: Error) -> Self {
        let problem = said(&error);
        if is_lost(&error) {
            return Self::Unreachable { problem };
        }
        match error.code() {
            // The table of a collection that was deleted meanwhile.
            Some(code) if *code == SqlState::UNDEFINED_TABLE => Self::Unknown,
            Some(code) if *code == SqlState::QUERY_CANCELED => Self::Slow { problem },
            Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => Self::Slow { problem },
            Some(code) if *code == SqlState::TOO_MANY_CONNECTIONS => Self::Unreachable { problem },
            Some(code) if is_unwritable(code) => Self::Unwritable { problem },
            _ => Self::Database { problem },
        }
    }
}

/// Whether a database takes nothing: it is full, a follower, or not this user's to write.
fn is_unwritable(code: &SqlState) -> bool {
    *code == SqlState::DISK_FULL
        || *code == SqlState::OUT_OF_MEMORY
        || *code == SqlState::READ_ONLY_SQL_TRANSACTION
        || *code == SqlState::INSUFFICIENT_PRIVILEGE
}
