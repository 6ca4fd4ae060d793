//! The same work done for many items on every core; the outcome does not depend on how many.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use crate::files::progress::Progress;

/// What `work` makes of each item, in their order.
pub(super) fn map<T: Sync, R: Send>(
    step: &'static str,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let progress = Progress::count(step);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let share = || {
        let mut made = Vec::new();
        while let Some((place, item)) = {
            let place = next.fetch_add(1, Ordering::Relaxed);
            items.get(place).map(|item| (place, item))
        } {
            made.push((place, work(item)));
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            progress.at(done as u64, items.len() as u64);
        }
        made
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let mut made = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(share)).collect();
        let mut made = share();
        for other in others {
            match other.join() {
                Ok(more) => made.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        made
    });
    made.sort_unstable_by_key(|(place, _)| *place);
    made.into_iter().map(|(_, result)| result).collect()
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
