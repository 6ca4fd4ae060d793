//! How long a text is in tokens, roughly and at a glance: what work is weighed by before a text is
//! cut. It looks at bytes, a register of them at a time, and knows no more of the rules than what
//! makes many tokens of few bytes.

use super::normalisation::Cjk;
use super::normalisation::Normalisation;
use super::normalisation::Punctuation;

/// Bytes that are counted in a byte.
const BLOCK: usize = 128;

/// About how many tokens a text has: its runs of letters and digits, and where the rules make tokens
/// of them, its marks and Han characters. What is dropped later, as addresses are, is counted too.
pub fn about(rules: &Normalisation, input: &str) -> usize {
    let bytes = input.as_bytes();
    let after = bytes.get(1..).unwrap_or_default();
    let mut count = usize::from(bytes.first().is_some_and(|&byte| of_word(byte)));
    // The compiler makes vectors of sums of bytes, in blocks that cannot overflow one.
    for (before, bytes) in bytes.chunks(BLOCK).zip(after.chunks(BLOCK)) {
        let starts =
            before.iter().zip(bytes).map(|(&before, &byte)| of_word(byte) & !of_word(before));
        count += usize::from(starts.fold(0, |sum: u8, start| sum.wrapping_add(start.into())));
    }
    if rules.punctuation == Punctuation::Keep {
        count += bytes.iter().filter(|byte| byte.is_ascii_punctuation()).count();
    }
    if rules.cjk == Cjk::Single {
        count += bytes.iter().filter(|byte| (0xE4..=0xE9).contains(*byte)).count();
    }
    count
}

/// Whether a byte belongs to a word, or may: outside ASCII nearly everything does.
fn of_word(byte: u8) -> bool {
    let letter = (byte | 0x20).wrapping_sub(b'a') < 26;
    let digit = byte.wrapping_sub(b'0') < 10;
    letter | digit | (byte >= 0x80) | (byte == b'\'')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Tokens;
    use crate::text::tokenise;

    fn counted(preset: &str, input: &str) -> (usize, usize) {
        let rules = Normalisation::preset(preset).unwrap();
        let mut tokens = Tokens::new();
        tokenise(&rules, input, &mut tokens);
        (about(&rules, input), tokens.len())
    }

    #[test]
    fn words_are_counted_as_they_are_cut() {
        let long = "it's ab cd 12 e ".repeat(100);
        for text in ["", " ", "a", " a", "quake hits city", "don't, stop!", "naïve café", &long] {
            let (about, tokens) = counted("plain", text);
            assert_eq!(about, tokens, "{text:?}");
        }
    }

    #[test]
    fn marks_and_han_count_where_they_are_tokens() {
        for text in ["a,b;c!", "...", "地震 hits 日本", "no marks"] {
            let (about, tokens) = counted("bert", text);
            assert!((tokens..=tokens + 2).contains(&about), "{text:?}: {about} for {tokens}");
        }
        assert_eq!(counted("plain", "地震日本").0, 1);
    }
}
