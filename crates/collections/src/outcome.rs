//! What adding items to a collection in a database changes, computed before anything is written.

use std::collections::{BTreeSet, HashMap};

use crate::Applied;

#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) applied: Applied,
    /// Indices of the added items that remain.
    pub(super) stays: Vec<usize>,
    /// Numbers of the earlier items that leave.
    pub(super) gone: Vec<i64>,
    pub(super) items: usize,
}

impl Outcome {
    /// The outcome of adding items of these names, the first of which gets the number `next`.
    /// `known` are existing items by name, `oldest` as many of the oldest items as there are names.
    pub(super) fn new(
        names: &[&str],
        next: i64,
        (mut known, oldest): (HashMap<String, i64>, BTreeSet<i64>),
        mut items: usize,
        most: Option<usize>,
    ) -> Self {
        let names_of: HashMap<i64, String> =
            known.iter().map(|(name, number)| (*number, name.clone())).collect();
        let (mut queue, mut applied, mut gone) = (oldest, Applied::default(), Vec::new());
        let name_of = |number: i64| -> Option<&str> {
            let place = usize::try_from(number - next).ok();
            let old = || names_of.get(&number).map(String::as_str);
            place.and_then(|place| names.get(place).copied()).or_else(old)
        };
        for (number, name) in (next..).zip(names) {
            match known.insert((*name).to_owned(), number) {
                Some(before) => {
                    queue.remove(&before);
                    gone.extend((before < next).then_some(before));
                    applied.replaced += 1;
                }
                None => {
                    applied.added += 1;
                    items += 1;
                }
            }
            queue.insert(number);
            while most.is_some_and(|most| items > most)
                && let Some(first) = queue.pop_first()
            {
                if let Some(name) = name_of(first) {
                    known.remove(name);
                }
                gone.extend((first < next).then_some(first));
                applied.left += 1;
                items -= 1;
            }
        }
        let stays = (next..).zip(names).enumerate();
        let stays = stays.filter(|(_, (number, name))| known.get(**name) == Some(number));
        let stays = stays.map(|(place, _)| place).collect();
        Self { applied, stays, gone, items }
    }
}
