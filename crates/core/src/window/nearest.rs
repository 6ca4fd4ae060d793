//! The nearest so far of one text.

use std::cmp::Ordering;

use crate::window::Near;

#[derive(Debug)]
pub(super) struct Nearest {
    most: usize,
    floor: f32,
    /// The best first.
    list: Vec<Near>,
}

impl Nearest {
    pub(super) fn new(most: usize, floor: f32) -> Self {
        Self { most, floor, list: Vec::with_capacity(most.min(64)) }
    }

    /// A score below this has no place in the list.
    #[inline]
    pub(super) fn least(&self) -> f32 {
        match self.list.last() {
            Some(last) if self.list.len() >= self.most => last.score.max(self.floor),
            _ => self.floor,
        }
    }

    pub(super) fn offer(&mut self, near: Near) {
        if near.score < self.least() || self.most == 0 {
            return;
        }
        let at = self.list.partition_point(|known| order(known, &near) == Ordering::Less);
        if at >= self.most {
            return;
        }
        self.list.truncate(self.most - 1);
        self.list.insert(at, near);
    }

    pub(super) fn into_list(self) -> Vec<Near> {
        self.list
    }
}

/// The higher score first, then the newer text.
pub(super) fn order(one: &Near, other: &Near) -> Ordering {
    other.score.total_cmp(&one.score).then(other.number.cmp(&one.number))
}
