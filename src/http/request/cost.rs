//! How long a request takes, estimated before it is computed: the bytes of its texts and the
//! multiplications of its method, as time on a common core. The figures are from
//! `cargo bench --bench handover`.

/// Nanoseconds that reading a byte of text takes: parsing, tokens, look-up. Words that are not listed
/// take two (a vector from the hash) to seven times as long (one from pieces, short words of random
/// letters), but which those are is only known once they were looked up. This and the next one are
/// from `cargo bench --bench handover`.
pub(crate) const NANOS_PER_BYTE: u64 = 12;
/// Multiplications a nanosecond, as the methods' costs count them, with the vectors' rows converted
/// on the way.
pub(crate) const MULTIPLICATIONS_PER_NANO: u64 = 32;
/// Multiplications that take as long as writing a number as text: some 30 ns.
pub(crate) const WRITING: u64 = 30 * MULTIPLICATIONS_PER_NANO;

/// Nanoseconds that texts of `bytes` bytes and `multiplications` multiplications take, roughly.
pub fn estimate(bytes: usize, multiplications: u64) -> u64 {
    reading(bytes).saturating_add(multiplications) / MULTIPLICATIONS_PER_NANO
}

/// Multiplications that take as long as reading `bytes` bytes of text.
pub(crate) fn reading(bytes: usize) -> u64 {
    (bytes as u64).saturating_mul(NANOS_PER_BYTE * MULTIPLICATIONS_PER_NANO)
}
