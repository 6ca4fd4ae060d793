//! Text, of which word2vec's format begins with a header and GloVe's does not. Many files come under
//! the other's name, so the first line decides which reader takes them.

use super::header::{HEADER_BYTES, is_header};
use super::input::Input;
pub use super::text_with_header::Word2VecTextReader;
pub use super::text_without_header::GloveTextReader;
use super::{Budget, Opened};

/// Opens text with or without header, whichever of the two names it came under; `input` stands at
/// its first byte.
pub fn open(mut input: Input, budget: Budget) -> Opened {
    input.skip_byte_order_mark()?;
    let with_header = input.peek_line(HEADER_BYTES)?.is_some_and(is_header);
    Ok(match with_header {
        true => Box::new(Word2VecTextReader::new(input, budget)?),
        false => Box::new(GloveTextReader::new(input, budget)?),
    })
}
