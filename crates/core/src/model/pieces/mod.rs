//! Pieces of words: the vector of a word that is not listed, made of the vectors of its parts.
//!
//! The section `pieces` is a second, smaller table of strings with rows. A token is cut into the
//! longest pieces that the table has, from the left; a piece that does not begin the token bears the
//! mark `##`. Where no piece begins with the next character, that character is passed over; if that
//! happens to half of the characters or more, the token has no pieces. The word's vector is the sum of
//! the pieces' rows, brought to the length that the rule says.
//!
//! | tensor | type and shape | what |
//! |---|---|---|
//! | `bytes`, `offsets`, `index` | as the vocabulary's | the pieces, marks included |
//! | `rows`, `scales`? | as `vectors` and `scales` | a row a piece |

pub mod cut;

use std::ops::Range;

use cognate_kernels::vector;
use cognate_kernels::vector::Row;
use serde::{Deserialize, Serialize};

use crate::model::bytes::numbers;
use crate::model::draft::{Draft, Table};
use crate::model::format::{Dtype, Limits, Tensor};
use crate::model::lines;
use crate::model::lines::{Key, Lines};
use crate::model::pieces::cut::PieceLengths;
use crate::model::profile::{Shape, accept};
use crate::model::subword::LONGEST_WORD_BYTES;
use crate::model::vocabulary::VocabularyTables;
use crate::model::{FormatError, Model, Vectors, Vocabulary, check, format};

/// The section that holds the pieces.
pub const PIECES_SECTION: &str = "pieces";

/// Prefix of a piece that continues a word.
pub const MARK: &str = "##";

/// A sum of rows shorter than this share of the added lengths has no direction.
const SHORTEST_SHARE: f32 = 1e-5;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    max_probe: u32,
    /// Digest of the file that the rows were read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_digest: Option<String>,
}

/// The extents of a model's pieces, checked when it is opened.
#[derive(Debug, Clone)]
pub(crate) struct PieceTable {
    bytes: Range<usize>,
    offsets: Range<usize>,
    index: Range<usize>,
    max_probe: u32,
    dtype: Dtype,
    rows: Range<usize>,
    scales: Range<usize>,
    lengths: PieceLengths,
    lines: Option<Lines>,
}

impl PieceTable {
    /// The pieces of a model, whose header has been checked.
    pub(crate) fn from_model(model: &Model) -> Result<Self, FormatError> {
        let key = format!("section.{PIECES_SECTION}");
        let missing = |name: &str| FormatError::MissingTensor { name: format!("{key}.{name}") };
        let section = model.section(PIECES_SECTION).ok_or_else(|| missing("*"))?;
        let most = Limits::DEFAULT.max_probe;
        let settings = serde_json::from_str::<Settings>(section.settings).ok();
        let Some(settings) = settings.filter(|settings| settings.max_probe <= most) else {
            return Err(FormatError::Metadata {
                key,
                expected: format!("a max_probe of at most {most}"),
                got: format::shorten(section.settings),
            });
        };
        let tensor = |name| section.tensor(name).map(|(t, _)| t).ok_or_else(|| missing(name));
        let (bytes, offsets, index) = (tensor("bytes")?, tensor("offsets")?, tensor("index")?);
        let (rows, scales) = (tensor("rows")?, section.tensor("scales").map(|(t, _)| t));
        // The others follow from the number of rows.
        let count = rows.shape.first().copied().filter(|&count| count > 0).unwrap_or(1);
        let dims = model.dims() as u64;
        accept(rows, &[Dtype::F32, Dtype::F16, Dtype::I8], Shape::Matrix(count, dims))?;
        accept(bytes, &[Dtype::U8], Shape::AnyList)?;
        accept(offsets, &[Dtype::U64], Shape::List(count.saturating_add(1)))?;
        accept(index, &[Dtype::U32], Shape::Index(count))?;
        match (scales, rows.dtype) {
            (Some(scales), Dtype::I8) => accept(scales, &[Dtype::F32], Shape::List(count))?,
            (None, Dtype::I8) => return Err(missing("scales")),
            (Some(scales), _) => return Err(only_bytes_have_scales(scales)),
            (None, _) => {}
        }
        for tensor in [bytes, offsets, index] {
            model.populate(&tensor.range)?;
        }
        let read = |range| model.slice(range);
        let strings = Vocabulary::new(
            read(&bytes.range),
            numbers(read(&offsets.range)).unwrap_or(&[]),
            numbers(read(&index.range)).unwrap_or(&[]),
            settings.max_probe,
        );
        check::words(PIECES_SECTION, &strings)?;
        let lengths = PieceLengths::new(strings.words(), MARK).ok_or_else(|| {
            let longest = strings.words().enumerate().max_by_key(|(_, piece)| piece.len());
            let word = longest.map_or(0, |(place, _)| place as u64);
            FormatError::Vocabulary { table: PIECES_SECTION, word, problem: "it is too long" }
        })?;
        Ok(Self {
            bytes: bytes.range.clone(),
            offsets: offsets.range.clone(),
            index: index.range.clone(),
            max_probe: settings.max_probe,
            dtype: rows.dtype,
            rows: rows.range.clone(),
            scales: scales.map(|tensor| tensor.range.clone()).unwrap_or_default(),
            lengths,
            lines: Lines::new(strings.all_bytes()),
        })
    }

    pub(crate) fn strings<'m>(&self, model: &'m Model) -> Vocabulary<'m> {
        let table = |range| model.slice(range);
        Vocabulary::new(
            table(&self.bytes),
            numbers(table(&self.offsets)).unwrap_or(&[]),
            numbers(table(&self.index)).unwrap_or(&[]),
            self.max_probe,
        )
    }

    pub(crate) fn pieces<'m>(&'m self, model: &'m Model) -> Pieces<'m> {
        let dims = model.dims();
        let (rows, scales) = (model.slice(&self.rows), model.slice(&self.scales));
        Pieces {
            strings: self.strings(model),
            rows: Vectors::new(self.dtype, rows, scales, dims).unwrap_or(Vectors::empty(dims)),
            lengths: &self.lengths,
            lines: self.lines.as_ref(),
        }
    }
}

fn only_bytes_have_scales(scales: &Tensor) -> FormatError {
    let problem = "only I8 rows have scales";
    FormatError::UnexpectedTensor { name: scales.name.clone(), problem }
}

pub(crate) struct Pieces<'m> {
    strings: Vocabulary<'m>,
    rows: Vectors<'m>,
    lengths: &'m PieceLengths,
    lines: Option<&'m Lines>,
}

impl<'m> Pieces<'m> {
    /// Writes the pieces of a token into `out`. A token with a digit has none: numbers that differ
    /// in one digit must not look alike.
    pub(crate) fn cut(&self, token: &str, out: &mut Vec<u32>) {
        if token.chars().any(char::is_numeric) {
            return;
        }
        // With room behind it, so that a whole key can be read from every byte on.
        let mut text = [0; LONGEST_WORD_BYTES + lines::LONGEST + 1];
        let Some(room) = text.get_mut(..token.len()) else { return };
        room.copy_from_slice(token.as_bytes());
        let find = |place: Range<usize>| {
            let mark = if place.start > 0 { MARK } else { "" };
            let is_short = mark.len() + place.len() <= lines::LONGEST;
            let Some(lines) = self.lines.filter(|_| is_short) else {
                return self.strings.lookup(&[mark, token.get(place)?].concat());
            };
            let key = Key::at(&text, [place.start, place.end]);
            let number = lines.find(if place.start > 0 { key.behind(*b"##") } else { key })?;
            self.rows.prefetch(number);
            Some(number)
        };
        cut::longest_pieces(token, self.lengths, find, out);
    }

    /// A piece, its mark included.
    pub(crate) fn name(&self, piece: u32) -> &'m str {
        self.strings.word(piece)
    }

    /// Writes the sum of the pieces' rows, brought to length `norm`, over `out`, which is all zeros.
    /// `false`, and `out` unchanged, if the sum has no direction.
    pub(crate) fn sum(&self, pieces: &[u32], norm: f32, out: &mut [f32]) -> bool {
        let mut added = 0.0;
        let rows = pieces.iter().filter_map(|&piece| self.rows.row(piece));
        vector::add_all(
            out,
            rows.map(|row| {
                added += vector::norm(row);
                (1.0, row)
            }),
        );
        let length = vector::norm(Row::F32(out));
        if !(length > SHORTEST_SHARE * added && length.is_finite()) {
            out.fill(0.0);
            return false;
        }
        out.iter_mut().for_each(|value| *value *= norm / length);
        true
    }
}

/// Puts pieces into a draft: their strings, marks included, and the tensors `rows` and, for I8,
/// `scales`.
pub fn put_pieces<'a>(
    draft: &mut Draft<'a>,
    strings: &'a VocabularyTables,
    rows: Vec<Table<'a>>,
    source_digest: Option<String>,
) -> serde_json::Result<()> {
    let settings = Settings { max_probe: strings.max_probe, source_digest };
    let mut tables = vec![
        Table::new("bytes", Dtype::U8, &[strings.bytes.len()], &strings.bytes),
        Table::new("offsets", Dtype::U64, &[strings.offsets.len()], &strings.offsets),
        Table::new("index", Dtype::U32, &[strings.index.len(), 2], &strings.index),
    ];
    tables.extend(rows);
    draft.set_section(PIECES_SECTION, serde_json::to_string(&settings)?, tables);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::OpenOptions;
    use crate::model::unlisted::UnlistedWords;

    #[test]
    fn words_are_cut_alike_where_pieces_have_lines_and_where_they_have_none() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default.safetensors");
        let model = Model::open(path.as_ref(), &OpenOptions::default()).unwrap();
        let UnlistedWords::Fallback(_, Some(table)) = model.unlisted() else { panic!("no pieces") };
        let without = PieceTable { lines: None, ..table.clone() };
        assert!(table.lines.is_some());
        for token in ["quakezillaton", "counterrevolutionaryness", "xq", "straßenbahn"] {
            let cut = |table: &PieceTable| {
                let mut pieces = Vec::new();
                table.pieces(&model).cut(token, &mut pieces);
                pieces
            };
            assert!(!cut(table).is_empty(), "{token}");
            assert_eq!(cut(&without), cut(table), "{token}");
        }
    }
}
