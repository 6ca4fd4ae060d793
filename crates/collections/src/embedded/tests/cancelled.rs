//! Tests that a filter over many items stops when the caller no longer wants the answer.

use std::cell::Cell;

use cognate::engine::Query;
use cognate::methods::Method;
use serde_json::json;

use super::shortlists::{ENGINE, with};
use crate::{
    Cancellation, Choice, ChooseError, Collection, Filter, ItemSelector, Limits, Page, Several,
    TopQuery,
};

#[test]
fn a_filter_is_asked_no_longer_than_the_answer_is_wanted() {
    let (_home, news) = with((0..6000).map(|at| format!("river {at}")), Limits::DEFAULT);
    let none: Vec<_> = (0..60).map(|at| json!({"n": {"gt": 10_000 + at}})).collect();
    let filter = Filter::read(&json!({ "any": none }).to_string()).unwrap();
    let which = ItemSelector { filter, ..ItemSelector::default() };
    let looks_of = |most: usize, ask: &dyn Fn(Cancellation<'_>) -> Result<(), ChooseError>| {
        let looks = Cell::new(0);
        let is_cancelled = || looks.replace(looks.get() + 1) == most;
        (ask(Cancellation::when(&is_cancelled)), looks.get())
    };
    let wanted = || {
        let texts = vec![("river", 1.0)];
        TopQuery { engine: &ENGINE, texts, several: Several::Each, length: 3 }
    };
    let (shortlist, best) = (Choice::Shortlist(wanted()), Choice::TopQuery(wanted()));
    let counted = Choice::TopByTokens(wanted(), Query::new(Method::Bm25));
    for choice in [Choice::All, shortlist, best, counted] {
        let choose = |cancel: Cancellation<'_>| news.choose(&which, &choice, 0, cancel).map(drop);
        let (stopped, looks) = looks_of(5, &choose);
        assert!(matches!(stopped, Err(ChooseError::Stopped)));
        assert_eq!(looks, 6);
        let (whole, looks) = looks_of(usize::MAX, &choose);
        whole.unwrap();
        assert_eq!(looks, 12, "the filter is asked once");
    }
    let page = |cancel: Cancellation<'_>| {
        news.page(&which, Page { offset: 0, limit: 1 }, 0, cancel).map(drop)
    };
    let (stopped, looks) = looks_of(5, &page);
    assert!(matches!(stopped, Err(ChooseError::Stopped)));
    assert_eq!(looks, 6);
}
