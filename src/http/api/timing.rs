//! The value of `server-timing`.

use std::time::Duration;

use axum::http::HeaderValue;

/// How long computing took, as the header has it: in milliseconds, to the microsecond. Written by
/// hand: the machinery of formats takes longer than all else that is done for headers.
pub(super) fn timing(took: Duration) -> Option<HeaderValue> {
    const NAME: &[u8] = b"compute;dur=";
    let mut left = took.saturating_add(Duration::from_nanos(500)).as_micros();
    let mut text = [0; 64];
    let mut at = text.len();
    // Three digits behind the point, and one before it at least.
    for place in 0.. {
        if place == 3 {
            at -= 1;
            *text.get_mut(at)? = b'.';
        }
        if place > 3 && left == 0 {
            break;
        }
        at -= 1;
        *text.get_mut(at)? = b'0' + (left % 10) as u8;
        left /= 10;
    }
    let from = at.checked_sub(NAME.len())?;
    text.get_mut(from..at)?.copy_from_slice(NAME);
    // Digits are fit for a header.
    HeaderValue::from_bytes(text.get(from..)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_to_the_microsecond() {
        let cases = [
            (0, "0.000"),
            (499, "0.000"),
            (500, "0.001"),
            (42_000, "0.042"),
            (999_500, "1.000"),
            (1_234_567, "1.235"),
            (60_000_000_000, "60000.000"),
            (u64::MAX, "18446744073709.552"),
        ];
        for (nanos, expected) in cases {
            let value = timing(Duration::from_nanos(nanos)).unwrap();
            assert_eq!(value.to_str().unwrap(), format!("compute;dur={expected}"));
        }
    }
}
