//! How a word that is not in the vocabulary falls into parts that are: fastText's hashed character
//! n-grams, and WordPiece's greedy longest match.
//!
//! Pure functions of the word. Knows no files and no vectors: what the parts' rows are, and how
//! they are averaged, is the caller's business.

/// A longer word has no parts: tokens are cut off here, and no request may buy more work than this.
pub const LONGEST_WORD_BYTES: usize = 128;

/// BERT gives up on longer words, so a WordPiece vocabulary was never trained on their parts.
const LONGEST_PIECED_CHARS: usize = 100;

/// fastText's name for the end of a sentence, a word of the vocabulary without n-grams.
const END_OF_SENTENCE: &[u8] = b"</s>";

/// The n-grams of fastText (Bojanowski et al. 2017, section 3.2): all runs of `min` to `max`
/// characters of `<word>`, each hashed to one of `buckets` rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NGrams {
    /// Shortest n-gram, in characters.
    pub min: u32,
    /// Longest n-gram, in characters.
    pub max: u32,
    /// Rows of the bucket table.
    pub buckets: u64,
}

impl NGrams {
    /// The bucket of each n-gram of a word met in a text, in fastText's order, repeats included.
    /// Nothing for a word of more than [`LONGEST_WORD_BYTES`].
    ///
    /// Bytes, not a `str`: fastText finds characters by their leading bytes alone, so even a word
    /// that is not UTF-8 has well-defined n-grams.
    pub fn ids(self, word: &[u8]) -> BucketIds<'_> {
        if word.len() > LONGEST_WORD_BYTES {
            return BucketIds::none();
        }
        self.ids_of_listed(word)
    }

    /// As [`ids`](Self::ids), for a word that a model file lists: however long it is, its vector
    /// was trained as the mean over all of its n-grams.
    pub fn ids_of_listed(self, word: &[u8]) -> BucketIds<'_> {
        if self.buckets == 0 || word == END_OF_SENTENCE {
            return BucketIds::none();
        }
        BucketIds { word, rule: self, start: 0, end: 0, chars: 0, hash: FNV_OFFSET }
    }
}

const FNV_OFFSET: u32 = 2_166_136_261;
const FNV_PRIME: u32 = 16_777_619;

/// Walks over the n-grams of one word without storing any of them.
#[derive(Debug, Clone)]
pub struct BucketIds<'w> {
    word: &'w [u8],
    rule: NGrams,
    /// The n-gram last looked at: its first byte and the one after its last, in `<word>`.
    start: usize,
    end: usize,
    chars: u32,
    /// Its hash, which one more character continues: a longer n-gram costs that character only.
    hash: u32,
}

impl BucketIds<'_> {
    fn none() -> Self {
        let rule = NGrams { min: 0, max: 0, buckets: 0 };
        Self { word: &[], rule, start: 0, end: 0, chars: 0, hash: FNV_OFFSET }
    }

    /// The byte of `<word>` at `index`, without building that string.
    fn byte(&self, index: usize) -> Option<u8> {
        match index.checked_sub(1) {
            None => Some(b'<'),
            Some(inner) if inner == self.word.len() => Some(b'>'),
            Some(inner) => self.word.get(inner).copied(),
        }
    }

    fn continues_character(&self, index: usize) -> bool {
        self.byte(index).is_some_and(|byte| byte & 0xC0 == 0x80)
    }

    /// Takes in the byte at `end`. fastText widens a signed `char`, which sets the upper 24 bits
    /// for every byte beyond ASCII; released models depend on it.
    fn absorb(&mut self, byte: u8) {
        let widened = i32::from(byte.cast_signed()).cast_unsigned();
        self.hash = (self.hash ^ widened).wrapping_mul(FNV_PRIME);
        self.end += 1;
    }
}

impl Iterator for BucketIds<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.rule.buckets == 0 || self.rule.max == 0 {
            return None;
        }
        loop {
            if self.chars == self.rule.max || self.byte(self.end).is_none() {
                self.start += 1;
                while self.continues_character(self.start) {
                    self.start += 1;
                }
                self.byte(self.start)?;
                (self.end, self.chars, self.hash) = (self.start, 0, FNV_OFFSET);
            }
            let first = self.byte(self.end)?;
            self.absorb(first);
            while self.continues_character(self.end) {
                let next = self.byte(self.end)?;
                self.absorb(next);
            }
            self.chars += 1;
            // The marks alone say nothing about the word.
            let bare_mark = self.chars == 1 && (self.start == 0 || self.byte(self.end).is_none());
            if self.chars >= self.rule.min && !bare_mark {
                return Some(u64::from(self.hash) % self.rule.buckets);
            }
        }
    }
}

/// Cuts `word` into entries of a WordPiece vocabulary (Wu et al. 2016, as BERT reads it): the
/// longest known beginning, then the longest known continuation, looked up as `prefix` plus the
/// piece, and so on. Appends what `known` answers to `out`.
///
/// `false`, and `out` as it was, when some part has no entry: the whole word is then unknown, as
/// BERT's `[UNK]`. So is a word of more than 100 characters or [`LONGEST_WORD_BYTES`], which bounds
/// the look-ups.
pub fn wordpieces(
    word: &str,
    prefix: &str,
    mut known: impl FnMut(&str) -> Option<u32>,
    out: &mut Vec<u32>,
) -> bool {
    if word.len() > LONGEST_WORD_BYTES || word.chars().count() > LONGEST_PIECED_CHARS {
        return false;
    }
    let before = out.len();
    let mut entry = String::with_capacity(prefix.len() + word.len());
    let mut rest = word;
    while !rest.is_empty() {
        let mark = if rest.len() < word.len() { prefix } else { "" };
        let Some((id, bytes)) = longest_piece(rest, mark, &mut entry, &mut known) else {
            out.truncate(before);
            return false;
        };
        out.push(id);
        rest = rest.split_at(bytes).1;
    }
    true
}

/// The longest entry that `rest` begins with, looked up as `mark` plus the piece, and how many
/// bytes of `rest` it is.
fn longest_piece(
    rest: &str,
    mark: &str,
    entry: &mut String,
    mut known: impl FnMut(&str) -> Option<u32>,
) -> Option<(u32, usize)> {
    entry.clear();
    entry.push_str(mark);
    entry.push_str(rest);
    while entry.len() > mark.len() {
        if let Some(id) = known(entry) {
            return Some((id, entry.len() - mark.len()));
        }
        entry.pop();
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// fastText's two loops as in the paper: build `<word>`, cut every n-gram out, hash it.
    fn by_the_book(rule: NGrams, word: &str) -> Vec<u64> {
        let marked: Vec<char> = format!("<{word}>").chars().collect();
        let mut ids = Vec::new();
        for start in 0..marked.len() {
            for chars in 1..=(rule.max as usize).min(marked.len() - start) {
                let at_a_mark = start == 0 || start + chars == marked.len();
                if chars < rule.min as usize || (chars == 1 && at_a_mark) {
                    continue;
                }
                let gram: String = marked[start..start + chars].iter().collect();
                let hash = gram.bytes().fold(FNV_OFFSET, |hash, byte| {
                    (hash ^ (byte as i8 as u32)).wrapping_mul(FNV_PRIME)
                });
                ids.push(u64::from(hash) % rule.buckets);
            }
        }
        ids
    }

    proptest! {
        #[test]
        fn walking_finds_the_n_grams_that_cutting_finds(
            word in "[a-zäßж語👍]{0,12}", min in 0u32..5, more in 0u32..5, buckets in 1u64..5000,
        ) {
            let rule = NGrams { min, max: min + more, buckets };
            let walked: Vec<u64> = rule.ids(word.as_bytes()).collect();
            prop_assert_eq!(walked, by_the_book(rule, &word));
        }

        #[test]
        fn any_bytes_give_a_bounded_number_of_ids_in_range(
            word in proptest::collection::vec(any::<u8>(), 0..200), min in 0u32..8, max in 0u32..8,
        ) {
            let ids: Vec<u64> = NGrams { min, max, buckets: 97 }.ids(&word).collect();
            prop_assert!(ids.iter().all(|&id| id < 97));
            prop_assert!(ids.len() <= (word.len() + 2) * max as usize);
            prop_assert!(word.len() <= LONGEST_WORD_BYTES || ids.is_empty());
        }

        #[test]
        fn pieces_put_together_again_are_the_word(word in "[abcä]{0,12}") {
            const ENTRIES: [&str; 8] = ["a", "ab", "bc", "c", "##a", "##b", "##ca", "##ä"];
            let mut ids = Vec::new();
            let find = |entry: &str| ENTRIES.iter().position(|&e| e == entry).map(|at| at as u32);
            if wordpieces(&word, "##", find, &mut ids) {
                let pieces = ids.iter().map(|&id| ENTRIES[id as usize].trim_start_matches('#'));
                prop_assert_eq!(pieces.collect::<String>(), word);
            } else {
                prop_assert!(ids.is_empty());
            }
        }
    }

    #[test]
    fn a_rule_without_lengths_or_buckets_has_no_n_grams() {
        for rule in [
            NGrams { min: 0, max: 0, buckets: 100 },
            NGrams { min: 3, max: 6, buckets: 0 },
            NGrams { min: 5, max: 4, buckets: 100 },
        ] {
            assert_eq!(rule.ids(b"where").count(), 0, "{rule:?}");
        }
    }

    #[test]
    fn the_end_of_a_sentence_has_no_n_grams_and_a_listed_word_has_all_of_them() {
        let rule = NGrams { min: 3, max: 6, buckets: 2_000_000 };
        assert_eq!(rule.ids(b"</s>").count(), 0);
        // `<where>` has 7 characters: 5 + 4 + 3 + 2 n-grams of 3 to 6.
        assert_eq!(rule.ids(b"where").count(), 14);
        let long = [b'a'; LONGEST_WORD_BYTES + 1];
        assert_eq!(rule.ids(&long).count(), 0);
        assert_eq!(rule.ids(&long[1..]).count(), 128 + 127 + 126 + 125);
        assert_eq!(rule.ids_of_listed(&long).count(), 129 + 128 + 127 + 126);
    }

    #[test]
    fn the_longest_beginning_wins_even_where_a_shorter_one_would_have_led_on() {
        let find = |entry: &str| match entry {
            "un" => Some(1),
            "una" => Some(2),
            "##able" => Some(3),
            "##ff" => Some(4),
            _ => None,
        };
        let mut ids = vec![9];
        assert!(!wordpieces("unable", "##", find, &mut ids));
        assert_eq!(ids, [9], "a failure leaves what was there");
        assert!(wordpieces("unaffable", "##", find, &mut ids));
        assert_eq!(ids, [9, 2, 4, 3]);
    }

    #[test]
    fn a_word_too_long_is_unknown_without_a_single_look_up() {
        let mut ids = Vec::new();
        for word in ["a".repeat(101), "語".repeat(43)] {
            let never = |_: &str| -> Option<u32> { panic!("looked up") };
            assert!(!wordpieces(&word, "##", never, &mut ids));
        }
        assert!(wordpieces(&"a".repeat(100), "##", |_| Some(1), &mut ids));
        assert!(wordpieces("", "##", |_| None, &mut ids), "no characters, no pieces");
    }
}
