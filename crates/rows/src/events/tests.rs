//! Texts that come late are put in order as far as the slack allows.

use crate::events::output::Order;
use crate::events::source::Tweet;

fn tweet(time: i64) -> Tweet {
    Tweet { raw: "".into(), text: "".into(), id: None, time }
}

/// The times of texts in the order in which they leave, and how many were too late.
fn through(slack: i64, times: &[i64]) -> (Vec<i64>, usize) {
    let mut order = Order::new(slack);
    let mut left = Vec::new();
    let mut late = 0;
    for &time in times {
        late += usize::from(order.take(tweet(time)));
        left.extend(order.ready(false).into_iter().map(|tweet| tweet.time));
    }
    left.extend(order.ready(true).into_iter().map(|tweet| tweet.time));
    (left, late)
}

#[test]
fn without_slack_texts_leave_as_they_come() {
    assert_eq!(through(0, &[5, 3, 9, 9, 1]), (vec![5, 3, 9, 9, 1], 2));
}

#[test]
fn within_the_slack_texts_leave_in_order_and_later_ones_at_once() {
    assert_eq!(through(10, &[5, 3, 9, 20, 12]), (vec![3, 5, 9, 12, 20], 0));
    // The third is 27 behind the second: what is left of the order is kept.
    assert_eq!(through(10, &[5, 30, 3, 31]), (vec![5, 3, 30, 31], 1));
}

#[test]
fn a_text_waits_until_none_can_come_before_it() {
    let mut order = Order::new(10);
    order.take(tweet(100));
    assert!(order.ready(false).is_empty());
    order.take(tweet(109));
    assert!(order.ready(false).is_empty());
    order.take(tweet(110));
    assert_eq!(order.ready(false).len(), 1);
    assert_eq!(order.ready(true).len(), 2);
}
