//! The tokens of texts without their order, for those who keep an index of them.

use crate::engine::workspace::Workspace;
use crate::engine::{Engine, Place, Query, QueryError};
use crate::methods::{Counted, TokenBag};

impl Engine {
    /// What of a candidate's tokens its score in a question depends on, where that is so little that
    /// candidates which agree in it can be scored together.
    pub fn counted(&self, query: &Query) -> Option<Counted> {
        let plain = !query.truncate && !query.refuse_unscored && !query.coverage;
        let counted = query.method.counted().filter(|_| plain)?;
        self.scorer(query.method).ok().map(|_| counted)
    }

    /// Passes on the tokens of each text by their keys, in order, with how often each occurs; none of a
    /// text that has none or cannot be read.
    pub fn token_counts<T: AsRef<str>>(
        &self,
        texts: &[T],
        query: &Query,
        mut tell: impl FnMut(usize, &[(u64, u32)]),
    ) -> Result<(), QueryError> {
        let mut workspace = Workspace::of(&self.model);
        let (mut phrase, mut bag) = (workspace.phrase(), TokenBag::default());
        for (index, text) in texts.iter().enumerate() {
            self.read_item(&mut phrase, text.as_ref(), query, Place::Text(index))?;
            bag.read(&phrase);
            tell(index, &bag.tokens);
        }
        workspace.take_back([phrase]);
        Ok(())
    }
}
