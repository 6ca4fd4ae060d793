//! What a question names and no item of the collection has: mostly it is misspelt.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::{
    AskedAttribute, AttributeKind, Cancellation, ChooseError, Collection, Filter, ItemBoost,
    ItemBoosts,
};

/// Attributes that a question names and no item of the collection has.
#[derive(Debug, Default, Serialize)]
pub struct UnknownNames {
    /// The filter asks for them.
    #[serde(rename = "filter_unknown", skip_serializing_if = "Vec::is_empty")]
    pub filter: Vec<Box<str>>,
    /// The filter asks for a value of a kind that no item has.
    #[serde(rename = "filter_mistyped", skip_serializing_if = "Vec::is_empty")]
    pub mistyped: Vec<Box<str>>,
    /// Items are grouped by it.
    #[serde(rename = "collapse_by_unknown", skip_serializing_if = "Option::is_none")]
    pub group_by: Option<Box<str>>,
    /// Items are boosted by them, and none has a number there.
    #[serde(rename = "boosts_unknown", skip_serializing_if = "Vec::is_empty")]
    pub boosts: Vec<Box<str>>,
}

impl UnknownNames {
    pub fn find(
        collection: &dyn Collection,
        filter: &Filter,
        (group_by, boosts): (Option<&str>, Option<&ItemBoosts>),
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Self, ChooseError> {
        let filter = filter.names();
        let boosts = boosts.iter().flat_map(|boosts| &boosts.0).filter_map(|(boost, _)| {
            let ItemBoost::Attribute { name, .. } = boost else { return None };
            Some((&**name, Some(AttributeKind::Number)))
        });
        let boosts: BTreeSet<AskedAttribute<'_>> = boosts.collect();
        let mut all = &filter | &boosts;
        all.extend(group_by.map(|name| (name, None)));
        let lacking: BTreeSet<_> = collection.lacking(&all, now, cancel)?.into_iter().collect();
        let names = |asked: &BTreeSet<AskedAttribute<'_>>,
                     is_meant: &dyn Fn(&AskedAttribute<'_>) -> bool| {
            let names = asked.intersection(&lacking).filter(|one| is_meant(one));
            let mut names: Vec<Box<str>> = names.map(|(name, _)| (*name).into()).collect();
            names.dedup();
            names
        };
        Ok(Self {
            mistyped: names(&filter, &|(name, kind)| {
                kind.is_some() && !lacking.contains(&(*name, None))
            }),
            filter: names(&filter, &|(_, kind)| kind.is_none()),
            group_by: group_by.filter(|name| lacking.contains(&(*name, None))).map(Box::from),
            boosts: names(&boosts, &|_| true),
        })
    }

    /// What of it a person is told, a line each.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let Self { filter, mistyped, group_by, boosts } = self;
        let none = "no item of the collection has";
        let names = filter.iter().chain(group_by);
        let names = names.map(move |name| format!("{none} the attribute `{name}`"));
        let typed = mistyped.iter();
        let typed = typed.map(move |name| format!("{none} such a value of `{name}`"));
        let numbers = boosts.iter().map(move |name| format!("{none} a number `{name}`"));
        names.chain(typed).chain(numbers)
    }
}
