//! The same work for many items on every core; the outcome does not depend on how many.

use std::sync::atomic::{AtomicU64, Ordering};

use cognate_files::progress::Progress;
use rayon::prelude::*;

/// What `work` makes of each item, in their order.
pub(super) fn map<T: Sync, R: Send>(
    step: &'static str,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let progress = Progress::count(step);
    let done = AtomicU64::new(0);
    let counted = |item: &T| {
        let result = work(item);
        progress.at(done.fetch_add(1, Ordering::Relaxed) + 1, items.len() as u64);
        result
    };
    // Items take milliseconds and differ widely, so each can be taken by an idle thread.
    items.par_iter().with_max_len(1).map(counted).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_stand_in_the_order_of_their_items() {
        let items: Vec<u64> = (0..1000).collect();
        let squares = super::map("squares", &items, |item| item * item);
        assert!(items.iter().zip(&squares).all(|(item, square)| item * item == *square));
        assert!(super::map("nothing", &[] as &[u64], |item| *item).is_empty());
    }
}
