//! Models that several threads use, and that another replaces meanwhile. Made of bytes, so that Miri, which maps no
//! files, can run it (stage `miri` of `.ci/long`).

use std::sync::Arc;

use arc_swap::ArcSwap;
use cognate::engine::{Engine, PreparedText, Query, RankOptions};
use cognate::methods::Method;
use cognate::model::Model;
use cognate_testing as support;

const TEXT: &str = "the quake hits the city";
const LIST: [&str; 3] = ["an earthquake shakes new york", "the town", "???"];

fn kept() -> Arc<Engine> {
    let bytes = include_bytes!("../../data/model/cognate-1.safetensors");
    Arc::new(Engine::new(Model::from_bytes(bytes, &support::full()).unwrap()).unwrap())
}

#[test]
fn a_model_is_replaced_while_others_rank_by_it() {
    let query = Query::new(Method::AvgCos);
    // As the service holds its models.
    let served = ArcSwap::new(kept());
    let expected = served.load().rank(TEXT, &LIST, &query).unwrap();
    assert_eq!(expected.results.len(), 2, "{expected:?}");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..3 {
                    assert_eq!(served.load().rank(TEXT, &LIST, &query).unwrap(), expected);
                    assert_eq!(served.load_full().rank(TEXT, &LIST, &query).unwrap(), expected);
                }
            });
        }
        for _ in 0..3 {
            served.store(kept());
        }
    });
}

#[test]
fn a_prepared_text_holds_the_model_that_was_replaced() {
    let options = RankOptions::all(Query::new(Method::AvgCos));
    let served = ArcSwap::new(kept());
    let expected = served.load().rank_best(TEXT, &LIST, &options).unwrap();
    let mut text = PreparedText::new(served.load_full(), TEXT, options).unwrap();
    drop(served.swap(kept()));
    let ranks = std::thread::spawn(move || [text.rank(&LIST).unwrap(), text.rank(&LIST).unwrap()]);
    assert_eq!(ranks.join().unwrap(), [expected.clone(), expected]);
}
