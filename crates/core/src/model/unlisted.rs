//! The rule by which a model's unlisted words get vectors, checked once against the model's tensors, when
//! the model is opened. The module `phrase` applies the rule to words.

use std::ops::Range;

use crate::model::bytes::numbers;
use crate::model::format::Tensor;
use crate::model::pieces::PieceTable;
use crate::model::profile::{Shape, accept};
use crate::model::subword::NGrams;
use crate::model::unigram::Scale;
use crate::model::unknown::Fallback;
use crate::model::{FormatError, LONGEST, Model, Unknown, format};

/// The section that says how unlisted words get a vector.
pub const SUBWORD_SECTION: &str = "subword";

/// The rule of the section `subword`.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SubwordRule {
    /// The mean of the rows of a word's character n-grams. Where there is a tensor `kept`, only the
    /// buckets that it lists, in rising order, have rows, and other n-grams are passed over.
    NGrams {
        /// Shortest n-gram, in characters.
        min: u32,
        /// Longest n-gram, in characters.
        max: u32,
        /// Buckets that n-grams are hashed to.
        buckets: u64,
    },
    /// The longest known beginning, then the longest known continuation, and so on.
    WordPiece {
        /// The prefix of a continuing piece.
        prefix: String,
    },
    /// The pieces whose scores add up to most. The tensor `scores` holds them as the bits of doubles: rounded,
    /// other ways to cut a word would be the best.
    Unigram {
        /// Score of a character that is no piece.
        unknown_score: f64,
        /// Bytes of the longest piece.
        longest: u32,
    },
}

/// The model's rule for unlisted words, resolved once when it is opened.
#[derive(Debug, Clone)]
pub(crate) enum UnlistedWords {
    None,
    /// Suffixes, parts, pieces, hash.
    Fallback(Fallback, Option<PieceTable>),
    NGrams {
        rule: NGrams,
        dtype: format::Dtype,
        rows: Range<usize>,
        scales: Range<usize>,
        /// The buckets that have rows, if not all have one.
        kept: Option<Range<usize>>,
    },
    WordPiece {
        prefix: String,
    },
    /// Pieces with scores, and the extent of the scores.
    Unigram {
        scale: Scale,
        scores: Range<usize>,
    },
}

impl UnlistedWords {
    pub(crate) fn from_model(model: &Model) -> Result<Self, FormatError> {
        match model.unknown() {
            Unknown::Skip => return Ok(Self::None),
            Unknown::Fallback(rules) => {
                // A number too large for an f32 is read as infinity.
                // Rounding may make a sum longer than it was meant to be, but not twice as long.
                let norms = [
                    ("piece_norm", rules.piece_norm, 0.0..=LONGEST / 2.0),
                    ("hash_norm", rules.hash_norm, -LONGEST..=LONGEST),
                ];
                for (name, norm, range) in norms {
                    if let Some(norm) = norm.filter(|norm| !range.contains(norm)) {
                        return Err(FormatError::Metadata {
                            key: "unknown".to_owned(),
                            expected: format!(
                                "a {name} from {:e} to {:e}",
                                range.start(),
                                range.end()
                            ),
                            got: norm.to_string(),
                        });
                    }
                }
                let pieces = rules.piece_norm.map(|_| PieceTable::from_model(model)).transpose()?;
                return Ok(Self::Fallback(rules.clone(), pieces));
            }
            Unknown::Subword => {}
        }
        let key = format!("section.{SUBWORD_SECTION}");
        let missing = |name: &str| FormatError::MissingTensor { name: format!("{key}.{name}") };
        let section = model.section(SUBWORD_SECTION).ok_or_else(|| missing("*"))?;
        let rule =
            serde_json::from_str(section.settings).map_err(|error| FormatError::Metadata {
                key: key.clone(),
                expected: format!("a subword rule ({error})"),
                got: format::shorten(section.settings),
            })?;
        match rule {
            SubwordRule::WordPiece { prefix } => Ok(Self::WordPiece { prefix }),
            SubwordRule::Unigram { unknown_score, longest } => {
                let (table, scores) = section.tensor("scores").ok_or_else(|| missing("scores"))?;
                accept(table, &[format::Dtype::U64], Shape::List(model.vectors().len() as u64))?;
                model.populate(&table.range)?;
                let scores: &[u64] = numbers(scores).unwrap_or(&[]);
                if !unknown_score.is_finite()
                    || !scores.iter().all(|&bits| f64::from_bits(bits).is_finite())
                {
                    return Err(FormatError::Metadata {
                        key,
                        expected: "finite scores".to_owned(),
                        got: format::shorten(section.settings),
                    });
                }
                let scale = Scale { unknown: unknown_score, longest: longest as usize };
                Ok(Self::Unigram { scale, scores: table.range.clone() })
            }
            SubwordRule::NGrams { min, max, buckets } => {
                let (table, _) = section.tensor("buckets").ok_or_else(|| missing("buckets"))?;
                let scales = section.tensor("scales").map(|(tensor, _)| tensor);
                let quantised = table.dtype == format::Dtype::I8;
                let dims = model.dims() as u64;
                let kept = section.tensor("kept");
                let rows = match kept {
                    None => buckets,
                    Some((tensor, bytes)) => {
                        check_kept(tensor, numbers(bytes).unwrap_or(&[]), buckets)?
                    }
                };
                let fits = table.shape == [rows, dims]
                    && quantised == scales.is_some()
                    && scales.is_none_or(|s| s.shape == [rows] && s.dtype == format::Dtype::F32);
                if !fits || rows == 0 {
                    return Err(FormatError::Shape {
                        name: table.name.clone(),
                        expected: format!("[{rows}, {dims}], with scales for I8 alone"),
                        got: format!("{} {:?}", table.dtype.name(), table.shape),
                    });
                }
                Ok(Self::NGrams {
                    rule: NGrams { min, max, buckets },
                    dtype: table.dtype,
                    rows: table.range.clone(),
                    scales: scales.map(|tensor| tensor.range.clone()).unwrap_or_default(),
                    kept: kept.map(|(tensor, _)| tensor.range.clone()),
                })
            }
        }
    }
}

/// Checks the list of buckets that have rows, and gives back how many there are.
fn check_kept(tensor: &Tensor, kept: &[u32], buckets: u64) -> Result<u64, FormatError> {
    let count = kept.len() as u64;
    accept(tensor, &[format::Dtype::U32], Shape::List(count))?;
    let rising = kept.is_sorted_by(|a, b| a < b);
    if rising && kept.last().is_none_or(|&last| u64::from(last) < buckets) {
        return Ok(count);
    }
    let problem = "its buckets do not rise, or are no buckets";
    Err(FormatError::UnexpectedTensor { name: tensor.name.clone(), problem })
}
