//! Names in a question that no item of the collection has: mostly typing errors.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::{
    AskedAttribute, AttributeKind, Cancellation, ChooseError, Collection, Filter, ItemBoost,
    ItemBoosts,
};

#[derive(Debug, Default, Serialize)]
pub struct UnknownNames {
    #[serde(rename = "filter_unknown", skip_serializing_if = "Vec::is_empty")]
    pub filter: Vec<Box<str>>,
    /// Attributes for which the filter wants a kind of value that no item has.
    #[serde(rename = "filter_mistyped", skip_serializing_if = "Vec::is_empty")]
    pub mistyped: Vec<Box<str>>,
    #[serde(rename = "collapse_by_unknown", skip_serializing_if = "Option::is_none")]
    pub group_by: Option<Box<str>>,
    /// Attributes to boost by that are a number in no item.
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

    /// The messages for a person, a line each.
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
