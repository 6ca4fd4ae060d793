//! A requested ranking as a value: callers translate their requests into it, and only this module has
//! the rules of rankings.

use std::borrow::Cow;
use std::sync::Arc;

use crate::engine::fuse::Fusion;
use crate::engine::rank::{Liked, Likes, PageOptions, Strategy};
use crate::engine::{Engine, Place, Query, RankOptions};

/// The query: one or several texts for which candidates are ranked.
#[derive(Debug, Clone)]
pub enum Asked<'t> {
    /// One text.
    One(Cow<'t, str>),
    /// Several: a ranking for each, as for that text alone.
    Each(Vec<Cow<'t, str>>),
    /// Liked and disliked texts.
    Likes(Likes<'t>),
    /// None: candidates are ranked by their boosts alone, and their texts are not read.
    Nothing,
}

impl<'t> From<&'t str> for Asked<'t> {
    fn from(text: &'t str) -> Self {
        Self::One(Cow::Borrowed(text))
    }
}

impl<'t> From<Likes<'t>> for Asked<'t> {
    fn from(likes: Likes<'t>) -> Self {
        Self::Likes(likes)
    }
}

impl<'t> Asked<'t> {
    /// The queries; empty for liked texts, or without a text.
    pub fn queries(&self) -> &[Cow<'t, str>] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Each(texts) => texts,
            Self::Likes(_) | Self::Nothing => &[],
        }
    }

    /// The liked and disliked texts, if there are any.
    pub fn likes(&self) -> Option<&Likes<'t>> {
        match self {
            Self::Likes(likes) => Some(likes),
            Self::One(_) | Self::Each(_) | Self::Nothing => None,
        }
    }

    /// Whether boosts rank alone.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// All texts, and their places in the question.
    pub fn texts(&self) -> impl Iterator<Item = (Place, &str)> + Clone {
        let is_one = matches!(self, Self::One(_));
        let of_query = move |index| if is_one { Place::Query } else { Place::QueryOf(index) };
        let queries = self.queries().iter().enumerate();
        let queries = queries.map(move |(index, text)| (of_query(index), &**text));
        let likes = self.likes();
        let liked = likes.map_or(&[][..], |likes| &likes.liked).iter().enumerate();
        let liked = liked.map(|(index, one)| (Place::Liked(index), &*one.text));
        let disliked = likes.map_or(&[][..], |likes| &likes.disliked).iter().enumerate();
        let disliked = disliked.map(|(index, text)| (Place::Disliked(index), &**text));
        queries.chain(liked).chain(disliked)
    }

    /// The same texts, borrowed.
    pub fn borrowed(&self) -> Asked<'_> {
        self.map(Cow::Borrowed)
    }

    /// The same texts, owned.
    pub fn owned(&self) -> Asked<'static> {
        self.map(|text| Cow::Owned(text.to_owned()))
    }

    fn map<'s, 'o>(&'s self, of: impl Fn(&'s str) -> Cow<'o, str>) -> Asked<'o> {
        match self {
            Self::One(text) => Asked::One(of(text)),
            Self::Each(texts) => Asked::Each(texts.iter().map(|text| of(text)).collect()),
            Self::Nothing => Asked::Nothing,
            Self::Likes(likes) => {
                let liked = |one: &'s Liked<'t>| Liked { text: of(&one.text), weight: one.weight };
                Asked::Likes(Likes {
                    liked: likes.liked.iter().map(liked).collect(),
                    disliked: likes.disliked.iter().map(|text| of(text)).collect(),
                    strategy: likes.strategy,
                    unlike_weight: likes.unlike_weight,
                })
            }
        }
    }
}

/// A ranking that is asked for.
#[derive(Debug, Clone)]
pub struct Question<'t> {
    /// The query texts.
    pub asked: Asked<'t>,
    /// Method, measure, and what to do with unknown and overlong texts.
    pub query: Query,
    /// Several fused rankings instead of the method.
    pub fusion: Option<Arc<Fusion>>,
    /// The lowest score wanted, boosts included; `None` means any.
    pub min_score: Option<f32>,
    /// The settings of the page.
    pub page: PageOptions,
}

impl<'t> Question<'t> {
    /// A question for all candidates, by a method.
    pub fn new(asked: impl Into<Asked<'t>>, query: Query) -> Self {
        Self {
            asked: asked.into(),
            query,
            fusion: None,
            min_score: None,
            page: PageOptions::default(),
        }
    }

    /// Whether candidates may be ranked in parts: not where a candidate's score depends on the
    /// others.
    pub fn is_in_parts(&self, engine: &Engine) -> bool {
        match &self.fusion {
            Some(fusion) => fusion.methods().all(|(_, method, _)| engine.ranks_in_parts(method)),
            None => engine.ranks_in_parts(self.query.method),
        }
    }

    /// The requested least score that no candidate can reach, by its name, and the highest possible
    /// score; of boosted scores only the one that `collapse` compares is known.
    pub fn out_of_reach(&self, are_boosted: bool) -> Option<(&'static str, f32)> {
        let (least, most) = self.query.method.info().range;
        let best = match self.asked.likes() {
            _ if are_boosted || self.fusion.is_some() => f32::INFINITY,
            None => most,
            // The caller reports that no liked text is left.
            Some(likes) if likes.liked.is_empty() => f32::INFINITY,
            Some(likes) => {
                let weights = likes.liked.iter().map(|liked| liked.weight.get());
                let weight = match likes.strategy {
                    Strategy::Best => weights.fold(0.0, f32::max),
                    Strategy::Mean => 1.0,
                    Strategy::Sum => weights.sum(),
                };
                let subtracts = !likes.disliked.is_empty();
                let disliked = if subtracts { likes.unlike_weight.get() } else { 0.0 };
                weight * most + disliked * (-least).max(0.0)
            }
        };
        let asked = [("collapse", self.page.collapse, most), ("min_score", self.min_score, best)];
        let beyond =
            |(_, asked, most): &(_, Option<f32>, f32)| asked.is_some_and(|asked| asked > *most);
        asked.into_iter().find(beyond).map(|(name, _, most)| (name, most))
    }

    /// Returns the options for scoring. If results are the best of each group, all candidates are
    /// ranked.
    pub(super) fn options(&self, are_grouped: bool) -> RankOptions {
        // The best of another group may be anywhere.
        let top_k = self.page.needed().filter(|_| !are_grouped);
        RankOptions { query: self.query, top_k, min_score: self.min_score }
    }
}
