//! Pieces of one paragraph: a chunk, two words passed over, a chunk.
//!
//! The words of a paragraph go by once. Only those are held that the next pair can still need,
//! so a file that is one endless paragraph costs no more than any other.

use std::fmt;
use std::str::FromStr;

use cognate_kernels::random::Random;

/// Words between the two chunks of a related pair, so that no phrase runs from one into the other.
const GAP: usize = 2;

/// Longest chunk; texts beyond it are no short texts, and models cut them.
const MOST_WORDS: usize = 500;

/// How many words a chunk has: each length from the shortest to the longest is as likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    shortest: usize,
    longest: usize,
}

impl Lengths {
    /// Words that a paragraph needs to give any pair.
    pub(super) fn fewest(self) -> usize {
        2 * self.shortest + GAP
    }

    fn draw(self, random: &mut Random) -> usize {
        self.shortest + random.below(self.longest - self.shortest + 1)
    }
}

impl FromStr for Lengths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (shortest, longest) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|words| digits && (1..=MOST_WORDS).contains(words))
        };
        match (number(shortest), number(longest)) {
            (Some(shortest), Some(longest)) if shortest <= longest => {
                Ok(Self { shortest, longest })
            }
            _ => Err(format!("expected a number of words from 1 to {MOST_WORDS}, or two as 10-30")),
        }
    }
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { shortest, longest } if shortest == longest => write!(f, "{shortest}"),
            Self { shortest, longest } => write!(f, "{shortest}-{longest}"),
        }
    }
}

/// How pairs are cut from a paragraph.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkRules {
    pub(super) lengths: Lengths,
    /// Words between the starts of two pairs; without it, one starts where the other ends.
    pub(super) stride: Option<usize>,
}

/// The words of a paragraph, from where its next pair starts.
#[derive(Debug, Default)]
pub(super) struct Paragraph {
    /// Each word and a space after it.
    text: String,
    /// Where each word starts.
    starts: Vec<usize>,
    /// The word at which the next pair starts; it may be still to come.
    next: usize,
    /// The lengths drawn for that pair.
    drawn: Option<[usize; 2]>,
}

impl Paragraph {
    pub(super) fn push(&mut self, word: &str) {
        self.starts.push(self.text.len());
        self.text.push_str(word);
        self.text.push(' ');
    }

    /// The next pair, once all its words are there.
    pub(super) fn pair(&mut self, cutting: ChunkRules, random: &mut Random) -> Option<[&str; 2]> {
        if !self.has_room(cutting) {
            return None;
        }
        let lengths = cutting.lengths;
        let [one, other] =
            *self.drawn.get_or_insert_with(|| [lengths.draw(random), lengths.draw(random)]);
        let from = self.next;
        let end = from + one + GAP + other;
        if end > self.starts.len() {
            return None;
        }
        self.drawn = None;
        self.next = cutting.stride.map_or(end, |stride| from.saturating_add(stride));
        Some([self.chunk(from, one), self.chunk(from + one + GAP, other)])
    }

    /// Forgets the words that no further pair needs.
    pub(super) fn pass(&mut self) {
        let passed = self.next.min(self.starts.len());
        let bytes = self.starts.get(passed).copied().unwrap_or(self.text.len());
        self.text.drain(..bytes);
        self.starts.drain(..passed);
        self.starts.iter_mut().for_each(|start| *start -= bytes);
        self.next -= passed;
    }

    /// At the end of the paragraph: gives up the pair whose drawn lengths go beyond it. Where
    /// pairs start at a stride, the next start may still find shorter lengths.
    pub(super) fn give_up(&mut self, cutting: ChunkRules) {
        self.drawn = None;
        let stride = cutting.stride.unwrap_or(usize::MAX);
        self.next = self.next.saturating_add(stride);
    }

    /// Whether a pair of the shortest lengths has room.
    pub(super) fn has_room(&self, cutting: ChunkRules) -> bool {
        self.next.saturating_add(cutting.lengths.fewest()) <= self.starts.len()
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.starts.clear();
        self.next = 0;
        self.drawn = None;
    }

    fn chunk(&self, from: usize, words: usize) -> &str {
        let end = self.starts.get(from + words).copied().unwrap_or(self.text.len());
        self.text[self.starts[from]..end].trim_ascii_end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pairs of the numbers from 0 to `words` - 1, given `line` at a time.
    fn pairs(words: usize, line: usize, cutting: ChunkRules) -> Vec<[String; 2]> {
        let (mut paragraph, mut random) = (Paragraph::default(), Random::seeded(7));
        let mut found = Vec::new();
        let mut take = |paragraph: &mut Paragraph| {
            while let Some(texts) = paragraph.pair(cutting, &mut random) {
                found.push(texts.map(str::to_owned));
            }
            paragraph.pass();
        };
        for word in 0..words {
            paragraph.push(&word.to_string());
            if word % line == line - 1 {
                take(&mut paragraph);
                assert!(paragraph.starts.len() <= 62 + line, "only what is still needed is held");
            }
        }
        take(&mut paragraph);
        while paragraph.has_room(cutting) {
            paragraph.give_up(cutting);
            take(&mut paragraph);
        }
        found
    }

    fn numbers(text: &str) -> Vec<usize> {
        text.split(' ').map(|word| word.parse().unwrap()).collect()
    }

    fn cutting(lengths: &str, stride: Option<usize>) -> ChunkRules {
        ChunkRules { lengths: lengths.parse().unwrap(), stride }
    }

    #[test]
    fn two_words_are_passed_over_and_the_next_pair_starts_after_the_last() {
        let found = pairs(17, 4, cutting("3", None));
        let expected = [["0 1 2", "5 6 7"], ["8 9 10", "13 14 15"]];
        assert_eq!(found, expected);
        assert_eq!(pairs(15, 4, cutting("3", None)).len(), 1, "one word too few for the second");
    }

    #[test]
    fn a_stride_lets_pairs_overlap_or_stand_apart() {
        let starts = |stride| -> Vec<usize> {
            let found = pairs(20, 6, cutting("2", Some(stride)));
            found.iter().map(|[one, _]| numbers(one)[0]).collect()
        };
        assert_eq!(starts(5), [0, 5, 10]);
        assert_eq!(starts(14), [0, 14]);
        assert_eq!(starts(1).len(), 15);
        assert_eq!(starts(usize::MAX), [0]);
    }

    #[test]
    fn each_length_is_drawn_alone_from_the_whole_range() {
        let found = pairs(100_000, 25, cutting("10-30", None));
        let mut seen = [[0; 31]; 2];
        let mut equal = 0;
        for [one, other] in &found {
            let (one, other) = (numbers(one), numbers(other));
            assert_eq!(other[0], one.last().unwrap() + 3);
            seen[0][one.len()] += 1;
            seen[1][other.len()] += 1;
            equal += usize::from(one.len() == other.len());
        }
        // 2,380 pairs, 113 a length, with a standard deviation of 10.
        for counts in seen {
            assert!(counts[10..].iter().all(|&count| (60..170).contains(&count)), "{counts:?}");
            assert_eq!(counts[..10], [0; 10]);
        }
        assert!((60..170).contains(&equal), "{equal} pairs of two equal lengths");
    }

    #[test]
    fn lines_do_not_matter_only_words_do() {
        let whole = pairs(1000, 1000, cutting("10-30", None));
        assert_eq!(whole, pairs(1000, 1, cutting("10-30", None)));
        assert_eq!(whole, pairs(1000, 7, cutting("10-30", None)));
    }

    #[test]
    fn a_paragraph_too_short_for_its_draw_may_fit_a_later_one_at_a_stride() {
        let strided = pairs(40, 9, cutting("5-30", Some(1)));
        assert!(!strided.is_empty());
        for [one, other] in strided {
            assert!(*numbers(&other).last().unwrap() < 40 && numbers(&one).len() >= 5);
        }
    }

    #[test]
    fn lengths_are_a_number_or_two_in_order() {
        let of = |text: &str| text.parse::<Lengths>();
        assert_eq!(of("20"), Ok(Lengths { shortest: 20, longest: 20 }));
        assert_eq!(of("10-30"), Ok(Lengths { shortest: 10, longest: 30 }));
        assert_eq!(of("1-500").unwrap().to_string(), "1-500");
        assert_eq!(of("7-7").unwrap().to_string(), "7");
        for odd in [
            "",
            "-",
            "10-",
            "-30",
            "30-10",
            "0",
            "0-5",
            "501",
            "10-501",
            "ten",
            "10-20-30",
            "10–30",
            " 10",
            "10 - 30",
            "+10",
            "1e1",
            "10.5",
            "99999999999999999999",
            "10..30",
        ] {
            let refusal = of(odd).unwrap_err();
            assert!(refusal.contains("1 to 500") && refusal.contains("10-30"), "{odd}: {refusal}");
        }
    }
}
