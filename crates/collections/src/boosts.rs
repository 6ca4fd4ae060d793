//! What counts for an item's score besides its similarity: its age, and its numbers.

use std::f64::consts::LN_2;

use cognate_kernels::elementary;

use crate::{Attribute, Item};

pub const MAX_BOOSTS: usize = 8;

/// A property of an item as a number from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub enum ItemBoost {
    /// Recency: 1 at the collection's clock and later, halved for each `half_life` milliseconds
    /// before it.
    Time { half_life: i64 },
    /// A numeric attribute: the number itself without `half`, else `number / (number + half)`,
    /// which is one half where the number equals `half`. 0 if it is missing or negative; at most 1.
    Attribute { name: Box<str>, half: Option<f64> },
}

impl ItemBoost {
    fn of(&self, item: &Item, clock: i64) -> f64 {
        match self {
            Self::Time { half_life } => {
                let age = clock.saturating_sub(item.time).max(0) as f64;
                elementary::exp(-LN_2 * age / (*half_life).max(1) as f64)
            }
            Self::Attribute { name, half } => {
                let Some(Attribute::Number(number)) = item.attributes.get(name) else { return 0.0 };
                let number = number.as_f64().unwrap_or(0.0).max(0.0);
                match half {
                    // The sum of the two may overflow.
                    Some(half) => 1.0 / (1.0 + half / number),
                    None => number.min(1.0),
                }
            }
        }
    }
}

/// Boosts, each with its share of the score; the similarity has the rest.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ItemBoosts(pub Vec<(ItemBoost, f32)>);

impl ItemBoosts {
    /// The share of the score that the similarity has.
    pub fn rest(&self) -> f32 {
        let boosted: f64 = self.0.iter().map(|(_, share)| f64::from(*share)).sum();
        (1.0 - boosted) as f32
    }

    /// What the boosts add to the score of an item.
    pub fn of(&self, item: &Item, clock: i64) -> f32 {
        let parts = self.0.iter().map(|(boost, share)| f64::from(*share) * boost.of(item, clock));
        parts.sum::<f64>() as f32
    }
}

#[cfg(test)]
mod tests {
    use crate::{Incoming, Item, ItemBoost, ItemBoosts};

    fn item(attributes: &str, time: i64) -> Item {
        let written = format!(r#"{{"id":"a","text":"a","attributes":{attributes}}}"#);
        serde_json::from_str::<Incoming>(&written).unwrap().into_item(time)
    }

    #[test]
    fn a_boost_is_a_number_from_0_to_1() {
        let time = ItemBoost::Time { half_life: 1000 };
        for (written, number) in
            [(5000, 1.0), (6000, 1.0), (4000, 0.5), (3000, 0.25), (i64::MIN, 0.0)]
        {
            let boost = time.of(&item("{}", written), 5000);
            assert!((boost - number).abs() < 1e-12, "{written}: {boost}");
        }
        let of = |half, value: &str| {
            let boost = ItemBoost::Attribute { name: "n".into(), half };
            boost.of(&item(&format!(r#"{{"n":{value}}}"#), 0), 0)
        };
        for (value, number) in
            [("0.25", 0.25), ("7", 1.0), ("-1", 0.0), ("true", 0.0), ("\"7\"", 0.0)]
        {
            assert_eq!(of(None, value), number, "{value}");
        }
        for (value, number) in
            [("0", 0.0), ("100", 0.5), ("300", 0.75), ("-5", 0.0), ("1e308", 1.0)]
        {
            assert_eq!(of(Some(100.0), value), number, "{value}");
        }
        let none = ItemBoost::Attribute { name: "n".into(), half: Some(1.0) };
        assert_eq!(none.of(&item("{}", 0), 0), 0.0);
    }

    #[test]
    fn shares_add_up_to_1() {
        let views = ItemBoost::Attribute { name: "n".into(), half: None };
        let boosts = ItemBoosts(vec![(views, 0.25), (ItemBoost::Time { half_life: 10 }, 0.5)]);
        assert_eq!((boosts.rest(), boosts.of(&item(r#"{"n":1}"#, 0), 10)), (0.25, 0.5));
        assert_eq!(
            (ItemBoosts::default().rest(), ItemBoosts::default().of(&item("{}", 0), 0)),
            (1.0, 0.0)
        );
    }
}
