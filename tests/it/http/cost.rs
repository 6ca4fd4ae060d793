//! Work is weighed before it is begun: by how many words texts have, for every method, and what
//! would certainly be late is refused at once.

use std::path::Path;
use std::time::Instant;

use cognate::engine::{Engine, Query};
use cognate::methods::{Kind, Method};
use cognate::model::Model;
use cognate::text::{Tokens, tokenise};
use cognate_server::http::Models;
use cognate_server::http::api::cost::Cost;
use cognate_server::http::request::query::{Resolved, estimate};
use cognate_server::http::work::pool::INLINE_NANOS;
use serde_json::json;

use crate::support;
use crate::support::app::TestApp;

/// Dimensions of the default model.
const DIMS: u64 = 256;
/// Words of a text, from one to the most there may be.
const LENGTHS: [u64; 6] = [1, 4, 16, 64, 256, 512];

fn default_model() -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/default.safetensors");
    Model::open(&path, &support::structure()).unwrap()
}

fn two_threads() -> TestApp {
    TestApp::with_model(default_model(), |settings| settings.compute_threads = Some(2))
}

fn resolved(method: Method) -> Resolved {
    let shelf = Models::with_engine("default", Engine::new(default_model()).unwrap());
    Resolved { model: shelf.choose(None).unwrap().clone(), query: Query::new(method), fused: None }
}

/// A text of so many different words.
fn words(first: usize, count: usize) -> String {
    let model = default_model();
    let vocabulary = model.vocabulary();
    let words = vocabulary.words().filter(|word| word.len() < 8).skip(first);
    words.take(count).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn what_cannot_be_done_in_time_is_refused_and_the_batch_that_can_is_named() {
    let app = two_threads();
    let (a, b) = (words(0, 512), words(512, 512));
    for method in [Method::Wmd, Method::Wrd] {
        let pairs = vec![[&a, &b]; 900];
        let body = json!({"pairs": pairs, "method": method.name()}).to_string();
        let begun = Instant::now();
        let answer = app.post("/similarity", body).await;
        let problem = answer.refusal(422, "too_much_work");
        assert!(begun.elapsed().as_secs_f64() < 1.5, "the deadline is 2 s");
        assert_eq!(answer.header("retry-after"), "");
        let detail = problem["detail"].as_str().unwrap();
        let named: usize = detail.rsplit("about ").next().unwrap().parse().unwrap();
        assert!((20..600).contains(&named), "{detail}");
        let plan = |pairs: usize| {
            let resolved = resolved(method);
            let multiplications = resolved.multiplications(&a, &b) * pairs as u64;
            Cost::new(&resolved, pairs, (a.len() + b.len()) * pairs, [multiplications; 2], &app.app)
        };
        // What is named fits; what could be done on a machine half as fast again is tried.
        assert!(plan(named).is_ok() && plan(named * 3 / 2).is_ok() && plan(named * 5 / 2).is_err());
    }
}

/// One thread computes one pair, however many there are.
#[tokio::test]
async fn a_pair_that_alone_is_too_much_is_said_to_be() {
    let app = TestApp::with_model(default_model(), |settings| {
        settings.compute_threads = Some(64);
        settings.compute_deadline_ms = 2;
    });
    let body = json!({"a": words(0, 512), "b": words(512, 512), "method": "wmd"}).to_string();
    let problem = app.post("/similarity", body).await.refusal(422, "too_much_work");
    assert!(problem["detail"].as_str().unwrap().ends_with("not even one could"), "{problem}");
}

/// Bounds may rule out most candidates, so that a ranking of which only the best are wanted is not
/// certain to be late.
#[tokio::test]
async fn only_what_is_certain_is_too_much() {
    let app = two_threads();
    let candidates = vec![words(512, 512); 700];
    let resolved = resolved(Method::Wmd);
    let texts = || candidates.iter().map(String::as_str);
    let asked = words(0, 512);
    let one = || std::iter::once(asked.as_str());
    let [least, most] = resolved.multiplications_of_ranking(one(), texts(), true);
    assert!(least * 3 < most);
    let [all, same] = resolved.multiplications_of_ranking(one(), texts(), false);
    let twice = resolved.multiplications_of_ranking(one().chain(one()), texts(), true);
    assert_eq!(twice, [2 * least, 2 * most]);
    assert_eq!((all, same), (most, most));
    let bytes = texts().map(str::len).sum();
    assert!(Cost::new(&resolved, 700, bytes, [least, most], &app.app).is_ok());
    assert!(Cost::new(&resolved, 700, bytes, [most, most], &app.app).is_err());
}

/// Short words are as much work as long ones.
#[test]
fn texts_are_weighed_by_words_not_by_bytes() {
    let two = |first: u8| {
        let words =
            (0..64).map(|n| format!("{}{}", (first + n / 26) as char, (b'a' + n % 26) as char));
        words.collect::<Vec<_>>().join(" ")
    };
    let (a, b) = (two(b'a'), two(b'm'));
    for (method, inline) in [(Method::AvgCos, true), (Method::Wmd, false), (Method::Wrd, false)] {
        let nanos = estimate(a.len() + b.len(), resolved(method).multiplications(&a, &b));
        assert_eq!(nanos <= INLINE_NANOS, inline, "{}: {nanos}", method.name());
    }
    let long = |text: &str| text.replace(' ', "aaaaaaaa ");
    let resolved = resolved(Method::DynamaxJaccard);
    assert_eq!(resolved.multiplications(&a, &b), resolved.multiplications(&long(&a), &long(&b)));
}

/// A text with more bytes than a text may have is refused, or has no score, without being read: so its words
/// are not counted, and it is told that it is too long and not that its words are too much work.
#[tokio::test]
async fn a_text_is_weighed_by_the_words_that_are_read_of_it() {
    let app = TestApp::with_model(default_model(), |settings| {
        settings.compute_threads = Some(2);
        settings.compute_deadline_ms = 500;
    });
    let limit = app.app.settings.text_bytes;
    let (long, longer) = ("ab ".repeat(limit / 3), "ab ".repeat(limit));
    let resolved = resolved(Method::Wmd);
    let one_word = resolved.multiplications("a", "a");
    assert!(resolved.multiplications(&long, &long) > 1000 * one_word);
    assert_eq!(resolved.multiplications(&longer, &longer), one_word);
    let mut cut = self::resolved(Method::Wmd);
    cut.query.truncate = true;
    assert_eq!(cut.multiplications(&longer, &longer), cut.multiplications(&long, &long));
    let explained = json!({"a": longer, "b": "quake", "method": "dynamax"});
    app.post("/explain", explained.to_string()).await.refusal(422, "text_too_long");
    // Spans are weighed by the query and the longest document.
    let documents = vec![words(512, 500); 100];
    for query in [words(0, 500), longer] {
        let body = json!({"query": query, "documents": documents, "model": "tiny:wmd",
            "relevant_spans": {"mode": "enabled"}});
        let answer = app.post("/v2/rerank", body.to_string()).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["code"]),
            (400, &json!("too_much_work"))
        );
    }
}

/// Whatever stands between words, and wherever they come from, they are weighed as the words that the
/// tokeniser then finds.
#[tokio::test]
async fn no_mark_hides_work() {
    let app = two_threads();
    let model = default_model();
    let cut = |text: &str| {
        let mut tokens = Tokens::new();
        tokenise(model.normalisation(), text, &mut tokens);
        tokens.len().min(512) as u64
    };
    let (a, b) = (words(0, 500), words(500, 500));
    let short = |word: &str| word.repeat(256);
    let tags = [short("Ab"), short("Cd")].map(|text| format!("#{text}"));
    for method in [Method::Wmd, Method::Wrd] {
        let resolved = resolved(method);
        let marked = ["—", "\u{a0}", "…", "·", "\u{3000}", "،", "😀", "_", "''", "’’"];
        let marked = marked.map(|mark| [&a, &b].map(|text| text.replace(' ', mark)));
        for [a, b] in marked.iter().chain([&tags]) {
            let [many, others] = [a, b].map(|text| cut(text));
            assert!(many >= 256 && others >= 256, "{many} and {others} of {a:.40}");
            let taken = (method.info().cost.pair)(many, others, DIMS);
            let weighed = resolved.multiplications(a, b);
            assert!(weighed * 10 >= taken * 9, "{weighed} for {taken}: {a:.40}");
        }
        let [a, b] = [&a, &b].map(|text| text.replace(' ', "—"));
        let body = json!({"pairs": vec![[&a, &b]; 700], "method": method.name()}).to_string();
        app.post("/similarity", body).await.refusal(422, "too_much_work");
    }
}

#[test]
fn more_words_are_more_work_by_every_method() {
    for &method in Method::ALL {
        let (name, cost) = (method.name(), &method.info().cost);
        let formulas = [Some(cost.pair), Some(cost.candidate), cost.bound];
        for formula in formulas.into_iter().flatten() {
            for pair in LENGTHS.windows(2) {
                let [few, many] = [pair[0], pair[1]].map(|n| formula(n, n, DIMS));
                assert!(few < many, "{name}: {few} for {}, {many} for {}", pair[0], pair[1]);
            }
        }
        for (n, m) in LENGTHS.iter().flat_map(|&n| LENGTHS.map(|m| (n, m))) {
            let candidate = (cost.candidate)(n, m, DIMS);
            // A candidate shares one side with others. To remember its words costs a little.
            assert!(candidate * 4 <= (cost.pair)(n, m, DIMS) * 5, "{name}: {n} x {m}");
            assert!(cost.bound.is_none_or(|bound| bound(n, m, DIMS) < candidate), "{name}");
        }
    }
}

/// What was measured to be more work is estimated to be more, by the method's kind: sums of vectors,
/// products of all words, quotients of them, transport.
#[test]
fn methods_are_in_the_order_of_their_work() {
    let order = [
        Method::AvgCos,
        Method::Sif,
        Method::MaxCos,
        Method::Usif,
        Method::DynamaxJaccard,
        Method::DynamaxWeighted,
        Method::Blend,
        Method::SoftCardinality,
        Method::Wmd,
    ];
    for n in [64, 256, 512] {
        let costs = order.map(|method| (method.info().cost.pair)(n, n, DIMS));
        assert!(costs.is_sorted(), "{n} words: {costs:?}");
    }
    let growth = |method: Method| {
        let pair = method.info().cost.pair;
        pair(512, 512, DIMS) / pair(64, 64, DIMS)
    };
    for method in Method::ALL.iter().filter(|method| method.info().kind == Kind::Similarity) {
        let grows = growth(*method);
        assert!((4..=9).contains(&grows) || (56..=65).contains(&grows), "{}", method.name());
    }
}
