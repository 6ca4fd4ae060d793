//! The different words of a text, each with how often it occurs.

use crate::model::Phrase;
use crate::model::phrase::Word;

/// The different words in the order of their keys, which is the same for every order of the text.
pub(crate) fn distinct<'p>(phrase: &'p Phrase<'_>) -> impl Iterator<Item = (&'p Word, usize)> {
    let mut bag = phrase.bag().peekable();
    std::iter::from_fn(move || {
        let word = bag.next()?;
        let mut times = 1;
        while bag.next_if(|next| next.key == word.key).is_some() {
            times += 1;
        }
        Some((word, times))
    })
}
