//! Sets of numbers, most of which follow one another, written as text: `3,7-9`.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::Serialize;

/// A set of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) struct Numbers {
    /// The first and the last of each row of numbers, in order, with at least one number between two rows.
    rows: Vec<(u64, u64)>,
}

impl Numbers {
    /// A set of these.
    pub(super) fn of(numbers: impl IntoIterator<Item = u64>) -> Self {
        Self::joined(numbers.into_iter().map(|number| (number, number)).collect())
    }

    fn joined(mut rows: Vec<(u64, u64)>) -> Self {
        rows.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(rows.len());
        for (first, last) in rows {
            match joined.last_mut() {
                Some((_, before)) if first <= before.saturating_add(1) => {
                    *before = last.max(*before);
                }
                _ => joined.push((first, last)),
            }
        }
        Self { rows: joined }
    }

    /// The first and the last of each row of numbers that follow one another.
    pub(super) fn rows(&self) -> &[(u64, u64)] {
        &self.rows
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds others.
    pub(super) fn add(&mut self, others: &Self) {
        let rows = self.rows.iter().chain(&others.rows).copied().collect();
        *self = Self::joined(rows);
    }

    /// Takes others out.
    pub(super) fn take_out(&mut self, others: &Self) {
        let mut left = Vec::with_capacity(self.rows.len());
        let mut others = others.rows.iter().copied().peekable();
        for (mut first, last) in self.rows.drain(..) {
            let mut is_used_up = false;
            while let Some((from, to)) = others.peek().copied() {
                if to < first {
                    others.next();
                    continue;
                }
                if from > last {
                    break;
                }
                if from > first {
                    left.push((first, from - 1));
                }
                if to >= last {
                    is_used_up = true;
                    break;
                }
                first = to + 1;
            }
            if !is_used_up {
                left.push((first, last));
            }
        }
        self.rows = left;
    }

    /// Takes out those below a number.
    pub(super) fn take_out_below(&mut self, number: u64) {
        if let Some(below) = number.checked_sub(1) {
            self.take_out(&Self { rows: vec![(0, below)] });
        }
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (first, last)) in self.rows.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { "," })?;
            match first == last {
                true => write!(f, "{first}")?,
                false => write!(f, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl From<Numbers> for String {
    fn from(numbers: Numbers) -> Self {
        numbers.to_string()
    }
}

impl FromStr for Numbers {
    type Err = std::num::ParseIntError;

    fn from_str(written: &str) -> Result<Self, Self::Err> {
        let row = |row: &str| match row.split_once('-') {
            Some((first, last)) => Ok((first.parse()?, last.parse()?)),
            None => row.parse().map(|number| (number, number)),
        };
        let rows = written.split(',').filter(|row| !row.is_empty()).map(row);
        Ok(Self::joined(rows.collect::<Result<_, Self::Err>>()?))
    }
}

impl TryFrom<String> for Numbers {
    type Error = std::num::ParseIntError;

    fn try_from(written: String) -> Result<Self, Self::Error> {
        written.parse()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use crate::collection::qdrant::numbers::Numbers;

    fn all(numbers: &Numbers) -> BTreeSet<u64> {
        numbers.rows().iter().flat_map(|(first, last)| *first..=*last).collect()
    }

    proptest! {
        #[test]
        fn they_are_a_set(
            one in prop::collection::btree_set(0u64..60, 0..40),
            other in prop::collection::btree_set(0u64..60, 0..40),
            bound in 0u64..70,
        ) {
            let (first, second) = (Numbers::of(one.clone()), Numbers::of(other.clone()));
            prop_assert_eq!(all(&first), one.clone());
            prop_assert_eq!(first.to_string().parse::<Numbers>().unwrap(), first.clone());
            let mut both = first.clone();
            both.add(&second);
            prop_assert_eq!(all(&both), &one | &other);
            let mut rest = first.clone();
            rest.take_out(&second);
            prop_assert_eq!(all(&rest), &one - &other);
            let mut above = first;
            above.take_out_below(bound);
            prop_assert_eq!(all(&above), one.range(bound..).copied().collect::<BTreeSet<_>>());
        }
    }

    #[test]
    fn rows_are_short_to_write() {
        assert_eq!(Numbers::of([9, 3, 7, 8]).to_string(), "3,7-9");
        assert_eq!(Numbers::default().to_string(), "");
        assert!("3,x".parse::<Numbers>().is_err());
    }
}
