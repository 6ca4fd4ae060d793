//! word2vec's text format, which is also fastText's `.vec`, as users name it.

use super::format::Source;
use super::input::Input;
use super::{Info, Mark, Opened, text};

/// How it is called and recognised.
pub(crate) const INFO: Info =
    Info { name: "word2vec-text", mark: Mark::Lines(|lines| lines.header && lines.rows) };

/// Opens text, with a header or without.
pub(super) fn open(source: &Source) -> Opened {
    text::open(Input::open(&source.path)?, source.budget)
}
