//! Candidates whose vectors were made before: ranked as [`Engine::rank_each`] and
//! [`Engine::rank_liked`] rank their texts, bit for bit, without reading them.

use crate::engine::rank::liked::{Sides, Sums};
use crate::engine::rank::panel::{Panel, may_be_same};
use crate::engine::workspace::Workspace;
use crate::engine::{
    Boosts, Engine, Likes, Place, Query, QueryError, RankOptions, Ranked, Ranking, Reason,
    Strategy, finite,
};
use crate::methods::Scorer;

/// Candidates that are scored together.
const BLOCK: usize = 256;
/// Results beyond the wanted ones that are stored before the rest is dropped.
const SPARE: usize = 4096;

/// The stored vector of a candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KeptText<'k> {
    /// Its vector.
    Vector(&'k [f32]),
    /// The candidate has no vector.
    Unscored(Reason),
}

/// What candidates are ranked for.
#[derive(Debug, Clone, Copy)]
pub enum RankedFor<'t> {
    /// One text.
    Query(&'t str),
    /// The text at this place of several.
    QueryOf(usize, &'t str),
    /// Liked texts and disliked ones.
    Likes(&'t Likes<'t>),
}

impl<'t> RankedFor<'t> {
    /// The text, where it is one.
    pub(crate) fn text(self) -> Option<&'t str> {
        match self {
            Self::Query(text) | Self::QueryOf(_, text) => Some(text),
            Self::Likes(_) => None,
        }
    }
}

impl Engine {
    /// Whether vectors that were made before can stand for candidates in a question: those of a method
    /// that has vectors, of texts that are read as they are when nothing else is asked.
    pub fn ranks_kept(&self, query: &Query) -> bool {
        let plain = !query.truncate && !query.refuse_unscored && !query.coverage;
        plain && matches!(self.scorer(query.method), Ok(Scorer::Embed(_)))
    }

    /// The best of kept candidates. Before each text and block of candidates `go_on` is asked; once that
    /// says no, what is answered is not whole. What a candidate says is asked of `text_of`.
    pub fn rank_kept<'t>(
        &self,
        asked: RankedFor<'_>,
        kept: &[KeptText<'_>],
        text_of: impl Fn(usize) -> &'t str,
        (options, boosts): (&RankOptions, &Boosts<'_>),
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Ranking, QueryError> {
        let (query, one) = (&options.query, Likes::default());
        let panel = Panel::of(self, query)?;
        let (sides, likes) = match asked {
            RankedFor::Likes(likes) => {
                self.check_likes(options)?;
                (Sides::read(self, likes, options)?, likes)
            }
            RankedFor::Query(text) => (self.one_side(text, query, Place::Query)?, &one),
            RankedFor::QueryOf(place, text) => {
                (self.one_side(text, query, Place::QueryOf(place))?, &one)
            }
        };
        let known = sides.liked.iter().any(|(one, _)| one.known);
        let query_known = match asked {
            RankedFor::Likes(_) => None,
            _ => sides.liked.first().and_then(|(one, _)| query.told_share(&one.phrase)),
        };
        let mut all = sides.liked.iter().map(|(one, _)| one).chain(&sides.disliked);
        let mut ranking = Ranking {
            measure: panel.measure,
            query_truncated: all.any(|one| one.truncated),
            query_known,
            ..Ranking::default()
        };
        let mut workspace = Workspace::of(&self.model);
        let asked = sides.liked.iter().map(|(one, weight)| (one, Some(*weight)));
        let asked = asked.chain(sides.disliked.iter().map(|one| (one, None)));
        let asked = asked.filter(|(one, _)| one.known);
        let visitors: Vec<_> = asked
            .map(|(one, weight)| (one, panel.visitor(&one.phrase, workspace.scratch()), weight))
            .collect();
        let (mut sums, mut scores) = (Sums::default(), Vec::new());
        let (mut rows, mut indexes) = (Vec::new(), Vec::new());
        let most = options.top_k.unwrap_or(usize::MAX).saturating_add(SPARE);
        for (number, block) in kept.chunks(BLOCK).enumerate() {
            rows.clear();
            indexes.clear();
            for (index, text) in (number * BLOCK..).zip(block) {
                match *text {
                    KeptText::Vector(row) if known => {
                        rows.push(row);
                        indexes.push(index);
                    }
                    KeptText::Vector(_) => ranking.leave(index, Reason::Unknown),
                    KeptText::Unscored(reason) => ranking.leave(index, reason),
                }
            }
            sums.begin(rows.len());
            for (one, visitor, weight) in &visitors {
                if !go_on() {
                    return Ok(ranking);
                }
                scores.clear();
                for (row, &index) in rows.iter().zip(&indexes) {
                    let mut score = visitor.score_row(&panel, row);
                    // Texts of the same words have the same vector, whatever its length.
                    if may_be_same(score) {
                        let mut phrase = workspace.phrase();
                        self.read(&mut phrase, text_of(index), query, Place::Candidate(index))?;
                        if one.phrase.same_bag(&phrase) {
                            score = 1.0;
                        }
                        workspace.take_back([phrase]);
                    }
                    scores.push(finite(score, panel.info)?);
                }
                sums.add(&scores, *weight, likes.strategy);
            }
            for (place, &index) in indexes.iter().enumerate() {
                let score = finite(sums.score(place, likes), panel.info)?;
                let score = finite(boosts.apply(index, score), panel.info)?;
                ranking.results.push(Ranked { index, score });
            }
            ranking.scored += indexes.len();
            if ranking.results.len() > most {
                ranking.order(options);
            }
        }
        ranking.order(options);
        Ok(ranking)
    }

    /// A text as the only liked one.
    fn one_side(&self, text: &str, query: &Query, place: Place) -> Result<Sides<'_>, QueryError> {
        let mut asked = self.read_asked(&[text], query, |_| place)?;
        Ok(Sides {
            liked: asked.pop().map(|one| (one, 1.0)).into_iter().collect(),
            disliked: vec![],
        })
    }
}

impl Ranking {
    /// Notes that a candidate has no score.
    fn leave(&mut self, index: usize, reason: Reason) {
        self.unscored.push(index);
        self.reasons.push(reason);
    }
}

impl Default for Likes<'_> {
    /// No liked text; scores are not changed.
    fn default() -> Self {
        let strategy = Strategy::Best;
        Self { liked: Vec::new(), disliked: Vec::new(), strategy, unlike_weight: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::{
        BoostBy, Boosts, Engine, KeptText, Liked, Likes, Measure, Query, RankOptions, RankedFor,
        Ranking, Strategy,
    };
    use crate::methods::Method;

    const TEXTS: [&str; 9] = [
        "Strong earthquake shakes the city of Lima",
        "",
        "the city of Lima: a strong earthquake shakes",
        "lima shakes, the city of strong earthquake!",
        "my cat sleeps on the keyboard",
        " ",
        "river floods the old town of Passau",
        "earthquake",
        "Earthquake",
    ];

    fn told(ranking: &Ranking) -> (Vec<(usize, u32)>, Vec<usize>, usize) {
        let bits = ranking.results.iter().map(|one| (one.index, one.score.to_bits()));
        (bits.collect(), ranking.unscored.clone(), ranking.reasons.len())
    }

    #[test]
    fn kept_vectors_rank_as_their_texts_do() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default.safetensors");
        let engine = Engine::open(path.as_ref(), &Default::default()).unwrap();
        let candidates: Vec<&str> = TEXTS.iter().cycle().take(600).copied().collect();
        let text_of = |index: usize| candidates[index];
        let mut compared = 0;
        for &method in Method::ALL {
            for measure in Measure::ALL {
                let query = Query { measure: Some(measure), ..Query::new(method) };
                if !engine.ranks_kept(&query) {
                    continue;
                }
                let made = engine.embed(&candidates, &Query::new(method)).unwrap();
                let mut reasons = made.reasons.iter();
                let kept: Vec<KeptText<'_>> = made
                    .vectors
                    .iter()
                    .map(|vector| match vector {
                        Some(vector) => KeptText::Vector(vector),
                        None => KeptText::Unscored(*reasons.next().unwrap()),
                    })
                    .collect();
                for (top_k, min_score) in [(None, None), (Some(7), None), (Some(50), Some(0.4))] {
                    let options = RankOptions { query, top_k, min_score };
                    for text in ["strong earthquake in lima", "the city of lima shakes", "%"] {
                        let asked = RankedFor::Query(text);
                        let asked_for = (&options, &Boosts::default());
                        let found = engine.rank_kept(asked, &kept, text_of, asked_for, || true);
                        let expected = engine.rank_best(text, &candidates, &options).unwrap();
                        assert_eq!(told(&found.unwrap()), told(&expected), "{method:?} {text}");
                    }
                    for strategy in [Strategy::Best, Strategy::Mean, Strategy::Sum] {
                        let liked =
                            [("earthquake in lima", 1.0), ("floods", 0.3), ("earthquake", 2.0)];
                        let liked = liked.map(|(text, weight)| Liked { text, weight }).to_vec();
                        let disliked = vec!["cat", "old town"];
                        let likes = Likes { liked, disliked, strategy, unlike_weight: 0.5 };
                        let asked = RankedFor::Likes(&likes);
                        let of: Vec<_> = (0..600).map(|at| (at % 3 > 0).then_some(0.1)).collect();
                        let boosts = Boosts { by: BoostBy::Share(0.75), of: &of };
                        let asked_for = (&options, &boosts);
                        let found = engine.rank_kept(asked, &kept, text_of, asked_for, || true);
                        let expected =
                            engine.rank_liked(&likes, &candidates, &boosts, &options, || true);
                        assert_eq!(told(&found.unwrap()), told(&expected.unwrap()), "{method:?}");
                        compared += 1;
                    }
                }
            }
        }
        assert!(compared > 20, "{compared}");
    }
}
