//! How long a text is in tokens, roughly and at a glance: what work is weighed by before a text is
//! cut. It looks at bytes, a register of them at a time, and knows no more of the rules than what
//! makes many tokens of few bytes. Texts with characters outside ASCII, or with what may hide a row of
//! words in a run of letters, are looked at by the character: who wants much work for little must not
//! find a mark that is not seen here.

use cognate_kernels::simd::{BLOCK, kinds};

use super::classes::{Byte, Wide, byte_class, is_han, is_ignorable, wide_class};
use super::normalisation::{
    Cjk, Contractions, Emoji, Hashtags, Normalisation, Numbers, Punctuation,
};

/// About how many tokens a text has: its runs of letters and digits, and where the rules make tokens
/// of them, its marks, emoji and Han characters. What is dropped later, as addresses are, is counted
/// too.
pub fn about(rules: &Normalisation, input: &str) -> usize {
    let cut = matches!(rules.hashtags, Hashtags::Split | Hashtags::Tag);
    let (hashes, marks) =
        (cut || rules.numbers == Numbers::Hashes, rules.punctuation == Punctuation::Keep);
    // Two apostrophes part words, which one alone may not.
    let alone = if joins(rules) { 0 } else { u64::MAX };
    let (mut count, mut word, mut quote) = (0, 0, 0);
    for block in input.as_bytes().chunks(BLOCK) {
        let kinds = kinds(block);
        let quoted = kinds.apostrophes & (kinds.apostrophes << 1 | quote | alone);
        // A hashtag, or text that may be read as one.
        let hash = hashes && kinds.signs != 0 && block.contains(&b'#');
        if kinds.wide | quoted != 0 || hash || cut && kinds.ampersands != 0 {
            let camel = cut && input.bytes().any(|byte| byte == b'#' || byte == b'&');
            return by_characters(rules, input, camel);
        }
        let words = kinds.letters | kinds.digits | kinds.apostrophes;
        count += (words & !(words << 1 | word)).count_ones();
        if marks {
            count += (kinds.printed & !kinds.letters & !kinds.digits).count_ones();
        }
        (word, quote) = (words >> (BLOCK - 1), kinds.apostrophes >> (BLOCK - 1));
    }
    count as usize
}

/// Whether an apostrophe joins its two sides.
fn joins(rules: &Normalisation) -> bool {
    rules.contractions == Contractions::Keep
}

/// What a character does to the words beside it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Gap,
    Small,
    Capital,
    Digit,
    /// A placeholder for a digit; beside a real digit it may separate words.
    Hash,
    Uncased,
}

/// Counts by characters. `camel` says that words may begin at capitals and digits, too.
fn by_characters(rules: &Normalisation, input: &str, camel: bool) -> usize {
    let marks = usize::from(rules.punctuation == Punctuation::Keep);
    let emoji = usize::from(rules.emoji == Emoji::Keep);
    let joins = joins(rules);
    let (mut count, mut before, mut capitals, mut quoted) = (0, Part::Gap, 0, false);
    let mut wide = false;
    for c in input.chars() {
        let after_wide = std::mem::replace(&mut wide, !c.is_ascii());
        let part = match byte_class(u8::try_from(c).unwrap_or(u8::MAX)) {
            Byte::Letter if c.is_ascii_uppercase() => Part::Capital,
            Byte::Letter => Part::Small,
            Byte::Digit => Part::Digit,
            Byte::Apostrophe if joins && !quoted => {
                (count, quoted) = (count + marks, true);
                continue;
            }
            Byte::Gap => Part::Gap,
            // Not beside digits of other scripts, which were not replaced.
            Byte::Hash if rules.numbers == Numbers::Hashes && !after_wide => Part::Hash,
            Byte::Hash if rules.numbers == Numbers::Hashes => {
                count += 1;
                Part::Gap
            }
            Byte::Apostrophe | Byte::Hash | Byte::At | Byte::Mark => {
                count += marks;
                Part::Gap
            }
            Byte::Wide if rules.cjk == Cjk::Single && is_han(c) => {
                count += 1;
                Part::Gap
            }
            Byte::Wide => match wide_class(c) {
                Wide::Letter if c.is_uppercase() => Part::Capital,
                Wide::Letter if c.is_lowercase() => Part::Small,
                Wide::Letter => Part::Uncased,
                Wide::Digit => Part::Digit,
                // Typographic apostrophes, combining marks and invisible characters.
                Wide::Mark if matches!(c, '\u{2018}' | '\u{2019}') && joins && !quoted => {
                    (count, quoted) = (count + marks, true);
                    continue;
                }
                Wide::Accent if quoted => Part::Gap,
                Wide::Accent => continue,
                Wide::Gap if is_ignorable(c) => continue,
                Wide::Mark => {
                    count += marks;
                    Part::Gap
                }
                Wide::Emoji => {
                    count += emoji;
                    Part::Gap
                }
                Wide::Gap => Part::Gap,
            },
        };
        let begins = match (before, part) {
            (_, Part::Gap) => false,
            (Part::Gap, _) => true,
            (Part::Hash, part) => part != Part::Hash,
            (_, Part::Hash) => true,
            // The last of several capitals begins a small word.
            (Part::Capital, Part::Small) => camel && capitals > 1,
            (before, part) => camel && before != part,
        };
        count += usize::from(begins);
        capitals = if part == Part::Capital { capitals + 1 } else { 0 };
        (before, quoted) = (part, false);
    }
    count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::{Tokens, tokenise};

    fn counted(preset: &str, input: &str) -> (usize, usize) {
        let rules = Normalisation::preset(preset).unwrap();
        let mut tokens = Tokens::new();
        tokenise(&rules, input, &mut tokens);
        (about(&rules, input), tokens.len())
    }

    #[test]
    fn words_are_counted_as_they_are_cut() {
        let long = "it's ab cd 12 e ".repeat(100);
        for text in [
            "",
            " ",
            "a",
            " a",
            "quake hits city",
            "don't, stop!",
            "naïve café",
            "don’t",
            "cafe\u{301}s",
            &long,
        ] {
            let (about, tokens) = counted("plain", text);
            assert_eq!(about, tokens, "{text:?}");
        }
    }

    /// Marks, spaces and symbols of every script end a word, and a hashtag is a row of words.
    #[test]
    fn no_mark_hides_a_word() {
        let marks = "\u{a0}\u{2003}\u{3000}\u{2014}\u{2026}\u{b7}\u{b0}\u{bb}\u{2028}\u{60c}\u{964}\u{589}\u{1f600}\u{2192}×";
        for mark in marks.chars() {
            let text = vec!["quake"; 100].join(&mark.to_string());
            assert_eq!(counted("plain", &text), (100, 100), "{mark:?}");
        }
        for tag in ["#QuakeHits", "#Quake2", "#LAQuake", "&#35;AbCd"] {
            let (about, tokens) = counted("plain", &format!("{tag}{}", "XyZaB1".repeat(100)));
            assert!(tokens >= 300 && about >= tokens, "{tag}: {about} for {tokens}");
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

    /// What texts are made of, one of each kind.
    const PIECES: &[&str] = &[
        "a", "b", "quake", "Q", "LA", "7", "'", "’", "#", "&", "&amp;", "&#35;", "@", ".", ",",
        " ", "_", "-", "é", "\u{301}", "Ж", "ж", "अ", "ि", "地", "\u{3400}", "か", "한", "—",
        "\u{a0}", "\u{200b}", "\u{ad}", "😀", "\u{20e3}", "❤", "٣", "،", "²", "\n", "n't", "'s",
        "http://", "www.", "!", "*",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn no_text_has_many_more_tokens_than_it_is_taken_to_have(
            pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40),
            repeated in 1usize..20,
        ) {
            let text = pieces.concat().repeat(repeated);
            for preset in Normalisation::PRESETS {
                let (about, tokens) = counted(preset, &text);
                prop_assert!(tokens <= 2 * about + 2, "{preset} {text:?}: {about} for {tokens}");
            }
        }
    }
}
