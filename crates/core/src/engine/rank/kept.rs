//! Ranks candidates by vectors that were made before: the same results as by their texts, bit for
//! bit, without reading these.

use crate::engine::rank::liked::{Sides, Sums};
use crate::engine::rank::panel::{Panel, may_be_same};
use crate::engine::rank::{Boosts, Likes};
use crate::engine::workspace::Workspace;
use crate::engine::{Engine, Place, Query, QueryError, RankOptions, Ranking, Reason, finite};
use crate::methods::Scorer;

/// Candidates that are scored together.
const BLOCK: usize = 256;
/// Results beyond the wanted number that are stored before the rest is dropped.
const SPARE: usize = 4096;

/// The stored vector of a candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KeptText<'k> {
    /// The candidate's vector.
    Vector(&'k [f32]),
    /// The candidate has no vector.
    Unscored(Reason),
}

impl Engine {
    /// Whether vectors that were made before can replace the texts of candidates in a question:
    /// those of a method that has vectors, if the question needs nothing else of the texts.
    pub fn ranks_kept(&self, query: &Query) -> bool {
        let plain = !query.truncate && !query.refuse_unscored && !query.coverage;
        plain && matches!(self.scorer(query.method), Ok(Scorer::Embed(_)))
    }

    /// The best candidates, by their stored vectors, for liked texts, or for one text as the only
    /// liked one. `go_on` is called before each text and block of candidates; once it returns
    /// false, the answer is incomplete.
    pub(super) fn rank_kept<T: AsRef<str>>(
        &self,
        (sides, likes): (&Sides<'_>, &Likes<'_>),
        (kept, texts): (&[KeptText<'_>], &[T]),
        boosts: &Boosts<'_>,
        options: &RankOptions,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Ranking, QueryError> {
        let query = &options.query;
        let panel = Panel::new(self, query)?;
        let known = sides.liked.iter().any(|(one, _)| one.known);
        let mut ranking = sides.ranking(panel.measure);
        let mut workspace = Workspace::with_memory(&self.model);
        let visitors: Vec<_> = sides
            .known()
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
                        let text = texts.get(index).map_or("", AsRef::as_ref);
                        self.read(&mut phrase, text, query, Place::Candidate(index))?;
                        if one.phrase.same_bag(&phrase) {
                            score = 1.0;
                        }
                        workspace.take_back([phrase]);
                    }
                    scores.push(finite(score, panel.info)?);
                }
                sums.add(&scores, *weight, likes.strategy);
            }
            ranking.add_sums(&sums, &indexes, (likes, boosts), panel.info)?;
            if ranking.results.len() > most {
                ranking.order(options);
            }
        }
        ranking.order(options);
        Ok(ranking)
    }
}

impl Ranking {
    fn leave(&mut self, index: usize, reason: Reason) {
        self.unscored.push(index);
        self.reasons.push(reason);
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::rank::{Asked, Candidates, Question};
    use crate::engine::{
        BoostBy, Engine, KeptText, Liked, Likes, Measure, PageOptions, Query, QueryError, Ranking,
        Strategy, Weight,
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

    struct Numbered<'t>(usize, &'t str);

    impl AsRef<str> for Numbered<'_> {
        fn as_ref(&self) -> &str {
            self.1
        }
    }

    fn go_on() -> Result<(), QueryError> {
        Ok(())
    }

    fn told(ranking: &Ranking) -> (Vec<(usize, u32)>, Vec<usize>, usize) {
        let bits = ranking.results.iter().map(|one| (one.index, one.score.to_bits()));
        (bits.collect(), ranking.unscored.clone(), ranking.reasons.len())
    }

    #[test]
    fn kept_vectors_rank_as_their_texts_do() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default.safetensors");
        let engine = Engine::open(path.as_ref(), &Default::default()).unwrap();
        let candidates: Vec<&str> = TEXTS.iter().cycle().take(600).copied().collect();
        let texts: Vec<Numbered<'_>> =
            candidates.iter().enumerate().map(|(at, text)| Numbered(at, text)).collect();
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
                    .iter()
                    .map(|vector| match vector {
                        Some(vector) => KeptText::Vector(vector),
                        None => KeptText::Unscored(*reasons.next().unwrap()),
                    })
                    .collect();
                for (top_k, min_score) in [(None, None), (Some(7), None), (Some(50), Some(0.4))] {
                    let page = PageOptions { top_k, ..PageOptions::default() };
                    let mut compare = |asked: Asked<'_>, of: &[Option<f32>]| {
                        let question = Question { min_score, page, ..Question::new(asked, query) };
                        let plain = || {
                            let boost = |text: &Numbered<'_>| of.get(text.0).copied().flatten();
                            Candidates::new(&texts).boosted(BoostBy::Share(0.75), boost)
                        };
                        let [found, expected] = [Some(kept.clone()), None].map(|kept| {
                            let candidates = plain().with_vectors(kept);
                            let found = engine.rank_pages(&question, &candidates, go_on).unwrap();
                            told(&found.pages[0].ranking)
                        });
                        assert_eq!(found, expected, "{method:?} {question:?}");
                        compared += 1;
                    };
                    for text in ["strong earthquake in lima", "the city of lima shakes", "%"] {
                        compare(text.into(), &[]);
                    }
                    for strategy in [Strategy::Best, Strategy::Mean, Strategy::Sum] {
                        let liked =
                            [("earthquake in lima", 1.0), ("floods", 0.3), ("earthquake", 2.0)];
                        let liked = liked.map(|(text, weight)| Liked {
                            text: text.into(),
                            weight: Weight::new(weight).unwrap(),
                        });
                        let disliked = vec!["cat".into(), "old town".into()];
                        let liked = liked.to_vec();
                        let likes = Likes { liked, disliked, strategy, ..Likes::default() };
                        let of: Vec<_> = (0..600).map(|at| (at % 3 > 0).then_some(0.1)).collect();
                        compare(likes.into(), &of);
                    }
                }
            }
        }
        assert!(compared > 20, "{compared}");
    }
}
