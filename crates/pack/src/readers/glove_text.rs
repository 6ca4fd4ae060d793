//! GloVe's text format as users name it.

use super::format::Source;
use super::input::Input;
use super::{Info, Mark, Opened, text};

/// How it is called and recognised.
pub(crate) const INFO: Info =
    Info { name: "glove", mark: Mark::Lines(|lines| !lines.header && lines.rows) };

/// Opens text, without a header or with one.
pub(super) fn open(source: &Source) -> Opened {
    text::open(Input::open(&source.path)?, source.budget)
}
