//! Which items of a collection a question ranks: the selected ones, those of them that can be the
//! best, or a shortlist; for liked items, and for queries as they are probably meant.

use std::borrow::Cow;
use std::sync::Arc;

use cognate::engine::rank::{Asked, Question};
use cognate::engine::{BoostBy, Candidates, Engine, Query};

use crate::{
    Cancellation, Choice, ChooseError, Chosen, Collection, ID_BYTES, Item, ItemBoosts,
    ItemSelector, Result, TopQuery, usual_shortlist,
};

/// Default number of results of a ranking of a collection.
pub const RESULTS: usize = 10;
/// Default number of results of each group.
pub const PER_GROUP: usize = 1;

/// Liked or disliked items that a question names, by their indices in the question.
#[derive(Debug, Default)]
pub struct NamedItems {
    items: Vec<Option<Arc<Item>>>,
    /// Indices of items that the collection does not have: a liked item may have left.
    pub missing: Vec<usize>,
    /// Indices of texts that equal ids of items: probably the items were meant.
    pub are_ids: Vec<usize>,
}

#[derive(Debug, Clone)]
pub enum LikedBy<'q> {
    Id(Cow<'q, str>),
    Text(&'q str),
}

impl LikedBy<'_> {
    /// What may be the id of an item.
    fn id(&self) -> Option<&str> {
        match self {
            Self::Id(id) => Some(id),
            Self::Text(text) => Some(*text).filter(|text| text.len() <= ID_BYTES),
        }
    }
}

impl NamedItems {
    pub fn find_liked_items(
        collection: &dyn Collection,
        liked: &[LikedBy<'_>],
        now: i64,
    ) -> Result<Self> {
        let mut named = Self { items: vec![None; liked.len()], ..Self::default() };
        let (places, ids): (Vec<usize>, Vec<&str>) =
            liked.iter().enumerate().filter_map(|(place, one)| Some((place, one.id()?))).unzip();
        if ids.is_empty() {
            return Ok(named);
        }
        for (place, item) in places.into_iter().zip(collection.find(&ids, now)?) {
            match (liked.get(place), item, named.items.get_mut(place)) {
                (Some(LikedBy::Id(_)), None, _) => named.missing.push(place),
                (Some(LikedBy::Id(_)), item, Some(found)) => *found = item,
                (Some(LikedBy::Text(_)), Some(_), _) => named.are_ids.push(place),
                _ => {}
            }
        }
        Ok(named)
    }

    /// Whether the collection has none of them, and no text is among them.
    pub fn are_gone(&self) -> bool {
        !self.items.is_empty() && self.missing.len() == self.items.len()
    }

    /// The text of the item at an index of the question, if the collection has it.
    pub fn text(&self, place: usize) -> Option<&str> {
        Some(&self.items.get(place)?.as_ref()?.text)
    }

    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.items.iter().flatten().map(|item| &*item.id)
    }

    /// Returns the index in the question of a found item.
    pub fn place(&self, of_found: usize) -> usize {
        self.missing.iter().fold(of_found, |place, missing| place + usize::from(*missing <= place))
    }
}

#[derive(Debug)]
pub struct FoundItems {
    pub items: Vec<(u64, Arc<Item>)>,
    /// Number of items selected; `items` may be the ones among them that can be best.
    pub meant: usize,
    /// Length of the shortlist for each text, if there is one.
    pub shortlist: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
pub struct RankedItem<'i>(pub &'i Item);

impl AsRef<str> for RankedItem<'_> {
    fn as_ref(&self) -> &str {
        &self.0.text
    }
}

impl FoundItems {
    pub fn ranked(&self) -> Vec<RankedItem<'_>> {
        self.items.iter().map(|(_, item)| RankedItem(item)).collect()
    }
}

/// Items as candidates, with their boosts at a clock, grouped by an attribute with a number of
/// results per group.
pub fn candidates<'c>(
    items: &'c [RankedItem<'c>],
    boosts: Option<(&ItemBoosts, i64)>,
    group_by: Option<(&str, usize)>,
) -> Candidates<'c, RankedItem<'c>> {
    let mut candidates = Candidates::new(items);
    if let Some((boosts, clock)) = boosts {
        let by = BoostBy::Share(boosts.rest());
        candidates = candidates.boosted(by, |one| Some(boosts.of(one.0, clock)));
    }
    match group_by {
        None => candidates,
        Some((name, per_group)) => candidates.grouped(per_group, |one| {
            let value = one.0.attributes.get(name)?;
            Some(value.to_string().into())
        }),
    }
}

/// Ranks by boosts alone if no liked item is left; returns whether there is anything to rank by.
pub fn ranks(question: &mut Question<'_>, liked: &NamedItems, boosts: Option<&ItemBoosts>) -> bool {
    if liked.are_gone() {
        question.asked = Asked::Nothing;
    }
    boosts.is_some() || !question.asked.is_nothing()
}

/// Whether a ranking uses the vectors that this process stores. A shortlist's items are read as texts
/// instead, because they lie in nearly all blocks of stored vectors.
pub fn ranks_kept(engine: &Engine, question: &Question<'_>) -> bool {
    question.fusion.is_none() && engine.ranks_kept(&question.query)
}

pub struct ItemSearch<'s> {
    pub collection: &'s dyn Collection,
    pub engine: &'s Engine,
    pub which: ItemSelector<'s>,
    pub now: i64,
    /// Length of the shortlist, `Some(None)` for all items, `None` for the default.
    pub shortlist: Option<Option<usize>>,
    /// Whether the collection is on another machine, which stores no vectors for rankings.
    pub is_remote: bool,
    /// Whether to narrow the items to those that may be among the best, if the collection can tell:
    /// by bounds of their vectors, or by their tokens. It cannot where boosts or groups count.
    pub narrows: bool,
}

impl ItemSearch<'_> {
    pub fn find(
        &self,
        question: &Question<'_>,
        cancel: Cancellation<'_>,
    ) -> Result<FoundItems, ChooseError> {
        let best = self.best(question);
        let shortlist = match self.shortlist {
            // A question without direction has no nearest items.
            _ if question.asked.is_nothing() => None,
            Some(said) => said,
            None if best.is_some() => None,
            None if ranks_kept(self.engine, question) && !self.is_remote => None,
            None => {
                let page = &question.page;
                let results = page.end().unwrap_or(RESULTS).max(page.pool());
                let method = question.fusion.is_none().then_some(question.query.method);
                usual_shortlist(self.collection.told(self.now)?.items, results, method)
            }
        };
        let choice = match shortlist {
            Some(length) => {
                let near = self.top_query(question, length);
                match &question.fusion {
                    None => Choice::Shortlist(near),
                    Some(fusion) => {
                        let query =
                            |(_, method, measure)| Query { method, measure, ..question.query };
                        let methods = fusion.methods().map(query);
                        let counts = |query: &Query| self.engine.counted(query).is_some();
                        Choice::Fused(near, methods.filter(counts).collect())
                    }
                }
            }
            None => best.unwrap_or(Choice::All),
        };
        let Chosen { items, meant } =
            self.collection.choose(&self.which, &choice, self.now, cancel)?;
        Ok(FoundItems { items, meant, shortlist })
    }

    /// The items that may be among the best; `None` if the ranking compares items with each other.
    fn best<'q>(&'q self, question: &'q Question<'_>) -> Option<Choice<'q>> {
        let likes = question.asked.likes();
        let is_plain = likes.is_none_or(|likes| likes.disliked.is_empty());
        if !self.narrows || self.is_remote || !is_plain || question.fusion.is_some() {
            return None;
        }
        let (top, query) = (self.top_query(question, question.page.needed()?), question.query);
        if self.engine.counted(&query).is_some() {
            return Some(Choice::TopByTokens(top, query));
        }
        top.is_bounded(&query).then_some(Choice::TopQuery(top))
    }

    /// The `length` best items by the vectors of the query's texts; disliked texts do not count.
    fn top_query<'q>(&'q self, question: &'q Question<'_>, length: usize) -> TopQuery<'q> {
        match question.asked.likes() {
            Some(likes) => TopQuery::of_liked(self.engine, likes, length),
            None => {
                let texts = question.asked.queries().iter().map(AsRef::as_ref);
                TopQuery::of_each(self.engine, texts, length)
            }
        }
    }
}
