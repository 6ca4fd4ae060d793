//! Where a request begins among the bytes that hyper is given. hyper reads ahead and does not tell how
//! much of it belonged to a request, so bytes are counted here: a head ends at its first empty line,
//! and how long a body is, the service is told. What a head says is not known here.

use crate::http::net::state::ConnectionState;

/// What hyper was given of the present request.
#[derive(Debug, Default)]
pub(super) struct Framing {
    given: u64,
    /// Bytes of its head.
    head: u64,
    /// Whether it cannot be known any more: a head that came in parts, a request behind another.
    lost: bool,
}

impl Framing {
    /// Whether the next bytes begin a request, and nothing is under way. True again for each time that
    /// it is asked until they come.
    pub(super) fn is_between(&mut self, state: &ConnectionState) -> bool {
        if self.given > 0 && !self.lost && !state.owes_answer() {
            let all = state.body_bytes().and_then(|body| self.head.checked_add(body));
            match all {
                Some(all) if all == self.given => self.given = 0,
                Some(all) if all > self.given => {}
                // More than the request, or the service was not told of any.
                _ => self.lost = true,
            }
        }
        self.given == 0 && !self.lost
    }

    /// Counts bytes that hyper is given.
    pub(super) fn give(&mut self, bytes: &[u8], state: &ConnectionState) {
        if self.lost {
            return;
        }
        if self.given == 0 {
            state.forget_body();
            match head_length(bytes) {
                Some(length) => self.head = length as u64,
                None => self.lost = true,
            }
        }
        self.given = self.given.saturating_add(bytes.len() as u64);
    }
}

/// How long the head is that these bytes begin with, if its end is among them. Empty lines before a
/// request are passed over by hyper, so what begins with one has no known end.
fn head_length(bytes: &[u8]) -> Option<usize> {
    if matches!(bytes.first(), None | Some(b'\r' | b'\n')) {
        return None;
    }
    let mut from = 0;
    loop {
        let line = from + bytes.get(from..)?.iter().position(|&byte| byte == b'\n')? + 1;
        match bytes.get(line..)? {
            [b'\n', ..] => return Some(line + 1),
            [b'\r', b'\n', ..] => return Some(line + 2),
            _ => from = line,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_head_ends_at_its_first_empty_line() {
        let cases: [(&[u8], Option<usize>); 8] = [
            (b"GET / HTTP/1.1\r\na: b\r\n\r\nbody\r\n\r\n", Some(24)),
            (b"GET / HTTP/1.1\na: b\n\nbody", Some(21)),
            (b"GET / HTTP/1.1\n\r\nbody", Some(17)),
            (b"GET / HTTP/1.1\r\na: b\r\n\r", None),
            (b"GET / HTTP/1.1\r\na: b\r\n", None),
            (b"\r\nGET / HTTP/1.1\r\n\r\n", None),
            (b"GET", None),
            (b"", None),
        ];
        for (bytes, length) in cases {
            assert_eq!(head_length(bytes), length, "{bytes:?}");
        }
    }

    #[test]
    fn a_request_begins_where_the_one_before_it_ended() {
        const HEAD: &[u8] = b"POST / HTTP/1.1\r\n\r\n";
        let state = Arc::new(ConnectionState::default());
        let mut framing = Framing::default();
        for _ in 0..2 {
            assert!(framing.is_between(&state));
            framing.give(HEAD, &state);
            state.set_body_bytes(Some(5));
            let pending = state.begin();
            assert!(!framing.is_between(&state));
            framing.give(b"abc", &state);
            drop(pending);
            assert!(!framing.is_between(&state), "two bytes are to come");
            framing.give(b"de", &state);
        }
        assert!(framing.is_between(&state));
        // The head of the next request came along.
        framing.give(&[HEAD, b"abcdeP"].concat(), &state);
        state.set_body_bytes(Some(5));
        assert!(!framing.is_between(&state));
        framing.give(b"OST / HTTP/1.1\r\n\r\n", &state);
        state.set_body_bytes(Some(0));
        assert!(!framing.is_between(&state), "lost for good");
    }

    #[test]
    fn a_body_of_unknown_length_has_no_known_end() {
        let state = Arc::new(ConnectionState::default());
        let mut framing = Framing::default();
        framing.give(b"POST / HTTP/1.1\r\n\r\n", &state);
        state.set_body_bytes(None);
        assert!(!framing.is_between(&state));
    }
}
