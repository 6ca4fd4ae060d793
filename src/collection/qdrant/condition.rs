//! Which items are meant, as far as Qdrant tells them apart as [`Filter`] does. What it is asked for admits
//! every item that is meant; whether it admits others as well is known, and then each is looked at here.

use qdrant_client::qdrant;
use qdrant_client::qdrant::Range;

use crate::collection::Attribute;
use crate::collection::Filter;
use crate::collection::Which;
use crate::collection::filter::Condition;
use crate::collection::filter::Test;
use crate::collection::qdrant::points::ATTRIBUTES;
use crate::collection::qdrant::points::has;
use crate::collection::qdrant::points::is;

/// Whole numbers up to this one are compared exactly by Qdrant, which has bounds as numbers of 64 bits
/// with a fraction.
const EXACT: i64 = 1 << 53;

/// What is asked of Qdrant.
#[derive(Debug, PartialEq)]
pub(super) struct Asked {
    meant: Meant,
    /// Whether nothing else is admitted.
    pub(super) is_exact: bool,
}

#[derive(Debug, PartialEq)]
enum Meant {
    All,
    None,
    These(Box<qdrant::Condition>),
}

impl Asked {
    const ALL: Self = Self { meant: Meant::All, is_exact: true };
    const NONE: Self = Self { meant: Meant::None, is_exact: true };
    /// Nothing is known.
    const SOME: Self = Self { meant: Meant::All, is_exact: false };

    /// That an item is meant, and not older than a time.
    pub(super) fn of(which: &Which<'_>, oldest: Option<i64>) -> Self {
        let mut all = vec![Self::filter(&which.filter)];
        // Each is asked for itself: of both the later one counts.
        if let Some(oldest) = which.oldest.max(oldest) {
            all.push(Self::not_before(oldest));
        }
        let without: Vec<String> = which.without.iter().map(ToString::to_string).collect();
        if !without.is_empty() {
            all.push(Self::these(qdrant::Condition::matches("id", without)).not());
        }
        Self::and(all)
    }

    /// That the time of an item is not before another.
    pub(super) fn not_before(oldest: i64) -> Self {
        match oldest {
            oldest if oldest < -EXACT => Self::SOME,
            oldest => {
                let bound = oldest.min(EXACT);
                let range = Range { gte: Some(bound as f64), ..Range::default() };
                let newer = Self::these(qdrant::Condition::range("time", range));
                Self { is_exact: bound == oldest, ..newer }
            }
        }
    }

    /// Whether no item is meant.
    pub(super) fn is_none(&self) -> bool {
        self.meant == Meant::None
    }

    /// The condition, if there is one.
    pub(super) fn condition(self) -> Option<qdrant::Condition> {
        match self.meant {
            Meant::These(condition) => Some(*condition),
            Meant::All | Meant::None => None,
        }
    }

    fn these(condition: qdrant::Condition) -> Self {
        Self { meant: Meant::These(Box::new(condition)), is_exact: true }
    }

    fn and(list: Vec<Self>) -> Self {
        let is_exact = list.iter().all(|one| one.is_exact);
        let mut must = Vec::with_capacity(list.len());
        for one in list {
            match one.meant {
                Meant::None => return Self::NONE,
                Meant::All => {}
                Meant::These(condition) => must.push(*condition),
            }
        }
        match must.is_empty() {
            true => Self { meant: Meant::All, is_exact },
            false => Self { is_exact, ..Self::these(qdrant::Filter::must(must).into()) },
        }
    }

    fn or(list: Vec<Self>) -> Self {
        if list.contains(&Self::ALL) {
            return Self::ALL;
        }
        let is_exact = list.iter().all(|one| one.is_exact);
        let mut should = Vec::with_capacity(list.len());
        for one in list {
            match one.meant {
                Meant::None => {}
                Meant::All => return Self::SOME,
                Meant::These(condition) => should.push(*condition),
            }
        }
        match should.is_empty() {
            true => Self::NONE,
            false => Self { is_exact, ..Self::these(qdrant::Filter::should(should).into()) },
        }
    }

    /// What is admitted beside that which is meant must not be ruled out with it.
    fn not(self) -> Self {
        match (self.meant, self.is_exact) {
            (Meant::None, _) => Self::ALL,
            (Meant::All, true) => Self::NONE,
            (Meant::These(condition), true) => {
                Self::these(qdrant::Filter::must_not([*condition]).into())
            }
            (Meant::All | Meant::These(_), false) => Self::SOME,
        }
    }

    fn filter(filter: &Filter) -> Self {
        Self::and(filter.conditions().iter().map(Self::one).collect())
    }

    fn one(condition: &Condition) -> Self {
        match condition {
            Condition::Any(filters) => Self::or(filters.iter().map(Self::filter).collect()),
            Condition::Not(filter) => Self::filter(filter).not(),
            Condition::Of(name, Test::In(list)) => Self::is_one_of(name, list.list()),
            Condition::Of(name, Test::NotIn(list)) => Self::is_one_of(name, list.list()).not(),
            Condition::Of(name, Test::Exists(true)) => Self::has_any_of(vec![has(name)]),
            Condition::Of(name, Test::Exists(false)) => Self::has_any_of(vec![has(name)]).not(),
            Condition::Of(_, Test::Beside(_, Attribute::Truth(_))) => Self::NONE,
            // Qdrant has no order of texts, and none of numbers that is exact.
            Condition::Of(name, Test::Beside(..)) => {
                Self { is_exact: false, ..Self::has_any_of(vec![has(name)]) }
            }
        }
    }

    fn is_one_of(name: &str, list: &[Attribute]) -> Self {
        Self::has_any_of(list.iter().map(|value| is(name, value)).collect())
    }

    fn has_any_of(written: Vec<String>) -> Self {
        match written.is_empty() {
            true => Self::NONE,
            false => Self::these(qdrant::Condition::matches(ATTRIBUTES, written)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::json;

    use crate::collection::Filter;
    use crate::collection::Which;
    use crate::collection::qdrant::condition::Asked;

    fn asked(filter: Value, oldest: Option<i64>) -> Asked {
        let which = Which {
            filter: Filter::read(&filter.to_string()).unwrap(),
            oldest,
            ..Which::default()
        };
        Asked::of(&which, None)
    }

    #[test]
    fn what_has_an_order_is_decided_here_and_all_else_there() {
        for (filter, is_exact) in [
            (json!({}), true),
            (json!({"a": [1, "x", true], "b": {"ne": 2}, "c": {"exists": false}}), true),
            (json!({"not": {"any": [{"a": 1}, {"b": 2}]}}), true),
            (json!({"a": {"gt": 1}}), false),
            (json!({"any": [{"a": 1}, {"a": {"lt": "x"}}]}), false),
            (json!({"any": [{}, {"a": {"lt": "x"}}]}), true),
            (json!({"not": {"a": {"gt": 1}}}), false),
        ] {
            assert_eq!(asked(filter.clone(), None).is_exact, is_exact, "{filter}");
        }
        assert!(asked(json!({"a": []}), None).is_none());
        assert!(asked(json!({"any": []}), None).is_none());
        assert!(asked(json!({"not": {}}), None).is_none());
        assert_eq!(asked(json!({"not": {"any": []}}), None), Asked::ALL);
        // Of what is ruled out nothing is known, so that nothing may be.
        assert_eq!(asked(json!({"not": {"a": {"gt": 1}}}), None), Asked::SOME);
    }

    #[test]
    fn times_beyond_exact_numbers_are_decided_here() {
        assert!(asked(json!({}), Some(1_700_000_000_000)).is_exact);
        assert!(!asked(json!({}), Some(i64::MAX)).is_exact);
        assert_eq!(asked(json!({}), Some(i64::MIN)), Asked::SOME);
    }
}
