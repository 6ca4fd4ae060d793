//! How two texts are opposed, and the words that show it: returned on request, whatever method
//! scores.

use crate::engine::rank::{Asked, Question};
use crate::engine::workspace::Workspace;
use crate::engine::{Engine, Opposites, OppositionKind, Oppositions, Place, Query, QueryError};
use crate::methods::polarity::Polarity;
use crate::methods::{Scorer, Unavailable, polarity};
use crate::model::Phrase;

/// A word that opposes a text to another.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OpposedWord {
    /// The token that was looked up.
    pub token: String,
    /// Bytes of the text that the token comes from: first and end.
    pub span: [u32; 2],
}

/// One way in which two texts are opposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opposition {
    /// The kind.
    pub kind: OppositionKind,
    /// The words of the one text and of the other that show it, in the order of the texts. A text
    /// has none where only the other negates.
    pub words: [Vec<OpposedWord>; 2],
}

impl Engine {
    /// Says that the model knows opposites, or what it lacks.
    pub fn knows_opposites(&self) -> Result<(), Unavailable> {
        self.known_opposites(None).map(|_| ()).ok_or_else(polarity::missing)
    }

    /// Refuses a ranking that drops or returns opposites if it has no query, or the model knows none.
    pub fn check_opposes(&self, question: &Question<'_>) -> Result<(), QueryError> {
        let Question { asked, query, page, .. } = question;
        match asked {
            _ if !page.drop_opposed && !query.opposes => Ok(()),
            Asked::One(_) | Asked::Each(_) => self.polarity(query).map(|_| ()),
            Asked::Likes(_) | Asked::Nothing => {
                Err(QueryError::OpposedToNoQuery { dropped: page.drop_opposed })
            }
        }
    }

    /// How two texts are opposed; empty if they are not. Length limits and cuts are those of the
    /// query; its method does not matter.
    pub fn opposes(&self, a: &str, b: &str, query: &Query) -> Result<Vec<Opposition>, QueryError> {
        self.polarity(query)?;
        let mut workspace = Workspace::with_memory(&self.model);
        let [mut one, mut other] = [workspace.phrase(), workspace.phrase()];
        self.read(&mut one, a, query, Place::Pair(0, 0))?;
        self.read(&mut other, b, query, Place::Pair(0, 1))?;
        let told = self.told([&one, &other], query);
        workspace.take_back([one, other]);
        Ok(told)
    }

    /// The kinds by which each of many texts is opposed to one, in their order; for lists that
    /// leave out or mark opposed results. A text that cannot be read is not opposed.
    pub fn opposes_each<T: AsRef<str>>(
        &self,
        text: &str,
        others: &[T],
        query: &Query,
    ) -> Result<Vec<Oppositions>, QueryError> {
        let polarity = self.polarity(query)?;
        let mut workspace = Workspace::with_memory(&self.model);
        let [mut one, mut other] = [workspace.phrase(), workspace.phrase()];
        self.read(&mut one, text, query, Place::Query)?;
        let mut prepared = polarity.prepare(&one);
        let mut kinds = Vec::with_capacity(others.len());
        for (index, text) in others.iter().enumerate() {
            let lenient = Query { refuse_unscored: false, ..*query };
            self.read_item(&mut other, text.as_ref(), &lenient, Place::Candidate(index))?;
            kinds.push(prepared.kinds(&other));
        }
        drop(prepared);
        workspace.take_back([one, other]);
        Ok(kinds)
    }

    fn polarity(&self, query: &Query) -> Result<&Polarity, QueryError> {
        let reason = || QueryError::OppositesUnknown { reason: polarity::missing() };
        self.known_opposites(query.opposites).ok_or_else(reason)
    }

    /// The opposites as the method that counts them knows them, if the model serves it.
    pub(super) fn known_opposites(&self, wanted: Option<Opposites>) -> Option<&Polarity> {
        let without = self.without_names.iter().filter(|_| wanted == Some(Opposites::WithoutNames));
        without.chain(self.scorers.iter().flatten()).find_map(Scorer::polarity)
    }

    /// How two texts that were read are opposed; empty if the model has no opposites.
    pub(super) fn told(&self, texts: [&Phrase<'_>; 2], query: &Query) -> Vec<Opposition> {
        let Some(polarity) = self.known_opposites(query.opposites) else { return Vec::new() };
        let told = polarity.tell(texts).into_iter().map(|opposition| {
            let [one, other] = opposition.tokens;
            let words = [words(texts[0], &one), words(texts[1], &other)];
            Opposition { kind: opposition.kind, words }
        });
        told.collect()
    }
}

fn words(phrase: &Phrase<'_>, places: &[u32]) -> Vec<OpposedWord> {
    let tokens = (0..).zip(phrase.tokens().iter());
    let chosen = tokens.filter(|(place, _)| places.binary_search(place).is_ok());
    let words = chosen.map(|(_, (token, at))| OpposedWord {
        token: token.to_owned(),
        span: [at.span.start, at.span.end],
    });
    words.collect()
}
