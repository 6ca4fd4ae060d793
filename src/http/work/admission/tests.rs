//! Admission as requests see it. Waiting requests are polled by hand, so the tests do not depend on
//! the machine's speed.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::time::Instant;

use super::*;
use crate::http::auth::client::Resource;
use crate::http::error::{Bottleneck, Code, Result};

const PATIENCE: Duration = Duration::from_secs(1);
/// Enough that 4 of them are small and 16 are reserved for small requests.
const UNITS: usize = 1024;

type Waits<'a> = Pin<Box<dyn Future<Output = Result<Permit>> + 'a>>;

fn ask(admission: &Admission, items: usize) -> Waits<'_> {
    ask_as(admission, &Client::default(), items)
}

fn ask_as<'a>(admission: &'a Admission, client: &Client, items: usize) -> Waits<'a> {
    let client = client.clone();
    Box::pin(async move {
        let mut permit = admission.admit_soon(&client).await?;
        admission.wait_and_top_up(&mut permit, items).await?;
        Ok(permit)
    })
}

fn poll(waits: &mut Waits<'_>) -> Option<Result<Permit>> {
    match waits.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}

fn admitted(waits: &mut Waits<'_>) -> Permit {
    poll(waits).expect("it waits").expect("it is refused")
}

fn refused(waits: &mut Waits<'_>) -> String {
    let error = poll(waits).expect("it waits").expect_err("it is admitted");
    assert_eq!((error.code, error.bottleneck), (Code::Overloaded, Some(Bottleneck::Admission)));
    error.detail.to_string()
}

#[test]
fn items_are_charged_for_and_given_back() {
    let admission = Admission::new(10, 4, PATIENCE, 50);
    let mut one = admission.admit().unwrap();
    admission.top_up(&mut one, 7).unwrap();
    assert_eq!(admission.in_use(), 7);
    let mut other = admission.admit().unwrap();
    assert_eq!(admission.top_up(&mut other, 4).unwrap_err().code, Code::Overloaded);
    assert_eq!(admission.in_use(), 8);
    drop(one);
    admission.top_up(&mut other, 1_000_000).unwrap();
    assert_eq!(admission.in_use(), 10);
    let waits: Vec<_> = (0..2).map(|_| admission.admit().unwrap_err().retry_after_s).collect();
    assert!(waits.contains(&Some(1)) && waits.contains(&Some(2)));
    drop(other);
    assert_eq!(admission.in_use(), 0);
}

#[tokio::test]
async fn large_requests_are_admitted_in_their_order_as_units_become_free() {
    let admission = Admission::new(UNITS, 8, PATIENCE, 50);
    let first = admitted(&mut ask(&admission, 600));
    let (mut second, mut third) = (ask(&admission, 700), ask(&admission, 300));
    assert!(poll(&mut second).is_none() && poll(&mut third).is_none());
    // The third would fit, but then the second could wait for ever.
    assert_eq!((admission.in_use(), admission.waiting()), (600, 2), "who waits holds nothing");
    drop(first);
    let second = admitted(&mut second);
    assert_eq!((admission.in_use(), admission.waiting()), (1000, 0));
    drop((second, admitted(&mut third)));
    assert_eq!(admission.in_use(), 0);
}

#[tokio::test]
async fn two_that_need_all_units_are_served_one_after_the_other() {
    let admission = Admission::new(UNITS, 8, PATIENCE, 50);
    let (mut one, mut other) = (admission.admit().unwrap(), admission.admit().unwrap());
    let mut first = Box::pin(admission.wait_and_top_up(&mut one, UNITS));
    let mut second = Box::pin(admission.wait_and_top_up(&mut other, UNITS));
    let context = &mut Context::from_waker(Waker::noop());
    assert!(first.as_mut().poll(context).is_pending());
    assert!(second.as_mut().poll(context).is_pending());
    // The second returned its one unit, which is what the first still needed.
    assert!(matches!(first.as_mut().poll(context), Poll::Ready(Ok(()))));
    drop(first);
    drop(one);
    assert!(matches!(second.as_mut().poll(context), Poll::Ready(Ok(()))));
    drop(second);
    drop(other);
    assert_eq!(admission.in_use(), 0);
}

#[tokio::test]
async fn small_requests_pass_large_ones_that_wait_and_have_units_of_their_own() {
    let admission = Admission::new(UNITS, 8, PATIENCE, 50);
    let large = admitted(&mut ask(&admission, UNITS));
    assert_eq!(admission.in_use(), UNITS - 16, "some are kept");
    let mut waits = ask(&admission, UNITS);
    assert!(poll(&mut waits).is_none());
    let mut small: Vec<Permit> = (0..4).map(|_| admitted(&mut ask(&admission, 4))).collect();
    let mut beyond = ask(&admission, 4);
    assert!(poll(&mut beyond).is_none(), "all are in use");
    small.pop();
    let last = admitted(&mut beyond);
    // Running work may exceed the limit, and does not keep small requests out.
    let mut running = large;
    admission.charge_running(&mut running, UNITS);
    drop((small, last));
    assert!(admission.admit().is_ok());
    drop(running);
    drop(admitted(&mut waits));
    assert_eq!(admission.in_use(), 0);
}

#[tokio::test]
async fn what_is_computed_is_weighed_although_nothing_is_free() {
    let admission = Admission::new(UNITS, 8, PATIENCE, 50);
    let _large = admitted(&mut ask(&admission, UNITS));
    let mut running = admission.admit().unwrap();
    admission.charge_running(&mut running, 500);
    assert_eq!(admission.in_use(), UNITS - 16 + 500);
    admission.charge_running(&mut running, 3);
    assert_eq!(admission.in_use(), UNITS - 16 + 500, "what was taken is kept");
    assert!(admission.admit().is_ok(), "small requests have their own");
    drop(running);
    assert_eq!(admission.in_use(), UNITS - 16);
}

#[tokio::test]
async fn a_full_queue_refuses_at_once_and_who_leaves_it_makes_room() {
    let admission = Admission::new(UNITS, 2, PATIENCE, 50);
    let held = admitted(&mut ask(&admission, UNITS));
    let (mut first, mut second) = (ask(&admission, 700), ask(&admission, 200));
    assert!(poll(&mut first).is_none() && poll(&mut second).is_none());
    let detail = refused(&mut ask(&admission, 500));
    assert!(detail.contains("`compute_queue`"), "{detail}");
    // A client that goes away lets those behind it pass.
    drop(first);
    assert_eq!(admission.waiting(), 1);
    let mut third = ask(&admission, 100);
    assert!(poll(&mut third).is_none());
    drop(held);
    drop((admitted(&mut second), admitted(&mut third)));
    assert_eq!((admission.in_use(), admission.waiting()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn who_waited_too_long_is_refused_and_those_behind_need_not_wait_as_long() {
    let admission = Admission::new(UNITS, 8, PATIENCE, 50);
    let held = admitted(&mut ask(&admission, UNITS));
    let begun = Instant::now();
    let (late, mut behind) = (ask(&admission, UNITS), ask(&admission, 8));
    let error = late.await.unwrap_err();
    assert!(error.detail.to_string().contains("`admission_wait_ms`"), "{}", error.detail);
    assert_eq!(begun.elapsed(), PATIENCE);
    // The timeout showed how slow the service is: one request may still wait, to see whether that
    // continues; a second, which would have to wait twice as long, need not try.
    assert!(poll(&mut behind).is_none());
    let detail = refused(&mut ask(&admission, UNITS));
    assert!(detail.contains("`admission_wait_ms`"), "{detail}");
    drop(held);
    drop(admitted(&mut behind));
    assert_eq!((admission.in_use(), admission.waiting()), (0, 0));
    // Faster waits lower the estimate again.
    for _ in 0..64 {
        let held = admitted(&mut ask(&admission, UNITS));
        let mut next = ask(&admission, UNITS);
        assert!(poll(&mut next).is_none());
        drop(held);
        drop(admitted(&mut next));
    }
    let _held = admitted(&mut ask(&admission, UNITS));
    let (mut first, mut second) = (ask(&admission, UNITS), ask(&admission, UNITS));
    assert!(poll(&mut first).is_none() && poll(&mut second).is_none());
}

#[tokio::test(start_paused = true)]
async fn as_many_wait_as_can_be_served_in_time_at_the_pace_that_was_seen() {
    let admission = Admission::new(UNITS, 64, PATIENCE, 50);
    // One after the other takes all units for a tenth of the patience.
    for _ in 0..8 {
        let held = admitted(&mut ask(&admission, UNITS));
        let mut next = ask(&admission, UNITS);
        assert!(poll(&mut next).is_none());
        tokio::time::advance(PATIENCE / 10).await;
        drop(held);
        drop(admitted(&mut next));
    }
    let _held = admitted(&mut ask(&admission, UNITS));
    let mut waiting: Vec<_> = (0..10).map(|_| ask(&admission, UNITS)).collect();
    assert!(waiting.iter_mut().all(|waits| poll(waits).is_none()));
    let detail = refused(&mut ask(&admission, UNITS));
    assert!(detail.contains("`admission_wait_ms`"), "{detail}");
}

#[tokio::test]
async fn a_client_leaves_half_of_the_units_and_of_the_places_to_wait_to_others() {
    let admission = Admission::new(UNITS, 8, PATIENCE, 50);
    let (greedy, other) = (Client::counted(), Client::counted());
    let first = admitted(&mut ask_as(&admission, &greedy, 300));
    let mut waiting: Vec<_> = (0..4).map(|_| ask_as(&admission, &greedy, 300)).collect();
    assert!(waiting.iter_mut().all(|waits| poll(waits).is_none()), "half is not 600");
    assert_eq!((admission.in_use(), admission.waiting()), (300, 4));
    let detail = refused(&mut ask_as(&admission, &greedy, 300));
    assert!(detail.contains("`compute_queue`") && detail.contains("`client_share`"), "{detail}");
    let error = admission.refusal(&greedy, 300).expect("the gate agrees");
    assert_eq!(error.detail.to_string(), detail);
    // Others pass those that wait only for their own share, and have their half.
    assert!(admission.refusal(&other, 512).is_none());
    let others = admitted(&mut ask_as(&admission, &other, 512));
    assert_eq!(admission.in_use(), 812);
    let beyond = admission.admit_for(&other).unwrap_err();
    assert!(beyond.detail.to_string().contains("`client_share`"), "{}", beyond.detail);
    // A client without a share may take what is free.
    let anyone = admitted(&mut ask(&admission, 100));
    assert!(admission.admit_for(&greedy).is_ok(), "what its share still has is given at once");
    // Units that a client returns go to its own next request.
    drop(first);
    let mut next = admitted(&mut waiting.remove(0));
    assert!(waiting.iter_mut().all(|waits| poll(waits).is_none()));
    admission.charge_running(&mut next, UNITS);
    assert_eq!(admission.in_use(), 512 + 100 + 512, "more than the share is charged as the share");
    drop((next, others, anyone));
    let second = admitted(&mut waiting.remove(0));
    drop((second, waiting));
    assert_eq!((admission.in_use(), admission.waiting()), (0, 0));
    assert_eq!([greedy.holds(Resource::Units), other.holds(Resource::Units)], [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_in_vain_for_its_own_share_is_told_so() {
    let admission = Admission::new(UNITS, 8, PATIENCE, 50);
    let client = Client::counted();
    let held = admitted(&mut ask_as(&admission, &client, UNITS));
    assert_eq!(admission.in_use(), UNITS / 2);
    let late = ask_as(&admission, &client, 10).await.unwrap_err();
    assert!(late.detail.to_string().contains("`client_share`"), "{}", late.detail);
    assert!(late.detail.to_string().contains("`admission_wait_ms`"), "{}", late.detail);
    drop(held);
    let all = Admission::new(UNITS, 8, PATIENCE, 100);
    let one = admitted(&mut ask_as(&all, &client, UNITS));
    assert_eq!(all.in_use(), UNITS - 16, "a share of all is no share");
    drop(one);
    assert_eq!(client.holds(Resource::Units), 0);
}

#[tokio::test]
async fn without_patience_nobody_waits() {
    let admission = Admission::new(UNITS, 8, Duration::ZERO, 50);
    let _held = admitted(&mut ask(&admission, UNITS));
    let detail = refused(&mut ask(&admission, UNITS));
    assert!(detail.contains("`admission_units`") && !detail.contains("_wait_"), "{detail}");
}
