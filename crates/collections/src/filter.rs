//! A selection of items by their attributes: an object of conditions, all of which must hold.
//!
//! `{"lang": "en", "year": {"gte": 2020}, "any": [{"a": 1}, {"b": [2, 3]}], "not": {"c": true}}`
//!
//! `time` is the item's own: `{"time": {"gte": "2026-06-01"}}`. The module `read` parses filters
//! and limits their size.

mod read;

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};

use serde_json::Number;

use crate::{AskedAttribute, Attribute, AttributeKind, Attributes};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter(Vec<Condition>);

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Condition {
    Of(Box<str>, Comparison),
    Time(Comparison),
    Any(Vec<Filter>),
    Not(Filter),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Comparison {
    In(Values),
    /// Missing, or equal to none of these.
    NotIn(Values),
    Exists(bool),
    /// Compares an attribute with a value; only a value of the same kind passes.
    Beside(Side, Attribute),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Above,
    NotBelow,
    Below,
    NotAbove,
}

/// A list of values to look an attribute up in.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Values {
    list: Vec<Attribute>,
    /// The same values by kind, so that a long list takes no longer than a short one.
    texts: HashSet<Box<str>>,
    numbers: HashSet<ExactNumber>,
    truths: [bool; 2],
}

/// A number by its exact value: 1 and 1.0 are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ExactNumber {
    Whole(i128),
    /// The bits of a number with a fraction, or beyond 128-bit whole numbers.
    Other(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterProblem {
    pub pointer: String,
    pub what: &'static str,
}

impl Filter {
    pub fn read(written: &str) -> Result<Self, FilterProblem> {
        read::filter(written)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn conditions(&self) -> &[Condition] {
        &self.0
    }

    /// Number of tests per item; a list of values counts as one.
    pub fn questions(&self) -> usize {
        let of_one = |condition: &Condition| match condition {
            Condition::Of(..) | Condition::Time(_) => 1,
            Condition::Any(filters) => 1 + filters.iter().map(Self::questions).sum::<usize>(),
            Condition::Not(filter) => 1 + filter.questions(),
        };
        self.0.iter().map(of_one).sum()
    }

    /// The attributes that the filter names, once by name and once with each kind of its values.
    pub fn names(&self) -> BTreeSet<AskedAttribute<'_>> {
        let mut names = BTreeSet::new();
        for condition in &self.0 {
            match condition {
                Condition::Of(name, test) => {
                    names.insert((&**name, None));
                    names.extend(test.kinds().map(|kind| (&**name, Some(kind))));
                }
                Condition::Time(_) => {}
                Condition::Any(filters) => names.extend(filters.iter().flat_map(Self::names)),
                Condition::Not(filter) => names.extend(filter.names()),
            }
        }
        names
    }

    pub fn admits(&self, attributes: &Attributes, time: i64) -> bool {
        self.0.iter().all(|condition| match condition {
            Condition::Of(name, test) => test.admits(attributes.get(name)),
            Condition::Time(test) => test.admits(Some(&Attribute::Number(time.into()))),
            Condition::Any(filters) => filters.iter().any(|filter| filter.admits(attributes, time)),
            Condition::Not(filter) => !filter.admits(attributes, time),
        })
    }
}

impl Comparison {
    fn kinds(&self) -> impl Iterator<Item = AttributeKind> {
        let values = match self {
            Self::In(values) | Self::NotIn(values) => &*values.list,
            Self::Beside(_, value) => std::slice::from_ref(value),
            Self::Exists(_) => &[],
        };
        values.iter().map(Attribute::kind)
    }

    pub(super) fn admits(&self, value: Option<&Attribute>) -> bool {
        match self {
            Self::In(values) => value.is_some_and(|value| values.contain(value)),
            Self::NotIn(values) => !value.is_some_and(|value| values.contain(value)),
            Self::Exists(there) => value.is_some() == *there,
            Self::Beside(side, other) => {
                let order = value.and_then(|value| compare(value, other));
                order.is_some_and(|order| match side {
                    Side::Above => order == Ordering::Greater,
                    Side::NotBelow => order != Ordering::Less,
                    Side::Below => order == Ordering::Less,
                    Side::NotAbove => order != Ordering::Greater,
                })
            }
        }
    }
}

impl Values {
    fn new(list: Vec<Attribute>) -> Self {
        let mut values = Self::default();
        for value in &list {
            match value {
                Attribute::Truth(truth) => values.truths[usize::from(*truth)] = true,
                Attribute::Number(number) => {
                    values.numbers.insert(ExactNumber::new(number));
                }
                Attribute::Text(text) => {
                    values.texts.insert(text.clone());
                }
            }
        }
        Self { list, ..values }
    }

    pub(super) fn list(&self) -> &[Attribute] {
        &self.list
    }

    fn contain(&self, value: &Attribute) -> bool {
        match (value, &*self.list) {
            // Most lists have one value, and texts of another length are not compared.
            (Attribute::Text(text), [Attribute::Text(only)]) => text == only,
            (Attribute::Text(text), _) => self.texts.contains(&**text),
            (Attribute::Number(number), _) => self.numbers.contains(&ExactNumber::new(number)),
            (Attribute::Truth(truth), _) => self.truths[usize::from(*truth)],
        }
    }
}

impl ExactNumber {
    /// The shortest number that is equal.
    pub(super) fn number(self) -> Number {
        let float = |float: f64| Number::from_f64(float).unwrap_or_else(|| 0.into());
        match self {
            Self::Whole(whole) => Number::from_i128(whole).unwrap_or_else(|| float(whole as f64)),
            Self::Other(bits) => float(f64::from_bits(bits)),
        }
    }

    pub(super) fn new(number: &Number) -> Self {
        let float = |float: f64| {
            // Whole floats below 2^127 are exact as whole numbers.
            let whole = float.fract() == 0.0 && float.abs() < 2.0_f64.powi(127);
            if whole { Self::Whole(float as i128) } else { Self::Other(float.to_bits()) }
        };
        let whole = number.as_i128().map(Self::Whole);
        whole.unwrap_or_else(|| float(number.as_f64().unwrap_or_default()))
    }
}

pub(super) fn compare(one: &Attribute, other: &Attribute) -> Option<Ordering> {
    match (one, other) {
        (Attribute::Number(one), Attribute::Number(other)) => numbers(one, other),
        (Attribute::Text(one), Attribute::Text(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

/// Compares exactly, so that long ids differ, also from numbers with a fraction.
fn numbers(one: &Number, other: &Number) -> Option<Ordering> {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        (Some(one), None) => Some(beside(one, other.as_f64()?)),
        (None, Some(other)) => Some(beside(other, one.as_f64()?).reverse()),
        (None, None) => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

/// Compares a whole number of at most 64 bits with a float.
fn beside(whole: i128, other: f64) -> Ordering {
    // The cast saturates, and beyond its ends every whole number lies on one side.
    let (floor, fraction) = (other.floor() as i128, other - other.floor());
    whole.cmp(&floor).then(if fraction > 0.0 { Ordering::Less } else { Ordering::Equal })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn admits(written: Value, attributes: Value) -> bool {
        let attributes: Attributes = serde_json::from_value(attributes).unwrap();
        Filter::read(&written.to_string()).unwrap().admits(&attributes, 1_780_272_000_000)
    }

    #[test]
    fn time_is_that_of_the_item() {
        // The item is from the beginning of June 2026.
        for (filter, expected) in [
            (json!({"time": {"gte": "2026-06-01", "lt": "2026-07-01T12:00"}}), true),
            (json!({"time": {"gt": "2026-06-01T00:00:00Z"}}), false),
            (json!({"time": {"lt": "2026-06-01T02:00:00.001+02:00"}}), true),
            (json!({"time": ["2025-06-01", 1_780_272_000]}), true),
            (json!({"time": {"in": [1_780_272_000_000_i64, 5]}}), true),
            (json!({"time": {"ne": "2026-06-01 00:00"}}), false),
            (json!({"time": {"exists": true}, "not": {"time": 1_780_272_000.5}}), true),
        ] {
            assert_eq!(admits(filter.clone(), json!({})), expected, "{filter}");
            assert!(Filter::read(&filter.to_string()).unwrap().names().is_empty());
        }
    }

    #[test]
    fn every_condition_must_hold() {
        let item =
            json!({"lang": "en", "year": 2021, "open": true, "big": 9_007_199_254_740_993_u64});
        for (filter, expected) in [
            (json!({}), true),
            (json!({"lang": "en"}), true),
            (json!({"lang": "en", "year": 2020}), false),
            (json!({"lang": ["de", "en"]}), true),
            (json!({"lang": []}), false),
            (json!({"year": {"gte": 2020, "lt": 2022}}), true),
            (json!({"year": {"gt": 2021}}), false),
            (json!({"year": {"lte": 2021.0}}), true),
            (json!({"year": 2021.0}), true),
            (json!({"year": {"gte": "2020"}}), false),
            (json!({"year": "2021"}), false),
            (json!({"big": 9_007_199_254_740_992_u64}), false),
            (json!({"big": 9_007_199_254_740_993_u64}), true),
            (json!({"big": {"gt": 9_007_199_254_740_992.0}}), true),
            (json!({"big": 9_007_199_254_740_992.0}), false),
            (json!({"year": {"gt": 2020.5, "lt": 2021.5}}), true),
            (json!({"year": {"lt": 1e300, "gt": -1e300}}), true),
            (json!({"open": true, "lang": {"ne": "de"}}), true),
            (json!({"missing": {"ne": "x"}}), true),
            (json!({"missing": {"exists": false}, "open": {"exists": true}}), true),
            (json!({"lang": {"gt": "de", "lt": "fr"}}), true),
            (json!({"any": [{"lang": "de"}, {"year": {"in": [2021, 2022]}}]}), true),
            (json!({"any": []}), false),
            (json!({"not": {"lang": "de"}}), true),
            (json!({"not": {"any": [{"lang": "en"}]}}), false),
        ] {
            assert_eq!(admits(filter.clone(), item.clone()), expected, "{filter}");
        }
    }
}
