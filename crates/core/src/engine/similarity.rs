//! The scores of pairs of texts.

use crate::engine::workspace::Workspace;
use crate::engine::{
    Engine, Item, Oppositions, Place, Query, QueryError, Scores, finite, scorable,
};
use crate::methods::{Info, Kind, Scorer, Scratch, polarity};
use crate::model::Phrase;

/// Pairs that are read before the first of them is scored: memory for the words of one text is
/// prefetched while other texts are tokenised, and rows while other words are looked up.
const BLOCK: usize = 8;

/// Two texts to compare: pairs are scored in the form in which they were parsed.
pub trait TextPair {
    /// The texts.
    fn texts(&self) -> (&str, &str);
}

impl<A: AsRef<str>, B: AsRef<str>> TextPair for (A, B) {
    fn texts(&self) -> (&str, &str) {
        (self.0.as_ref(), self.1.as_ref())
    }
}

impl<P: TextPair + ?Sized> TextPair for &P {
    fn texts(&self) -> (&str, &str) {
        (**self).texts()
    }
}

/// # Similarity
impl Engine {
    /// The scores of pairs of texts.
    ///
    /// ```
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
    /// # let engine = cognate::Engine::open("models/default.safetensors".as_ref(), &Default::default())?;
    /// let query = cognate::Query::new(engine.method("auto")?);
    /// let pairs = [("quake hits city", "city shaken by earthquake"), ("quake hits city", "???")];
    /// let answer = engine.similarity(&pairs, &query)?;
    /// assert!(answer.scores[0] > 0.5);
    /// assert_eq!(answer.unscored, [1], "the second has a text without a known word");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn similarity<P: TextPair>(
        &self,
        pairs: &[P],
        query: &Query,
    ) -> Result<Scores, QueryError> {
        self.score_pairs_by((self.scorer_of(query)?, query.method.info()), pairs, query)
    }

    /// [`Engine::similarity`] by a scorer that need not be one of the methods.
    pub(super) fn score_pairs_by<P: TextPair>(
        &self,
        (scorer, info): (&Scorer, &Info),
        pairs: &[P],
        query: &Query,
    ) -> Result<Scores, QueryError> {
        if info.kind == Kind::Ranker {
            return Err(QueryError::OnlyRanks { method: info.name });
        }
        let measure = self.measure(scorer, info, query)?;
        let mut workspace = Workspace::with_memory(&self.model);
        let mut phrases: Vec<[Phrase<'_>; 2]> = Vec::with_capacity(pairs.len().min(BLOCK));
        for _ in 0..pairs.len().min(BLOCK) {
            phrases.push([workspace.phrase(), workspace.phrase()]);
        }
        let looks = query.opposes || query.threshold.is_some();
        let polarity = looks.then(|| self.known_opposites(query.opposites)).flatten();
        if query.opposes && polarity.is_none() {
            return Err(QueryError::OppositesUnknown { reason: polarity::missing() });
        }
        let mut answer = Scores { measure, ..Scores::default() };
        answer.scores.reserve(pairs.len());
        for (number, block) in pairs.chunks(BLOCK).enumerate() {
            let (first, before) = (number * BLOCK, answer.unscored.len());
            for ([one, other], pair) in phrases.iter_mut().zip(block) {
                let (a, b) = pair.texts();
                self.begin(one, a, query);
                self.begin(other, b, query);
            }
            for (index, (phrases, pair)) in (first..).zip(phrases.iter_mut().zip(block)) {
                self.finish_pair(phrases, pair.texts(), (info, query), index, &mut answer)?;
            }
            let left_out = answer.unscored.get(before..).unwrap_or_default();
            for (index, ([one, other], _)) in (first..).zip(phrases.iter().zip(block)) {
                if left_out.contains(&index) {
                    answer.scores.push(0.0);
                    answer.opposes.extend(query.opposes.then(Oppositions::default));
                    answer.related.extend(query.related(0.0, || false));
                    continue;
                }
                let (score, kinds) = scorer.pair_told(measure, one, other, workspace.scratch());
                answer.scores.push(finite(score, info)?);
                let look = || polarity.map(|polarity| polarity.prepare(one).kinds(other));
                let kinds = kinds.or_else(|| query.opposes.then(look).flatten());
                let are_opposed = || kinds.or_else(look).is_some_and(|kinds| !kinds.is_empty());
                answer.related.extend(query.related(score, are_opposed));
                answer.opposes.extend(kinds.filter(|_| query.opposes));
            }
        }
        workspace.take_back(phrases.into_iter().flatten());
        Ok(answer)
    }

    /// Returns, for each of `queries`, the scores of pairs of `texts`, given by indices: each is the score of
    /// [`Engine::similarity`], bit for bit, if that reaches the number beside the query, and otherwise a number
    /// below that number; `None` if one of the two texts cannot be scored. Each text is read once, as the first
    /// query says, and prepared once for consecutive pairs in which it is the second.
    pub fn similarity_among<T: AsRef<str>>(
        &self,
        texts: &[T],
        pairs: &[(usize, usize)],
        queries: &[(Query, f32)],
    ) -> Result<Vec<Vec<Option<f32>>>, QueryError> {
        let Some((reading, _)) = queries.first() else { return Ok(Vec::new()) };
        let mut workspace = Workspace::with_memory(&self.model);
        let read = |(index, text): (usize, &T)| {
            let mut phrase = workspace.phrase();
            let item = self.read_item(&mut phrase, text.as_ref(), reading, Place::Text(index))?;
            Ok((phrase, item))
        };
        let read = texts.iter().enumerate().map(read).collect::<Result<Vec<_>, QueryError>>()?;
        let scratch = workspace.scratch();
        let scores = queries.iter().map(|query| self.score_among(&read, pairs, query, scratch));
        let scores = scores.collect::<Result<Vec<_>, QueryError>>()?;
        workspace.take_back(read.into_iter().map(|(phrase, _)| phrase));
        Ok(scores)
    }

    fn score_among(
        &self,
        texts: &[(Phrase<'_>, Item)],
        pairs: &[(usize, usize)],
        (query, least): &(Query, f32),
        scratch: &mut Scratch,
    ) -> Result<Vec<Option<f32>>, QueryError> {
        let (scorer, info) = (self.scorer_of(query)?, query.method.info());
        if info.kind == Kind::Ranker {
            return Err(QueryError::OnlyRanks { method: info.name });
        }
        let measure = self.measure(scorer, info, query)?;
        let text = |at: usize| {
            let (phrase, item) = texts.get(at)?;
            item.reason(scorable(phrase, info)).is_none().then_some(phrase)
        };
        let parts = texts.iter().map(|(phrase, _)| std::slice::from_ref(phrase));
        let parts: Vec<_> = parts.map(|phrase| scorer.prepared_parts(phrase, scratch)).collect();
        let mut scores = Vec::with_capacity(pairs.len());
        for of_one in pairs.chunk_by(|one, next| one.1 == next.1) {
            let mut against = text(of_one[0].1).map(|one| {
                let mut against = scorer.against(measure, one, scratch);
                against.need_from(*least);
                against
            });
            for &(other, _) in of_one {
                let other = text(other).zip(parts.get(other));
                let Some((against, (other, parts))) = against.as_mut().zip(other) else {
                    scores.push(None);
                    continue;
                };
                let mut score = [0.0];
                against.score_prepared(std::slice::from_ref(other), parts, &mut score, scratch);
                scores.push(Some(finite(score[0], info)?));
            }
            if let Some(mut against) = against {
                against.give_back(scratch);
            }
        }
        parts.into_iter().for_each(|parts| parts.give_back(scratch));
        Ok(scores)
    }

    /// Finishes the texts of a pair that were begun, and notes their cuts and known words.
    fn finish_pair(
        &self,
        [one, other]: &mut [Phrase<'_>; 2],
        (a, b): (&str, &str),
        (info, query): (&Info, &Query),
        index: usize,
        answer: &mut Scores,
    ) -> Result<(), QueryError> {
        let a = self.finish_item(one, a, query, Place::Pair(index, 0))?;
        let b = self.finish_item(other, b, query, Place::Pair(index, 1))?;
        if a.is_cut() || b.is_cut() {
            answer.truncated.push(index);
        }
        answer.counts.saw(one);
        answer.counts.saw(other);
        if query.coverage {
            answer.known.push([one.known_share(), other.known_share()]);
        }
        let reasons = [a.reason(scorable(one, info)), b.reason(scorable(other, info))];
        if let Some(side) = reasons.iter().position(Option::is_some) {
            query.accepts_unknown(Place::Pair(index, side))?;
            answer.unscored.push(index);
            answer.reasons.extend(reasons[side]);
        }
        Ok(())
    }
}
