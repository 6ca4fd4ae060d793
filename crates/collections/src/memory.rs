//! What is allocated takes more memory than its length.

/// Bytes that an allocator takes for so many: glibc's and musl's keep a word beside them, hand out
/// memory in steps of 16 bytes and nothing below 32; others are near it.
pub(super) fn allocated(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        _ => bytes.saturating_add(8).next_multiple_of(16).max(32),
    }
}
