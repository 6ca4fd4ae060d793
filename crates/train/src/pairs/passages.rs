//! Pairs from running text: two chunks of one paragraph are related, two chunks of different
//! documents are not.
//!
//! Each line holds a sentence; one empty line ends a paragraph; two empty lines or the end of a
//! file end a document. A paragraph is read once and only the words that the next pair may need are
//! kept, so memory does not grow with the text.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cognate::text;
use cognate::text::{Normalisation, Tokens};
use cognate_files::Place;
use cognate_files::input::Input;
use cognate_files::progress::Progress;
use cognate_kernels::random::Random;
use serde::Serialize;

use crate::pairs::pool::Pool;
use crate::pairs::{Label, Output, Rows, TEXT_BYTES};
use crate::{Result, TrainError};

#[derive(Debug, Clone)]
pub struct TextOptions {
    pub files: Vec<PathBuf>,
    pub output: PathBuf,
    pub rows: Option<u64>,
    pub lengths: Lengths,
    /// Words between the starts of two related pairs in a paragraph; if absent, a pair starts where
    /// the last one ends.
    pub stride: Option<usize>,
    pub seed: u64,
    pub normalisation: Normalisation,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TextMade {
    #[serde(flatten)]
    pub written: Rows,
    pub wanted: Option<u64>,
    pub documents: u64,
    pub paragraphs: u64,
    pub barren_paragraphs: u64,
    pub words_read: u64,
    pub cut_off: u64,
    pub too_long: u64,
}

impl std::fmt::Display for TextMade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.written)?;
        let (documents, paragraphs) = (self.documents, self.paragraphs);
        write!(
            f,
            "  read: {documents} documents, {paragraphs} paragraphs, {} words",
            self.words_read
        )?;
        let left_out = [
            (self.barren_paragraphs, "paragraphs gave no pair"),
            (self.cut_off, "pairs not made: their lengths went beyond the paragraph"),
            (self.too_long, "pairs not made: a text is longer than 8192 bytes"),
        ];
        for (count, what) in left_out.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "\n  {count} {what}")?;
        }
        if let Some(wanted) = self.wanted.filter(|&wanted| wanted > self.written.rows) {
            write!(f, "\n  the text gives no more; {wanted} rows were requested")?;
        }
        Ok(())
    }
}

pub fn from_text(options: &TextOptions) -> Result<TextMade> {
    let mut maker = Maker {
        related: options.rows.map_or(u64::MAX, |rows| rows / 2),
        rules: &options.normalisation,
        cutting: ChunkRules { lengths: options.lengths, stride: options.stride },
        output: Output::create(&options.output, &options.files)?,
        random: Random::seeded(options.seed),
        paragraph: Paragraph::default(),
        before: 0,
        pool: Pool::new(),
        made: TextMade { wanted: options.rows, ..TextMade::default() },
    };
    for path in &options.files {
        maker.read(path)?;
    }
    maker.finish()
}

struct Maker<'o> {
    related: u64,
    rules: &'o Normalisation,
    cutting: ChunkRules,
    output: Output,
    random: Random,
    paragraph: Paragraph,
    before: u64,
    pool: Pool,
    made: TextMade,
}

impl Maker<'_> {
    fn read(&mut self, path: &Path) -> Result<()> {
        let mut input = Input::open(path)?;
        input.skip_byte_order_mark()?;
        let progress = Progress::bytes("pairs");
        let mut tokens = Tokens::new();
        // Empty lines since the last line with text.
        let mut empty = 2_u64;
        while !self.is_done() {
            let Some(line) = input.read_line()? else { break };
            let Ok(line) = std::str::from_utf8(line) else {
                let place = Place::Line(input.lines());
                return Err(input.malformed(place, "the line is not UTF-8").into());
            };
            if line.trim().is_empty() {
                empty = empty.saturating_add(1);
                match empty {
                    1 => self.end_paragraph()?,
                    2 => self.pool.end_document(),
                    _ => {}
                }
                continue;
            }
            self.made.documents += u64::from(empty >= 2);
            self.made.paragraphs += u64::from(empty >= 1);
            empty = 0;
            text::tokenise(self.rules, line, &mut tokens);
            self.made.words_read += tokens.len() as u64;
            tokens.texts().for_each(|word| self.paragraph.push(word));
            self.pairs()?;
            progress.follow(&input);
        }
        if empty == 0 {
            self.end_paragraph()?;
        }
        self.pool.end_document();
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.output.written.related >= self.related
    }

    /// Writes each related pair whose words have all been read.
    fn pairs(&mut self) -> Result<()> {
        while !self.is_done() {
            let Some(texts) = self.paragraph.pair(self.cutting, &mut self.random) else { break };
            if texts.iter().any(|text| text.len() > TEXT_BYTES) {
                self.made.too_long += 1;
                continue;
            }
            self.output.push(Label::Related, texts)?;
            self.pool.take(texts, &mut self.random, &mut self.output)?;
        }
        self.paragraph.pass();
        Ok(())
    }

    fn end_paragraph(&mut self) -> Result<()> {
        while self.paragraph.has_room(self.cutting) && !self.is_done() {
            self.made.cut_off += 1;
            self.paragraph.give_up(self.cutting);
            self.pairs()?;
        }
        self.paragraph.clear();
        let related = self.output.written.related;
        self.made.barren_paragraphs += u64::from(related == self.before);
        self.before = related;
        Ok(())
    }

    fn finish(mut self) -> Result<TextMade> {
        let documents = self.made.documents;
        if documents < 2 {
            return Err(TrainError::TooLittle(format!(
                "expected at least 2 documents, found {documents}; two empty lines in a row end a \
                 document, one ends a paragraph"
            )));
        }
        if !self.pool.settle(&mut self.random, &mut self.output)? {
            return Err(TrainError::TooLittle(format!(
                "expected pairs from at least 2 of the {documents} documents, found {}: a \
                 paragraph must have {} words or more, in lengths of {}",
                u8::from(self.output.written.related > 0),
                self.cutting.lengths.fewest(),
                self.cutting.lengths,
            )));
        }
        self.made.written = self.output.finish()?;
        Ok(self.made)
    }
}

/// Words between the two chunks of a related pair, so that no phrase spans both chunks.
const GAP: usize = 2;

/// Maximum words of a chunk; longer chunks are not short texts, and models truncate them.
const MAX_WORDS: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    shortest: usize,
    longest: usize,
}

impl Lengths {
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
            text.parse().ok().filter(|words| digits && (1..=MAX_WORDS).contains(words))
        };
        match (number(shortest), number(longest)) {
            (Some(shortest), Some(longest)) if shortest <= longest => {
                Ok(Self { shortest, longest })
            }
            _ => Err(format!("expected a number of words from 1 to {MAX_WORDS}, or two as 10-30")),
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

#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkRules {
    pub(super) lengths: Lengths,
    pub(super) stride: Option<usize>,
}

/// The words of a paragraph from the start of its next pair onwards.
#[derive(Debug, Default)]
pub(super) struct Paragraph {
    text: String,
    starts: Vec<usize>,
    /// Index of the word at which the next pair starts; it may not have been read yet.
    next: usize,
    drawn: Option<[usize; 2]>,
}

impl Paragraph {
    pub(super) fn push(&mut self, word: &str) {
        self.starts.push(self.text.len());
        self.text.push_str(word);
        self.text.push(' ');
    }

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

    pub(super) fn pass(&mut self) {
        let passed = self.next.min(self.starts.len());
        let bytes = self.starts.get(passed).copied().unwrap_or(self.text.len());
        self.text.drain(..bytes);
        self.starts.drain(..passed);
        self.starts.iter_mut().for_each(|start| *start -= bytes);
        self.next -= passed;
    }

    /// At the end of the paragraph: discards the drawn lengths that do not fit into it. With a
    /// stride, a pair at the next start may draw shorter lengths that fit.
    pub(super) fn give_up(&mut self, cutting: ChunkRules) {
        self.drawn = None;
        let stride = cutting.stride.unwrap_or(usize::MAX);
        self.next = self.next.saturating_add(stride);
    }

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

    /// The pairs made from the numbers 0 to `words` - 1, pushed `line` numbers at a time.
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
