//! Sixty-four bytes of text at a time, seen as bit masks: which of them are letters, which are
//! spaces. Most words of most texts are runs of ASCII letters between spaces, and with masks the
//! end of a run is one instruction away. It knows nothing of rules.

/// Bytes of a window.
const BYTES: usize = 64;

/// A stretch of text as masks; bit `i` stands for byte `start + i`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    start: usize,
    letters: u64,
    spaces: u64,
}

impl Window {
    /// The window that begins at `start`.
    pub(super) fn new(text: &[u8], start: usize) -> Self {
        let rest = &text[start.min(text.len())..];
        let mut last = [0; BYTES];
        let bytes = rest.first_chunk().unwrap_or_else(|| {
            last[..rest.len()].copy_from_slice(rest);
            &last
        });
        let (letters, spaces) = masks(bytes);
        Self { start, letters, spaces }
    }

    /// How many bytes of the window lie at `at` and after it.
    fn left(&self, at: usize) -> usize {
        (self.start + BYTES).saturating_sub(at)
    }

    /// How many spaces follow each other from `at` on, as far as the window shows.
    #[inline]
    pub(super) fn spaces(&self, at: usize) -> usize {
        self.run(self.spaces, at)
    }

    /// How many letters follow each other from `at` on. `None` if they may go on behind the window.
    #[inline]
    pub(super) fn letters(&self, at: usize) -> Option<usize> {
        let run = self.run(self.letters, at);
        (run < self.left(at)).then_some(run)
    }

    #[inline]
    fn run(&self, mask: u64, at: usize) -> usize {
        // Bits that are shifted in are zeros and end every run at the window's end.
        let from = at.wrapping_sub(self.start);
        if from < BYTES { (mask >> from).trailing_ones() as usize } else { 0 }
    }
}

/// The letters and the spaces among 64 bytes.
fn masks(bytes: &[u8; BYTES]) -> (u64, u64) {
    (mask(bytes, |byte| byte.is_ascii_alphabetic()), mask(bytes, |byte| byte == b' '))
}

/// A bit for every byte, set where `is` holds.
#[inline]
fn mask(bytes: &[u8; BYTES], is: impl Fn(u8) -> bool) -> u64 {
    // The compiler makes vector code of this loop, which it would not of one that shifts bits.
    let mut flags = [0; BYTES];
    for (flag, byte) in flags.iter_mut().zip(bytes) {
        *flag = u8::from(is(*byte));
    }
    let mut mask = 0;
    for (place, flags) in flags.as_chunks::<8>().0.iter().enumerate() {
        // The product moves the bit of byte `i`, which is bit `8 i`, to bit `56 + i`.
        let bits = u64::from_le_bytes(*flags).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= bits << (8 * place);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn masks_are_what_the_bytes_say(bytes: [u8; 32], text in "[a-zA-Z '@\\[`{é]{32}") {
            let mut all = [0; BYTES];
            all[..32].copy_from_slice(&bytes);
            all[32..].copy_from_slice(&text.as_bytes()[..32]);
            let by_byte = all.iter().rev().fold((0, 0), |(letters, spaces): (u64, u64), byte| {
                let (letter, space) = (byte.is_ascii_alphabetic(), *byte == b' ');
                (letters << 1 | u64::from(letter), spaces << 1 | u64::from(space))
            });
            prop_assert_eq!(masks(&all), by_byte);
        }

        #[test]
        fn runs_end_where_letters_end(text in "[a-z ]{0,150}", start in 0usize..160, at in 0usize..80) {
            let window = Window::new(text.as_bytes(), start);
            let at = start + at;
            let rest = text.get(at..).unwrap_or_default();
            let letters = rest.bytes().take_while(|byte| byte.is_ascii_alphabetic()).count();
            match window.letters(at) {
                Some(run) => prop_assert_eq!(run, letters),
                None => prop_assert!(at + letters >= start + BYTES || at >= start + BYTES),
            }
            let spaces = rest.bytes().take_while(|&byte| byte == b' ').count();
            prop_assert!(window.spaces(at) <= spaces);
        }
    }
}
