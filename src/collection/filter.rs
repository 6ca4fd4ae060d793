//! Which items are meant, by their attributes: an object of conditions, all of which must hold.
//!
//! `{"lang": "en", "year": {"gte": 2020}, "any": [{"a": 1}, {"b": [2, 3]}], "not": {"c": true}}`

use std::cmp::Ordering;

use serde_json::Number;
use serde_json::Value;

use crate::collection::Attribute;
use crate::collection::Attributes;

/// Most values of a list.
const MOST_VALUES: usize = 256;
/// Most conditions and values of a filter in all: each may be asked of every item.
const MOST_IN_ALL: usize = 1024;
const TOO_MUCH: &str = "a filter has at most 1,024 conditions and values in all";
/// How deep filters may lie within filters.
const DEEPEST: usize = 4;

/// Which items are meant.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter(Vec<Condition>);

/// One of the conditions.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Condition {
    /// Of an attribute.
    Of(Box<str>, Test),
    /// One of these filters holds.
    Any(Vec<Filter>),
    /// This one does not.
    Not(Filter),
}

/// What an attribute must be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    /// Equal to one of these.
    In(Vec<Attribute>),
    /// Not there, or equal to none of these.
    NotIn(Vec<Attribute>),
    /// There or not.
    Exists(bool),
    /// Of the kind of this one, and so beside it.
    Beside(Side, Attribute),
}

/// On which side of another a value lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Above,
    NotBelow,
    Below,
    NotAbove,
}

/// What is wrong with a filter, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterProblem {
    /// A JSON pointer within the filter.
    pub pointer: String,
    /// What is wrong.
    pub what: &'static str,
}

impl Filter {
    /// Reads a filter.
    pub fn read(written: &Value) -> Result<Self, FilterProblem> {
        let mut left = MOST_IN_ALL;
        filter(written, "", 1, &mut left)
    }

    /// Whether every item is meant.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The conditions, all of which must hold.
    #[cfg(any(feature = "postgres", feature = "qdrant"))]
    pub(super) fn conditions(&self) -> &[Condition] {
        &self.0
    }

    /// Whether an item of these attributes is meant.
    pub fn admits(&self, attributes: &Attributes) -> bool {
        self.0.iter().all(|condition| match condition {
            Condition::Of(name, test) => test.admits(attributes.get(name)),
            Condition::Any(filters) => filters.iter().any(|filter| filter.admits(attributes)),
            Condition::Not(filter) => !filter.admits(attributes),
        })
    }
}

impl Test {
    fn admits(&self, value: Option<&Attribute>) -> bool {
        let is_one_of = |list: &[Attribute]| {
            let equals = |other: &Attribute| value.is_some_and(|value| equal(value, other));
            list.iter().any(equals)
        };
        match self {
            Self::In(list) => is_one_of(list),
            Self::NotIn(list) => !is_one_of(list),
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

fn equal(one: &Attribute, other: &Attribute) -> bool {
    match (one, other) {
        (Attribute::Truth(one), Attribute::Truth(other)) => one == other,
        _ => compare(one, other) == Some(Ordering::Equal),
    }
}

/// The order of two values of one kind.
fn compare(one: &Attribute, other: &Attribute) -> Option<Ordering> {
    match (one, other) {
        (Attribute::Number(one), Attribute::Number(other)) => numbers(one, other),
        (Attribute::Text(one), Attribute::Text(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

/// Numbers are compared exactly, so that long ids stay apart, also from numbers with a fraction.
fn numbers(one: &Number, other: &Number) -> Option<Ordering> {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        (Some(one), None) => Some(beside(one, other.as_f64()?)),
        (None, Some(other)) => Some(beside(other, one.as_f64()?).reverse()),
        (None, None) => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

/// A whole number of at most 64 bits beside one that may have a fraction.
fn beside(whole: i128, other: f64) -> Ordering {
    // The cast holds what is beyond at the ends, where every whole number lies on one side.
    let (floor, fraction) = (other.floor() as i128, other - other.floor());
    whole.cmp(&floor).then(if fraction > 0.0 { Ordering::Less } else { Ordering::Equal })
}

fn filter(
    written: &Value,
    at: &str,
    depth: usize,
    left: &mut usize,
) -> Result<Filter, FilterProblem> {
    let wrong = |at: &str, what| Err(FilterProblem { pointer: at.to_owned(), what });
    let Some(conditions) = written.as_object() else {
        return wrong(at, "a filter is an object");
    };
    if depth > DEEPEST {
        return wrong(at, "filters lie in filters at most 4 deep");
    }
    let mut list = Vec::new();
    for (name, value) in conditions {
        let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        match left.checked_sub(1) {
            Some(fewer) => *left = fewer,
            None => return wrong(&at, TOO_MUCH),
        }
        match (name.as_str(), value) {
            ("any", Value::Array(filters)) => {
                match left.checked_sub(filters.len()) {
                    Some(fewer) => *left = fewer,
                    None => return wrong(&at, TOO_MUCH),
                }
                let each = filters.iter().enumerate();
                let each =
                    each.map(|(place, one)| filter(one, &format!("{at}/{place}"), depth + 1, left));
                list.push(Condition::Any(each.collect::<Result<_, _>>()?));
            }
            ("any", _) => return wrong(&at, "`any` is a list of filters"),
            ("not", value) => list.push(Condition::Not(filter(value, &at, depth + 1, left)?)),
            (name, value) => {
                for test in tests(value, &at, left)? {
                    list.push(Condition::Of(name.into(), test));
                }
            }
        }
    }
    Ok(Filter(list))
}

/// What is asked of one attribute.
fn tests(written: &Value, at: &str, left: &mut usize) -> Result<Vec<Test>, FilterProblem> {
    let Some(operators) = written.as_object() else {
        return Ok(vec![Test::In(values(written, at, left)?)]);
    };
    let mut list = Vec::new();
    for (name, value) in operators {
        let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        let wrong = |what| Err(FilterProblem { pointer: at.clone(), what });
        list.push(match (name.as_str(), value) {
            ("eq" | "in", value) => Test::In(values(value, &at, left)?),
            ("ne", value) => Test::NotIn(values(value, &at, left)?),
            ("exists", Value::Bool(there)) => Test::Exists(*there),
            ("exists", _) => return wrong("`exists` is true or false"),
            ("gt", value) => Test::Beside(Side::Above, bound(value, &at)?),
            ("gte", value) => Test::Beside(Side::NotBelow, bound(value, &at)?),
            ("lt", value) => Test::Beside(Side::Below, bound(value, &at)?),
            ("lte", value) => Test::Beside(Side::NotAbove, bound(value, &at)?),
            _ => return wrong("expected one of eq, ne, in, gt, gte, lt, lte, exists"),
        });
    }
    if list.is_empty() {
        let what = "a condition has at least one of eq, ne, in, gt, gte, lt, lte, exists";
        return Err(FilterProblem { pointer: at.to_owned(), what });
    }
    Ok(list)
}

/// One value, or a list of them.
fn values(written: &Value, at: &str, left: &mut usize) -> Result<Vec<Attribute>, FilterProblem> {
    let values = written.as_array().map_or(1, Vec::len);
    match left.checked_sub(values) {
        Some(fewer) => *left = fewer,
        None => return Err(FilterProblem { pointer: at.to_owned(), what: TOO_MUCH }),
    }
    match written {
        Value::Array(list) if list.len() <= MOST_VALUES => {
            let each = list.iter().enumerate();
            each.map(|(place, one)| value(one, &format!("{at}/{place}"))).collect()
        }
        Value::Array(_) => Err(FilterProblem {
            pointer: at.to_owned(),
            what: "a list of a filter has at most 256 values",
        }),
        one => Ok(vec![value(one, at)?]),
    }
}

fn bound(written: &Value, at: &str) -> Result<Attribute, FilterProblem> {
    match value(written, at)? {
        Attribute::Truth(_) => Err(FilterProblem {
            pointer: at.to_owned(),
            what: "only numbers and strings have an order",
        }),
        other => Ok(other),
    }
}

fn value(written: &Value, at: &str) -> Result<Attribute, FilterProblem> {
    match written {
        Value::Bool(truth) => Ok(Attribute::Truth(*truth)),
        Value::Number(number) => Ok(Attribute::Number(number.clone())),
        Value::String(text) => Ok(Attribute::Text(text.as_str().into())),
        Value::Null | Value::Array(_) | Value::Object(_) => Err(FilterProblem {
            pointer: at.to_owned(),
            what: "expected a string, a number, true or false",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn admits(written: Value, attributes: Value) -> bool {
        let attributes: Attributes = serde_json::from_value(attributes).unwrap();
        Filter::read(&written).unwrap().admits(&attributes)
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

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let deep = json!({"not": {"not": {"not": {"not": {"a": 1}}}}});
        for (filter, pointer) in [
            (json!([]), ""),
            (json!({"a": null}), "/a"),
            (json!({"a": {"near": 1}}), "/a/near"),
            (json!({"a": {}}), "/a"),
            (json!({"a": [1, [2]]}), "/a/1"),
            (json!({"a/b": {"gt": true}}), "/a~1b/gt"),
            (json!({"any": {"a": 1}}), "/any"),
            (json!({"any": [{"a": 1}, {"b": {"exists": 1}}]}), "/any/1/b/exists"),
            (deep, "/not/not/not/not"),
        ] {
            let problem = Filter::read(&filter).unwrap_err();
            assert_eq!(problem.pointer, pointer, "{filter}: {}", problem.what);
        }
    }

    #[test]
    fn what_every_item_is_asked_is_bounded_in_all() {
        let values: Vec<usize> = (0..MOST_VALUES).collect();
        let lists = |lists: usize| {
            let names = (0..lists).map(|list| (format!("a{list}"), json!({"ne": values})));
            Value::Object(names.collect())
        };
        assert!(Filter::read(&lists(3)).is_ok());
        assert_eq!(Filter::read(&lists(4)).unwrap_err().what, TOO_MUCH);
        let free = json!({"any": vec![json!({}); MOST_IN_ALL]});
        assert_eq!(Filter::read(&free).unwrap_err().what, TOO_MUCH);
    }
}
