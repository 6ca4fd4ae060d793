//! How many items have each value of an attribute.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use crate::filter::{ExactNumber, compare};
use crate::{Attribute, Cancellation, ChooseError, CollectionError, Item, Result};

/// Items counted between two checks for cancellation.
const PIECE: usize = 4096;

/// Most different values that are counted for all attributes of one request together.
pub const MAX_COUNTED_VALUES: usize = 100_000;

#[derive(Debug, Clone, PartialEq)]
pub struct Facets {
    /// Number of selected items.
    pub total: usize,
    pub each: Vec<Facet>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facet {
    pub items: usize,
    pub distinct: usize,
    /// The most frequent values with their counts; of equally frequent values the lower first.
    pub values: Vec<(Attribute, usize)>,
}

/// A value by which equal attributes are found.
#[derive(PartialEq, Eq, Hash)]
enum Value<'i> {
    Truth(bool),
    Number(ExactNumber),
    Text(&'i str),
}

impl<'i> From<&'i Attribute> for Value<'i> {
    fn from(attribute: &'i Attribute) -> Self {
        match attribute {
            Attribute::Truth(truth) => Self::Truth(*truth),
            Attribute::Number(number) => Self::Number(ExactNumber::new(number)),
            Attribute::Text(text) => Self::Text(text),
        }
    }
}

impl Value<'_> {
    /// The canonical form of all equal attributes.
    pub(super) fn attribute(&self) -> Attribute {
        match self {
            Self::Truth(truth) => Attribute::Truth(*truth),
            Self::Number(number) => Attribute::Number(number.number()),
            Self::Text(text) => Attribute::Text((*text).into()),
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            (Self::Text(_), _) => Ordering::Greater,
            (_, Self::Text(_)) => Ordering::Less,
            (Self::Truth(one), Self::Truth(other)) => one.cmp(other),
            (Self::Truth(_), Self::Number(_)) => Ordering::Less,
            (Self::Number(_), Self::Truth(_)) => Ordering::Greater,
            (Self::Number(_), Self::Number(_)) => {
                compare(&self.attribute(), &other.attribute()).unwrap_or(Ordering::Equal)
            }
        }
    }
}

impl Attribute {
    /// The canonical form of equal values.
    #[cfg(feature = "postgres")]
    pub(super) fn as_told(&self) -> Self {
        Value::from(self).attribute()
    }
}

impl Facets {
    /// Counts the values of attributes, and returns the most frequent of each.
    pub(super) fn count<'i>(
        items: impl Iterator<Item = (u64, &'i Arc<Item>)>,
        (names, most): (&[&str], usize),
        cancel: Cancellation<'_>,
    ) -> Result<Self, ChooseError> {
        let mut counts: Vec<HashMap<Value<'i>, usize>> = Vec::new();
        counts.resize_with(names.len(), HashMap::new);
        let (mut total, mut different) = (0, 0);
        for (_, item) in items {
            if total % PIECE == 0 {
                cancel.check()?;
            }
            total += 1;
            for (name, counts) in names.iter().zip(&mut counts) {
                let Some(value) = item.attributes.get(name) else { continue };
                // More values are refused below.
                if different <= MAX_COUNTED_VALUES {
                    let before = counts.len();
                    *counts.entry(value.into()).or_default() += 1;
                    different += counts.len() - before;
                }
            }
        }
        check_different(different)?;
        let facet = |counts: HashMap<Value<'i>, usize>| {
            let (items, distinct) = (counts.values().sum(), counts.len());
            let mut values: Vec<(&Value<'_>, usize)> =
                counts.iter().map(|(value, count)| (value, *count)).collect();
            values.sort_by(|(one, count), (other, more)| {
                more.cmp(count).then_with(|| one.order(other))
            });
            values.truncate(most);
            let told = values.into_iter().map(|(value, count)| (value.attribute(), count));
            Facet { items, distinct, values: told.collect() }
        };
        Ok(Self { total, each: counts.into_iter().map(facet).collect() })
    }
}

pub(super) fn check_different(values: usize) -> Result<()> {
    match values > MAX_COUNTED_VALUES {
        true => Err(CollectionError::TooManyChosen { limit: MAX_COUNTED_VALUES }),
        false => Ok(()),
    }
}
