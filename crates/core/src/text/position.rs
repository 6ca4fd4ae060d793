//! Byte positions in 32 bits, as tokens and clean text store them.

/// A byte position as it is stored. `tokenise` cuts its input so that every position fits.
pub(super) fn position(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
