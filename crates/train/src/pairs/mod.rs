//! `cognate pairs`: labelled pairs of texts, made from text that nobody labelled, after De Boom,
//! Van Canneyt, Demeester and Dhoedt ("Representation learning for very short texts using weighted
//! word embedding aggregation", 2016, section 4).
//!
//! Running text gives two pieces of one paragraph, tweets give two that share hashtags or an event
//! within minutes. Either way there are as many non-related pairs as related ones, and the same
//! seed gives the same bytes. What pairs are good for, and any word vector, is not known here.

mod chunks;
mod output;
mod passages;
mod pool;
mod tweets;

use std::path::PathBuf;

pub use chunks::Lengths;
use cognate_files::ReadError;
pub use output::Rows;
pub use passages::{TextMade, TextOptions, from_text};
pub use tweets::columns::{Columns, Filter};
pub use tweets::{Rejections, Texts, TweetOptions, TweetsMade, from_tweets};

/// Longest text that is written. `cognate eval pairs` and the service take as many characters.
const TEXT_BYTES: usize = 8192;

/// Why no pairs were made.
#[derive(Debug, thiserror::Error)]
pub enum PairsError {
    /// A file could not be read, or a row of it makes no sense.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Options that contradict each other.
    #[error("{0}")]
    Options(String),
    /// Files without enough in them to make pairs of either kind.
    #[error("{0}")]
    TooLittle(String),
    /// The pairs could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}
