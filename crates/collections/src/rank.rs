//! Which items of a collection a question ranks, and as what: those that are selected, or the ones among
//! them that can be the best, or a shortlist; for liked items, and for queries as they are probably meant.

use std::borrow::Cow;
use std::sync::Arc;

use cognate::engine::rank::{Asked, Question};
use cognate::engine::{BoostBy, Candidates, Engine, Query};

use crate::{
    Cancellation, Choice, ChooseError, Chosen, Collection, CollectionError, ID_BYTES, Item,
    ItemBoosts, ItemSelector, TopQuery, usual_shortlist,
};

/// Results of a collection unless a question says otherwise.
pub const RESULTS: usize = 10;
/// Results of each group unless a question says otherwise.
pub const PER_GROUP: usize = 1;

/// Liked or disliked items that a question names, by their places in the question.
#[derive(Debug, Default)]
pub struct NamedItems {
    items: Vec<Option<Arc<Item>>>,
    /// The places of those that the collection does not have: what somebody liked may be gone.
    pub missing: Vec<usize>,
    /// The places of texts that are word for word ids of items: probably the items are meant.
    pub are_ids: Vec<usize>,
}

/// What is liked or disliked, as a question gives it.
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
    /// Finds the items that are liked; none stands in the place of a text.
    pub fn find(
        collection: &dyn Collection,
        liked: &[LikedBy<'_>],
        now: i64,
    ) -> Result<Self, CollectionError> {
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

    /// Whether the collection has none of them, and no text stands among them.
    pub fn are_gone(&self) -> bool {
        !self.items.is_empty() && self.missing.len() == self.items.len()
    }

    /// The text of the item at a place of the question, if the collection has it.
    pub fn text(&self, place: usize) -> Option<&str> {
        Some(&self.items.get(place)?.as_ref()?.text)
    }

    /// The ids of those that the collection has.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.items.iter().flatten().map(|item| &*item.id)
    }

    /// The place in the question of one of those that are not missing.
    pub fn place(&self, of_found: usize) -> usize {
        self.missing.iter().fold(of_found, |place, missing| place + usize::from(*missing <= place))
    }
}

/// The items that a question ranks.
#[derive(Debug)]
pub struct FoundItems {
    /// The items with their numbers.
    pub items: Vec<(u64, Arc<Item>)>,
    /// Number of items selected; `items` may be the ones among them that can be best.
    pub meant: usize,
    /// Length of the shortlist for each text, if there is one.
    pub shortlist: Option<usize>,
}

/// An item that is ranked by its text.
#[derive(Debug, Clone, Copy)]
pub struct RankedItem<'i>(pub &'i Item);

impl AsRef<str> for RankedItem<'_> {
    fn as_ref(&self) -> &str {
        &self.0.text
    }
}

impl FoundItems {
    /// The items as they are ranked.
    pub fn ranked(&self) -> Vec<RankedItem<'_>> {
        self.items.iter().map(|(_, item)| RankedItem(item)).collect()
    }
}

/// Items as candidates, with their boosts at a clock, and grouped by an attribute, of which so many of a group are
/// results.
pub fn candidates<'c>(
    items: &'c [RankedItem<'c>],
    boosts: Option<(&ItemBoosts, i64)>,
    group_by: Option<(&str, usize)>,
) -> Candidates<'c, RankedItem<'c>> {
    let mut candidates = Candidates::of(items);
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

/// Has boosts rank alone where none of the liked items is left; tells whether there is anything to rank by.
pub fn ranks(question: &mut Question<'_>, liked: &NamedItems, boosts: Option<&ItemBoosts>) -> bool {
    if liked.are_gone() {
        question.asked = Asked::Nothing;
    }
    boosts.is_some() || !question.asked.is_nothing()
}

/// Whether vectors that a collection in this process keeps stand for its items. The few of a shortlist are
/// read: kept vectors lie in blocks, of which these would take nearly all.
pub fn ranks_kept(engine: &Engine, question: &Question<'_>) -> bool {
    question.fusion.is_none() && engine.ranks_kept(&question.query)
}

/// A search for the items that a question ranks.
pub struct ItemSearch<'s> {
    pub collection: &'s dyn Collection,
    pub engine: &'s Engine,
    /// Which items are selected.
    pub which: ItemSelector<'s>,
    pub now: i64,
    /// The length of the shortlist, none for all items; as usual where nothing is said.
    pub shortlist: Option<Option<usize>>,
    /// Whether the collection is kept elsewhere, where no vectors are kept for rankings.
    pub is_remote: bool,
    /// Whether the items are narrowed to those that may be among the best, if the collection can tell: by
    /// bounds of their vectors, or by their tokens. It cannot where boosts or groups count.
    pub narrows: bool,
}

impl ItemSearch<'_> {
    /// Finds the items.
    pub fn find(
        &self,
        question: &Question<'_>,
        cancel: Cancellation<'_>,
    ) -> Result<FoundItems, ChooseError> {
        let best = self.best(question);
        let shortlist = match self.shortlist {
            // Nothing is nearer to nothing.
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

    /// The items that may be among the best. Where any two of them have to be looked at together that cannot
    /// be told.
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

    /// The `length` best items by the vectors of what is asked about; disliked texts say nothing of them.
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
