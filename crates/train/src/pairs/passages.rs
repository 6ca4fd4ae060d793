//! Pairs from running text: two chunks of one paragraph are related, two of two documents not.
//!
//! A sentence stands on a line; one empty line ends a paragraph, a second one the document, and so
//! does the end of a file. The text goes by once and memory does not grow with it.

use std::path::{Path, PathBuf};

use cognate::text;
use cognate::text::{Normalisation, Tokens};
use cognate_files::Place;
use cognate_files::input::Input;
use cognate_files::progress::Progress;
use cognate_kernels::random::Random;
use serde::Serialize;

use crate::pairs::chunks::{ChunkRules, Lengths, Paragraph};
use crate::pairs::output::{Label, Output};
use crate::pairs::pool::Pool;
use crate::pairs::{PairsError, Rows, TEXT_BYTES};

/// What `cognate pairs text` does.
#[derive(Debug, Clone)]
pub struct TextOptions {
    /// Files of running text.
    pub files: Vec<PathBuf>,
    pub output: PathBuf,
    /// Rows to write, half of them related; without it, as many as the text gives.
    pub rows: Option<u64>,
    /// Lengths of chunks in words.
    pub lengths: Lengths,
    /// Words between the starts of related pairs in a paragraph; without it, a pair starts
    /// where the last one ends.
    pub stride: Option<usize>,
    pub seed: u64,
    /// How text becomes words.
    pub normalisation: Normalisation,
}

/// What was made of running text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TextMade {
    #[serde(flatten)]
    pub written: Rows,
    /// Rows that were asked for.
    pub wanted: Option<u64>,
    pub documents: u64,
    pub paragraphs: u64,
    /// Paragraphs that gave no related pair, most because they are too short.
    pub barren_paragraphs: u64,
    pub words_read: u64,
    /// Pairs whose drawn lengths went beyond their paragraph.
    pub cut_off: u64,
    /// Pairs with a text of more bytes than anything reads.
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
            write!(f, "\n  the text gives no more; {wanted} rows were asked for")?;
        }
        Ok(())
    }
}

/// Makes pairs of running text and writes them.
pub fn from_text(options: &TextOptions) -> Result<TextMade, PairsError> {
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
    /// Related pairs before this paragraph.
    before: u64,
    pool: Pool,
    made: TextMade,
}

impl Maker<'_> {
    fn read(&mut self, path: &Path) -> Result<(), PairsError> {
        let mut input = Input::open(path)?;
        input.skip_byte_order_mark()?;
        let progress = Progress::bytes("pairs");
        let mut tokens = Tokens::new();
        // Empty lines since the last that holds something.
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
        self.output.written().related >= self.related
    }

    /// Writes the related pairs whose words are all there.
    fn pairs(&mut self) -> Result<(), PairsError> {
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

    fn end_paragraph(&mut self) -> Result<(), PairsError> {
        while self.paragraph.has_room(self.cutting) && !self.is_done() {
            self.made.cut_off += 1;
            self.paragraph.give_up(self.cutting);
            self.pairs()?;
        }
        self.paragraph.clear();
        let related = self.output.written().related;
        self.made.barren_paragraphs += u64::from(related == self.before);
        self.before = related;
        Ok(())
    }

    fn finish(mut self) -> Result<TextMade, PairsError> {
        let documents = self.made.documents;
        if documents < 2 {
            return Err(PairsError::TooLittle(format!(
                "expected at least 2 documents, found {documents}; two empty lines in a row end a \
                 document, one ends a paragraph"
            )));
        }
        if !self.pool.settle(&mut self.random, &mut self.output)? {
            return Err(PairsError::TooLittle(format!(
                "expected pairs from at least 2 of the {documents} documents, found {}: a \
                 paragraph must have {} words or more, in lengths of {}",
                u8::from(self.output.written().related > 0),
                self.cutting.lengths.fewest(),
                self.cutting.lengths,
            )));
        }
        self.made.written = self.output.finish()?;
        Ok(self.made)
    }
}
