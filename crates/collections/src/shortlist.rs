//! How many items of a collection are scored where nobody says.

/// Items of a collection up to which all are scored.
pub const MOST_SCORED: usize = 200_000;
/// Items in a shortlist of a large collection, for each text of the query.
pub const SHORTLIST_LENGTH: usize = 1_000;
/// The longest shortlist that can be asked for.
pub const LONGEST_SHORTLIST: usize = 100_000;

/// The length of the shortlist of a collection of so many items where nobody says; nothing where all are
/// scored, as they are where that takes no text to be read.
pub fn usual_shortlist(items: usize, reads_texts: bool) -> Option<usize> {
    (items > MOST_SCORED && reads_texts).then_some(SHORTLIST_LENGTH)
}

#[cfg(test)]
mod tests {
    use crate::shortlist::{MOST_SCORED, SHORTLIST_LENGTH, usual_shortlist};

    #[test]
    fn only_large_collections_whose_texts_are_read_have_one() {
        assert_eq!(usual_shortlist(MOST_SCORED, true), None);
        assert_eq!(usual_shortlist(MOST_SCORED + 1, true), Some(SHORTLIST_LENGTH));
        assert_eq!(usual_shortlist(10 * MOST_SCORED, false), None);
    }
}
