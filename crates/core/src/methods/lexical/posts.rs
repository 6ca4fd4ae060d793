//! The tokens of many posts, for methods that score a whole list: eight bytes a token and a post, so that
//! a list as long as a collection can be held.

use crate::methods::lexical::token_bag::TokenBag;
use crate::model::Phrase;

/// The tokens of posts, in the order in which these came.
#[derive(Debug, Clone, Default)]
pub struct Posts {
    /// Those of each post, sorted.
    keys: Vec<u64>,
    /// Where each post ends among them.
    ends: Vec<usize>,
}

impl Posts {
    /// Adds a post.
    pub fn push(&mut self, post: &Phrase<'_>) {
        let start = self.keys.len();
        self.keys.extend_from_slice(post.token_keys());
        if let Some(added) = self.keys.get_mut(start..) {
            added.sort_unstable();
        }
        self.ends.push(self.keys.len());
    }

    /// How many posts there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Tells the bag of each post.
    pub(super) fn each(&self, mut tell: impl FnMut(&TokenBag)) {
        let (mut bag, mut start) = (TokenBag::default(), 0);
        for &end in &self.ends {
            bag.read_sorted(self.keys.get(start..end).unwrap_or_default());
            start = end;
            tell(&bag);
        }
    }
}
