//! Candidates by their similarity to liked texts and dissimilarity to disliked ones. The scores
//! with each text are those of a ranking for it alone. Texts are added up in the order of their
//! bytes, not as given, so that sums have the same bits in any order.

use std::borrow::Cow;

use crate::choice::choice;
use crate::engine::rank::many::{AskedText, blocks};
use crate::engine::rank::panel::Panel;
use crate::engine::rank::session::Reader;
use crate::engine::workspace::Workspace;
use crate::engine::{Engine, Place, Query, QueryError, RankOptions, Ranked, Ranking, finite};
use crate::methods::{Info, Kind, Measure};

/// A factor of scores: above 0, and no more than keeps the sum of weighted scores finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weight(f32);

impl Weight {
    /// The weight of a text that has none of its own.
    pub const ONE: Self = Self(1.0);

    /// What [`Weight::new`] accepts, for messages.
    pub const EXPECTED: &str = "a number above 0, at most 1000";

    /// The weight of this number, if it is one.
    pub fn new(number: f32) -> Option<Self> {
        (number > 0.0 && number <= 1000.0).then_some(Self(number))
    }

    /// Returns the weight as a number.
    pub const fn get(self) -> f32 {
        self.0
    }
}

/// A liked text.
#[derive(Debug, Clone, PartialEq)]
pub struct Liked<'t> {
    /// The text.
    pub text: Cow<'t, str>,
    /// The factor of its scores.
    pub weight: Weight,
}

/// What the scores with several liked texts come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = LikeStrategy))]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The best of the weighted scores.
    #[default]
    Best,
    /// The mean of the scores by the weights.
    Mean,
    /// The sum of the weighted scores.
    Sum,
}

choice!(Strategy { Best = "best", Mean = "mean", Sum = "sum" });

/// Liked and disliked texts.
#[derive(Debug, Clone)]
pub struct Likes<'t> {
    /// Texts that candidates should be like.
    pub liked: Vec<Liked<'t>>,
    /// Texts that candidates should not be like.
    pub disliked: Vec<Cow<'t, str>>,
    /// How the scores with the liked texts are combined.
    pub strategy: Strategy,
    /// The factor of the best score with a disliked text, which is then subtracted.
    pub unlike_weight: Weight,
}

impl<'t> Likes<'t> {
    /// Texts of equal weight; the best score with one of them counts.
    pub fn any_of(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let liked = texts.into_iter().map(|text| Liked { text: text.into(), weight: Weight::ONE });
        Self { liked: liked.collect(), ..Self::default() }
    }

    /// The default factor of the best score with a disliked text.
    pub const UNLIKE_WEIGHT: Weight = Weight(0.5);
}

impl Default for Likes<'_> {
    /// No liked text; the best score counts.
    fn default() -> Self {
        Self {
            liked: Vec::new(),
            disliked: Vec::new(),
            strategy: Strategy::default(),
            unlike_weight: Self::UNLIKE_WEIGHT,
        }
    }
}

/// Indices of the liked and of the disliked texts that cannot be scored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnscoredLikes {
    /// Indices of liked texts.
    pub liked: Vec<usize>,
    /// Indices of disliked texts.
    pub disliked: Vec<usize>,
}

impl Engine {
    pub(super) fn check_likes(&self, query: &Query) -> Result<(), QueryError> {
        let info = query.method.info();
        self.check(query)?;
        match info.kind {
            Kind::Similarity => Ok(()),
            Kind::Ranker => Err(QueryError::OnlyRanks { method: info.name }),
        }
    }

    /// The best candidates by their similarity to liked texts and dissimilarity to disliked ones.
    /// `go_on` is called before each text and block of candidates; once it returns false, the
    /// answer is incomplete.
    pub(super) fn rank_liked<T: AsRef<str>>(
        &self,
        (sides, likes): (&Sides<'_>, &Likes<'_>),
        candidates: &[T],
        boosts: &Boosts<'_>,
        options: &RankOptions,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Ranking, QueryError> {
        let mut panel = Panel::new(self, &options.query)?;
        let known = sides.liked.iter().any(|(one, _)| one.known);
        let mut ranking = sides.ranking(panel.measure);
        let mut workspace = Workspace::with_memory(&self.model);
        let mut reader = Reader::new(self, &options.query, panel.info);
        let (mut scores, mut sums) = (Vec::new(), Sums::default());
        for (first, block) in blocks(candidates) {
            let mut read = Ranking::default();
            reader.read_block(block, first, true, &mut workspace, &mut read)?;
            ranking.note(&read, first..first + block.len(), known);
            let (phrases, indexes) = reader.read_last();
            if !known || indexes.is_empty() {
                continue;
            }
            panel.fill(phrases);
            sums.begin(indexes.len());
            let visitors = sides.known();
            let parts =
                panel.prepared_parts(phrases, visitors.clone().count(), workspace.scratch());
            for (one, weight) in visitors {
                if !go_on() {
                    return Ok(ranking);
                }
                let scratch = workspace.scratch();
                let mut visitor = panel.visitor(&one.phrase, scratch);
                visitor.score_prepared(&panel, phrases, parts.as_ref(), &mut scores, scratch)?;
                visitor.leave(scratch);
                sums.add(&scores, weight, likes.strategy);
            }
            if let Some(parts) = parts {
                parts.give_back(workspace.scratch());
            }
            ranking.add_sums(&sums, indexes, (likes, boosts), panel.info)?;
        }
        reader.end(&mut workspace);
        ranking.order(options);
        Ok(ranking)
    }
}

/// The liked and disliked texts, read, in the order of their bytes.
pub(super) struct Sides<'e> {
    pub(super) liked: Vec<(AskedText<'e>, f32)>,
    pub(super) disliked: Vec<AskedText<'e>>,
    pub(super) unscored: UnscoredLikes,
    /// The share of listed words of one text, if requested.
    pub(super) query_known: Option<f32>,
}

impl<'e> Sides<'e> {
    pub(super) fn read(
        engine: &'e Engine,
        likes: &Likes<'_>,
        query: &Query,
    ) -> Result<Self, QueryError> {
        let texts: Vec<&str> = likes.liked.iter().map(|one| &*one.text).collect();
        let asked = engine.read_asked(&texts, query, Place::Liked)?;
        // The best of them is the same in any order.
        let disliked = engine.read_asked(&likes.disliked, query, Place::Disliked)?;
        let unknown = |asked: &[AskedText<'_>]| {
            let places = asked.iter().enumerate().filter(|(_, one)| !one.known);
            places.map(|(place, _)| place).collect()
        };
        let unscored = UnscoredLikes { liked: unknown(&asked), disliked: unknown(&disliked) };
        let mut liked: Vec<_> = asked.into_iter().zip(&likes.liked).collect();
        liked.sort_by(|(_, a), (_, b)| {
            a.text.cmp(&b.text).then_with(|| a.weight.0.total_cmp(&b.weight.0))
        });
        let liked = liked.into_iter().map(|(one, liked)| (one, liked.weight.0)).collect();
        Ok(Self { liked, disliked, unscored, query_known: None })
    }

    /// A text as the only liked one.
    pub(super) fn one(
        engine: &'e Engine,
        text: &str,
        query: &Query,
        place: Place,
    ) -> Result<Self, QueryError> {
        let asked = engine.read_asked(&[text], query, |_| place)?;
        let query_known = asked.first().and_then(|one| query.told_share(&one.phrase));
        let liked = asked.into_iter().map(|one| (one, 1.0)).collect();
        Ok(Self { liked, disliked: vec![], unscored: UnscoredLikes::default(), query_known })
    }
}

impl Sides<'_> {
    /// The texts that have what the method needs, and the weights of the liked texts.
    pub(super) fn known(&self) -> impl Iterator<Item = (&AskedText<'_>, Option<f32>)> + Clone {
        let liked = self.liked.iter().map(|(one, weight)| (one, Some(*weight)));
        let disliked = self.disliked.iter().map(|one| (one, None));
        liked.chain(disliked).filter(|(one, _)| one.known)
    }

    pub(super) fn ranking(&self, measure: Measure) -> Ranking {
        let mut all = self.liked.iter().map(|(one, _)| one).chain(&self.disliked);
        let (query_truncated, query_known) = (all.any(|one| one.truncated), self.query_known);
        Ranking { measure, query_truncated, query_known, ..Ranking::default() }
    }
}

impl Ranking {
    /// Adds the candidates of a block with their combined scores.
    pub(super) fn add_sums(
        &mut self,
        sums: &Sums,
        indexes: &[usize],
        (likes, boosts): (&Likes<'_>, &Boosts<'_>),
        info: &Info,
    ) -> Result<(), QueryError> {
        for (place, &index) in indexes.iter().enumerate() {
            let score = finite(sums.score(place, likes), info)?;
            let score = finite(boosts.apply(index, score), info)?;
            self.results.push(Ranked { index, score });
        }
        self.scored += indexes.len();
        Ok(())
    }
}

/// The combined scores of a block of candidates so far. Products and sums of a few single-precision
/// scores and weights lose next to nothing in double precision; so the scores with one text alone
/// stay the same bit for bit.
#[derive(Default)]
pub(super) struct Sums {
    liked: Vec<f64>,
    weights: f64,
    /// The best with a disliked text; `None` if there is none.
    disliked: Vec<Option<f64>>,
}

impl Sums {
    pub(super) fn begin(&mut self, candidates: usize) {
        self.weights = 0.0;
        self.liked.clear();
        self.liked.resize(candidates, 0.0);
        self.disliked.clear();
        self.disliked.resize(candidates, None);
    }

    /// Adds the scores with one text, which is liked if it has a weight.
    pub(super) fn add(&mut self, scores: &[f32], weight: Option<f32>, strategy: Strategy) {
        let Some(weight) = weight.map(f64::from) else {
            for (worst, &score) in self.disliked.iter_mut().zip(scores) {
                let score = f64::from(score);
                *worst = Some(worst.map_or(score, |worst| worst.max(score)));
            }
            return;
        };
        let is_first = self.weights == 0.0;
        self.weights += weight;
        for (sum, &score) in self.liked.iter_mut().zip(scores) {
            let score = weight * f64::from(score);
            *sum = match strategy {
                _ if is_first => score,
                Strategy::Best => sum.max(score),
                Strategy::Mean | Strategy::Sum => *sum + score,
            };
        }
    }

    pub(super) fn score(&self, place: usize, likes: &Likes<'_>) -> f32 {
        let liked = self.liked.get(place).copied().unwrap_or_default();
        let liked = match likes.strategy {
            Strategy::Mean => liked / self.weights,
            Strategy::Best | Strategy::Sum => liked,
        };
        let less = self.disliked.get(place).copied().flatten();
        match less {
            None => liked as f32,
            Some(worst) => (liked - f64::from(likes.unlike_weight.0) * worst) as f32,
        }
    }
}

/// How a boost changes a score.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum BoostBy {
    /// Added to the score.
    #[default]
    Add,
    /// Multiplies the score; must not be negative.
    Multiply,
    /// Added to this share of the score.
    Share(f32),
}

impl BoostBy {
    pub(crate) fn boosted(self, score: f32, boost: Option<f32>) -> f32 {
        match (self, boost) {
            (_, None) => score,
            (Self::Add, Some(boost)) => score + boost,
            (Self::Multiply, Some(boost)) => score * boost,
            (Self::Share(share), Some(boost)) => share * score + boost,
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Boosts<'b> {
    pub(crate) by: BoostBy,
    /// The boost of each candidate, in their order; empty if no candidate has a boost.
    pub(crate) of: &'b [Option<f32>],
}

impl Boosts<'_> {
    /// The score of the candidate at a place of the list.
    pub(crate) fn apply(&self, index: usize, score: f32) -> f32 {
        self.by.boosted(score, self.of.get(index).copied().flatten())
    }

    /// Ranks candidates by their boosts alone.
    pub(super) fn ranking(
        &self,
        candidates: usize,
        options: &RankOptions,
    ) -> Result<Ranking, QueryError> {
        let info = options.query.method.info();
        let one = |index| Ok(Ranked { index, score: finite(self.apply(index, 0.0), info)? });
        let results = (0..candidates).map(one).collect::<Result<_, _>>()?;
        let mut ranking = Ranking { results, scored: candidates, ..Ranking::default() };
        ranking.order(options);
        Ok(ranking)
    }
}
