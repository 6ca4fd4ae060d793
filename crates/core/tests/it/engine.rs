//! What the engine answers to each kind of question, and how it names what it cannot answer.

use cognate::engine::rank::Question;
use cognate::engine::{
    Candidates, Engine, Measure, Place, Query, QueryError, RankOptions, Reason, TextLimits, Weight,
};
use cognate::methods::Method;
use cognate::model::format::Dtype;
use cognate::model::{Model, ModelError};
use cognate_testing as support;

const A: &str = "the quake hits the city";
const B: &str = "an earthquake shakes new york";

/// A question by the method of this name.
fn by(name: &str) -> Query {
    Query::new(Method::named(name).unwrap())
}

fn by_measure(name: &str, measure: Measure) -> Query {
    Query { measure: Some(measure), ..by(name) }
}

/// The tiny model without any vector for unlisted words.
fn skipping() -> Engine {
    let model = support::tiny_model();
    let mut draft = cognate::model::writer::Draft::from_model(&model);
    draft.metadata.insert("unknown".to_owned(), r#"{"policy":"skip"}"#.to_owned());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("skip.safetensors");
    draft.write(&path).unwrap();
    Engine::open(&path, &support::full()).unwrap()
}

#[test]
fn an_empty_text_is_named_by_its_place() {
    let engine = support::engine();
    let query = Query { refuse_unscored: true, ..by("avg-cos") };
    for empty in ["", " \n\t", "\u{1c}\u{3000}"] {
        let error = engine.similarity(&[(A, B), (A, empty)], &query).unwrap_err();
        assert_eq!(error, QueryError::EmptyText { place: Place::Pair(1, 1) });
        assert_eq!(error.to_string(), "pairs[1][1] is empty");
        let error = engine.embed(&[A, B, empty], &query).unwrap_err();
        assert_eq!(error, QueryError::EmptyText { place: Place::Text(2) });
        let error = engine.rank(empty, &[A], &query).unwrap_err();
        assert_eq!(error, QueryError::EmptyText { place: Place::Query });
        let error = engine.rank(A, &[empty], &query).unwrap_err();
        assert_eq!(error, QueryError::EmptyText { place: Place::Candidate(0) });
        let error = engine.explain(A, empty, &query).unwrap_err();
        assert_eq!(error, QueryError::EmptyText { place: Place::Pair(0, 1) });
    }
}

#[test]
fn one_text_that_cannot_be_scored_leaves_the_others_their_scores() {
    let limits = TextLimits { bytes: 60, chars: 40, tokens: 8 };
    let engine = skipping().with_limits(limits);
    let query = by("avg-cos");
    let long = "a".repeat(61);
    let reasons = [Reason::Empty, Reason::TooLong, Reason::Unknown, Reason::TooLong];
    let faulty = [" ", &long, "zzz", "the the the the the the the the the"];
    let mut pairs = vec![(A, B)];
    pairs.extend(faulty.map(|text| (A, text)));
    pairs.extend([(" ", long.as_str()), (A, B)]);
    let scores = engine.similarity(&pairs, &query).unwrap();
    assert_eq!(scores.unscored, [1, 2, 3, 4, 5]);
    assert_eq!(
        scores.reasons,
        [&reasons[..], &[Reason::Empty]].concat(),
        "the first text at fault"
    );
    assert_eq!(scores.scores[0].to_bits(), scores.scores[6].to_bits());
    assert!(scores.scores[0] != 0.0 && scores.scores[1..6] == [0.0; 5]);
    let texts = [&[A][..], &faulty, &[B]].concat();
    let vectors = engine.embed(&texts, &query).unwrap();
    assert_eq!((&vectors.unscored[..], &vectors.reasons[..]), (&[1, 2, 3, 4][..], &reasons[..]));
    assert_eq!(vectors.iter().filter(Option::is_none).count(), 4);
    for method in ["avg-cos", "dynamax", "wmd", "jaccard"] {
        let ranking = engine.rank(A, &texts, &by(method)).unwrap();
        let known = if method == "jaccard" { 3 } else { 2 };
        assert_eq!((ranking.results.len(), ranking.reasons.len()), (known, 6 - known), "{method}");
    }
    for text in [" ", &long] {
        assert!(engine.rank(text, &[A], &query).is_err(), "the query is what is asked for");
        assert!(engine.explain(text, A, &query).is_err());
    }
}

#[test]
fn overlong_texts_are_refused_or_cut() {
    let limits = TextLimits { bytes: 60, chars: 40, tokens: 3 };
    let engine = Engine::new(support::served()).unwrap().with_limits(limits);
    let query = Query { refuse_unscored: true, ..by("avg-cos") };
    let too_long = |text: &str| engine.embed(&[text], &query).unwrap_err();
    let place = Place::Text(0);
    let expected = QueryError::TextTooLong { place, unit: "bytes", limit: 60, actual: 61 };
    assert_eq!(too_long(&"a".repeat(61)), expected);
    let expected = QueryError::TextTooLong { place, unit: "characters", limit: 40, actual: 41 };
    assert_eq!(too_long(&"a".repeat(41)), expected);
    let accented = "é".repeat(30);
    assert!(engine.embed(&[&accented], &query).is_ok(), "60 bytes, but 30 characters");
    assert_eq!(too_long(A), QueryError::TooManyTokens { place, limit: 3, actual: 5 });

    let cutting = Query { truncate: true, ..query };
    for gap in [50, 60] {
        let long = format!("quake{:gap$}york", "");
        let answer = engine.embed(&[&long, "quake"], &cutting).unwrap();
        assert_eq!(answer.truncated, [0], "cut at bytes and characters as at tokens");
        assert_eq!(answer.get(0).unwrap(), answer.get(1).unwrap());
    }
    let answer = engine.embed(&[A, "the quake hits", "quake"], &cutting).unwrap();
    assert_eq!(answer.truncated, [0]);
    assert_eq!((answer.tokens[0], answer.known[0]), (5, 3), "the rest was never looked up");
    assert_eq!(answer.get(0).unwrap(), answer.get(1).unwrap());
    let scores = engine.similarity(&[("the quake hits", A), ("new", "york")], &cutting).unwrap();
    assert_eq!((scores.scores[0], scores.truncated), (1.0, vec![0]));
    for name in ["jaccard", "tf-idf"] {
        let query = Query { truncate: true, ..by(name) };
        let scores = engine.similarity(&[("the quake hits", A)], &query).unwrap();
        assert_eq!(scores.scores, [1.0], "{name} reads no further than the limit");
    }
    let ranking = engine.rank(A, &["york", A], &cutting).unwrap();
    assert_eq!((ranking.query_truncated, ranking.truncated), (true, vec![1]));
}

#[test]
fn texts_without_a_known_word_are_unscored_or_refused() {
    let engine = skipping();
    let (query, strict) = (by("avg-cos"), Query { refuse_unscored: true, ..by("avg-cos") });
    let pairs = [(A, B), ("xyzzy", B), (A, "plugh"), ("xyzzy", "xyzzy")];
    let answer = engine.similarity(&pairs, &query).unwrap();
    assert_eq!((&answer.scores[1..], answer.unscored), (&[0.0; 3][..], vec![1, 2, 3]));
    let refused = |place| QueryError::AllUnknown { place };
    assert_eq!(engine.similarity(&pairs, &strict), Err(refused(Place::Pair(1, 0))));
    assert_eq!(engine.similarity(&pairs[2..], &strict), Err(refused(Place::Pair(0, 1))));

    let answer = engine.embed(&["xyzzy quake", "xyzzy"], &query).unwrap();
    assert_eq!((&answer.tokens[..], &answer.known[..]), (&[2, 1][..], &[1, 0][..]));
    assert!(answer.get(0).is_some() && answer.get(1).is_none() && answer.get(2).is_none());
    assert_eq!(engine.embed(&["xyzzy"], &strict), Err(refused(Place::Text(0))));

    let ranking = engine.rank(A, &["xyzzy", B, A], &query).unwrap();
    let order: Vec<usize> = ranking.results.iter().map(|result| result.index).collect();
    assert_eq!((order, ranking.unscored), (vec![2, 1], vec![0]));
    assert_eq!(engine.rank(A, &[B, "xyzzy"], &strict), Err(refused(Place::Candidate(1))));
    assert_eq!(engine.rank("xyzzy", &[B], &strict), Err(refused(Place::Query)));

    let why = engine.explain(A, "xyzzy", &query).unwrap();
    assert!(why.unscored && why.score == 0.0 && why.shares.is_none());
    assert_eq!(why.other_unknown[0].token, "xyzzy");
    assert_eq!(engine.explain(A, "xyzzy", &strict), Err(refused(Place::Pair(0, 1))));
}

#[test]
fn a_query_without_a_word_leaves_every_candidate_unscored_by_every_method() {
    let engine = support::engine();
    for &method in Method::ALL.iter().filter(|method| engine.unavailable(**method).is_none()) {
        let ranking = engine.rank("!!!", &[A, B], &Query::new(method)).unwrap();
        assert!(ranking.results.is_empty(), "{}", method.name());
        assert_eq!(ranking.unscored, [0, 1], "{}", method.name());
        let query = Query::new(method);
        let options = RankOptions { query, top_k: Some(1), min_score: Some(0.5) };
        assert_eq!(engine.rank_best("!!!", &[A, B], &options).unwrap(), ranking);
    }
}

#[test]
fn methods_that_read_tokens_score_texts_of_unknown_words() {
    let engine = skipping();
    let score = |name: &str, a: &str, b: &str| {
        let answer = engine.similarity(&[(a, b)], &by(name)).unwrap();
        assert!(answer.unscored.is_empty());
        answer.scores[0]
    };
    for name in ["jaccard", "jaccard-bag", "tf-idf"] {
        assert_eq!(score(name, "xyzzy plugh", "plugh XYZZY!"), 1.0, "{name}");
        assert_eq!(score(name, "xyzzy", "plugh"), 0.0, "{name}");
    }
    assert_eq!(score("jaccard", "xyzzy quake quake", "quake xyzzy city"), 2.0 / 3.0);
    assert_eq!(score("jaccard-bag", "xyzzy quake quake", "quake xyzzy city"), 0.5);
    assert_eq!(score("jaccard", "quake", "quakes"), 0.0, "tokens are not stemmed");

    let why = engine.explain("xyzzy quake", "xyzzy city", &by("jaccard")).unwrap();
    assert_eq!(why.score, 1.0 / 3.0);
    assert_eq!(why.one_unknown[0].share, Some(1.0 / 6.0));
    assert_eq!((why.one[0].share, why.other[0].share), (Some(0.0), Some(0.0)));
}

#[test]
fn names_lead_to_methods_and_near_ones_are_offered() {
    let engine = support::engine();
    assert_eq!(engine.method("SIF_PCA"), Ok(Method::SifPca));
    assert_eq!(engine.method("max"), Ok(Method::MaxCos));
    assert_eq!(engine.method("auto"), Ok(engine.auto()));
    let refused = engine.method("min_maxx").unwrap_err().to_string();
    assert!(refused.starts_with("no such method `min_maxx`; the nearest names are "), "{refused}");
    assert!(refused.contains("min-max"), "{refused}");
    let refused = engine.method(&"x".repeat(1000)).unwrap_err().to_string();
    assert!(refused.starts_with(&format!("no such method `{}`", "x".repeat(64))), "{refused}");
}

#[test]
fn what_the_model_lacks_makes_methods_unavailable_with_a_remedy() {
    let bare = Engine::new(support::tiny_model()).unwrap();
    let remedies = [
        ("sif-pca", "cognate fit MODEL --components FILE"),
        ("usif", "cognate fit MODEL --components FILE"),
        ("learned-idf", "cognate train weights"),
        ("same-event", "cognate eval events --fit topics"),
    ];
    for (name, remedy) in remedies {
        let error = bare.similarity(&[(A, B)], &by(name)).unwrap_err();
        assert!(matches!(error, QueryError::MethodUnavailable { method, .. } if method == name));
        assert!(error.to_string().contains(remedy), "{error}");
    }
    assert_eq!(bare.default_measure(Method::LearnedIdf), Measure::Cosine);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("uncounted.safetensors");
    let model = support::tiny_model();
    let mut draft = cognate::model::writer::Draft::from_model(&model);
    draft.tables.retain(|table| !["counts", "idf"].contains(&table.name.as_str()));
    draft.write(&path).unwrap();
    let uncounted = Engine::open(&path, &support::full()).unwrap();
    let counting = [
        "sif",
        "sif-pca",
        "usif",
        "idf-mean",
        "mean-top30",
        "max-top30",
        "min-max-top30",
        "learned-idf",
        "tf-idf",
        "dynamax-sif",
        "same-event",
    ];
    for name in counting {
        let reason = uncounted.unavailable(Method::named(name).unwrap()).unwrap().to_string();
        let remedy = "pack the model again with --counts or --corpus";
        assert!(reason.contains(remedy), "{name}: {reason}");
    }
    for name in ["avg-cos", "max-cos", "min-max", "jaccard", "jaccard-bag", "dynamax-jaccard"] {
        assert_eq!(uncounted.unavailable(Method::named(name).unwrap()), None, "{name}");
    }
}

#[test]
fn broken_sections_keep_the_model_from_serving() {
    let broken = |section: &'static str, settings: &str, tensors: &[(&'static str, &[usize])]| {
        let tensor = |(name, shape): &(&'static str, &[usize])| {
            (*name, shape.to_vec(), vec![0.5; shape.iter().product()])
        };
        let settings = settings.to_owned();
        let tensors = tensors.iter().map(tensor).collect();
        let fitted = cognate::methods::Fitted { section, settings, tensors, bytes: Vec::new() };
        let model = support::with_sections(&support::tiny_model(), &[fitted]);
        let error = Engine::new(model).err().unwrap();
        assert!(matches!(&error, ModelError::Section { section: s, .. } if s == section));
        error.to_string()
    };
    let message = broken("sif-pca", "{}", &[("component", &[1, 19])]);
    assert!(message.contains("expected F32 [1, 20], got F32 [1, 19]"), "{message}");
    let message = broken("sif-pca", "{}", &[("axis", &[1, 20])]);
    assert!(message.contains("`component`: expected F32 [1, 20], got none"), "{message}");
    let message = broken("usif", "{}", &[]);
    assert!(message.contains("settings: missing field"), "{message}");
    let settings = r#"{"a": 0, "alpha": 0.1, "mean_length": 5, "sentences": 3}"#;
    let message = broken("usif", settings, &[("axes", &[5, 20]), ("factors", &[5])]);
    assert!(message.contains("expected `a` above 0"), "{message}");
    let settings = r#"{"default": "x", "sets": {"x": {"measure": "cosine"}}}"#;
    let message = broken("learned-idf", settings, &[("weights.x", &[3, 1])]);
    assert!(message.contains("expected F32 [n], got F32 [3, 1]"), "{message}");
    let message = broken("learned-idf", settings, &[("weights.y", &[3])]);
    assert!(message.contains("`weights.x`: expected F32 [n], got none"), "{message}");
    let settings = r#"{"default": "y", "sets": {"x": {"measure": "cosine"}}}"#;
    let message = broken("learned-idf", settings, &[("weights.x", &[3])]);
    assert!(message.contains("no set is named `y`"), "{message}");
    let settings = r#"{"coverage": -1, "rare": 0.1, "constant": -6}"#;
    let message = broken("same-event", settings, &[]);
    assert!(message.contains("expected weights from 0"), "{message}");
    let message = broken("events", r#"{"topics": {"coverage": "high"}}"#, &[]);
    assert!(message.contains("settings: invalid type"), "{message}");
}

#[test]
fn only_vector_methods_embed_and_only_they_take_another_measure() {
    let engine = support::engine();
    for name in ["dynamax-jaccard", "jaccard", "tf-idf"] {
        let method = Method::named(name).unwrap();
        assert!(!engine.embeds(method));
        let error = engine.embed(&[A], &by(name)).unwrap_err();
        assert_eq!(error, QueryError::CannotEmbed { method: method.name() });
        let measure = Measure::Euclidean;
        let error = engine.similarity(&[(A, B)], &by_measure(name, measure)).unwrap_err();
        assert_eq!(error, QueryError::MeasureNotSupported { method: method.name(), measure });
        assert!(engine.similarity(&[(A, B)], &by_measure(name, Measure::Cosine)).is_ok());
    }
    assert_eq!(engine.embedding_method(" AUTO"), Ok(engine.auto_embedding()));
    assert_ne!(engine.method("auto"), Ok(engine.auto_embedding()));
}

#[test]
fn euclidean_is_one_over_one_and_the_distance() {
    let engine = support::engine();
    let scores = engine.similarity(&[(A, B)], &by_measure("sif", Measure::Euclidean)).unwrap();
    assert_eq!(scores.measure, Measure::Euclidean);
    let vectors = engine.embed(&[A, B], &by("sif")).unwrap();
    let [one, other] = [0, 1].map(|index| vectors.get(index).unwrap());
    let squared: f32 = one.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum();
    assert!((scores.scores[0] - 1.0 / (1.0 + squared.sqrt())).abs() < 1e-6);
    let why = engine.explain(A, B, &by_measure("sif", Measure::Euclidean)).unwrap();
    assert_eq!((why.score, why.shares), (scores.scores[0], None));
}

#[test]
fn learned_weights_are_compared_by_the_measure_they_were_trained_for() {
    let engine = support::engine();
    let learned = Method::named("learned-idf").unwrap();
    assert_eq!(engine.default_measure(learned), Measure::Euclidean);
    let own = engine.similarity(&[(A, B)], &by("learned-idf")).unwrap();
    let named = engine.similarity(&[(A, B)], &by_measure("learned-idf", Measure::Euclidean));
    assert_eq!(own, named.unwrap());
    let cosine = engine.similarity(&[(A, B)], &by_measure("learned-idf", Measure::Cosine));
    assert_ne!(own.scores, cosine.unwrap().scores);

    let model = support::tiny_model();
    let model = support::with_sections(&model, &[support::learned("cosine", vec![1.0])]);
    let engine = Engine::new(model).unwrap();
    assert_eq!(engine.default_measure(learned), Measure::Cosine);
    // One weight for every rank is the plain mean.
    let [learned, plain] = ["learned-idf", "avg-cos"]
        .map(|name| engine.similarity(&[(A, B)], &by(name)).unwrap().scores[0]);
    assert!((learned - plain).abs() < 1e-6, "{learned} {plain}");
}

#[test]
fn a_weight_is_above_0_and_no_more_than_sums_bear() {
    for number in [f32::MIN_POSITIVE, 1.0, 1000.0] {
        assert_eq!(Weight::new(number).map(Weight::get), Some(number));
    }
    for number in [0.0, -1.0, 1000.1, f32::INFINITY, f32::NAN] {
        assert_eq!(Weight::new(number), None, "{number}");
    }
}

#[test]
fn a_list_that_is_scored_as_a_whole_is_given_up_between_its_blocks() {
    let (mut checks, gone) = (0, QueryError::CannotEmbed { method: "gone" });
    let check = || {
        checks += 1;
        if checks > 2 { Err(gone.clone()) } else { Ok(()) }
    };
    let texts = Candidates::new(&[A; 4000]);
    let question = Question::new(B, by("rm3"));
    let given_up = support::engine().rank_pages(&question, &texts, check);
    assert_eq!(given_up.unwrap_err(), gone);
    assert_eq!(checks, 4, "the third ends the list, and the fourth tells why");
}

#[test]
fn half_precision_and_bytes_serve_as_well() {
    for dtype in [Dtype::F16, Dtype::I8] {
        let model = Model::from_bytes(&support::tiny(dtype), &support::full()).unwrap();
        let [rounded, exact] = [&Engine::new(model).unwrap(), support::engine()].map(|engine| {
            let names = ["avg-cos", "sif", "idf-mean", "max-cos", "min-max-top30", "tf-idf"];
            names.map(|name| engine.similarity(&[(A, B)], &by(name)).unwrap().scores[0])
        });
        for (rounded, exact) in rounded.iter().zip(exact) {
            assert!((rounded - exact).abs() < 0.03, "{dtype:?}: {rounded}, not {exact}");
        }
    }
}

#[test]
fn the_sentence_of_an_explanation_says_what_is_worth_knowing() {
    let engine = support::engine();
    let sentence = |a: &str, b: &str| {
        engine.explain(a, b, &by("dynamax-weighted")).unwrap().sentence("dynamax-weighted")
    };
    let same = sentence("quake city", "quake town");
    assert_eq!(same.matches("\"quake\"").count(), 1, "a word of both texts is named once: {same}");
    assert!(same.contains("\"city\" and \"town\""), "equal words are no news: {same}");
    assert!(!same.contains("does not know"), "{same}");
    let unknown = sentence("zzz qqq city", "xxx town");
    assert!(unknown.contains("does not know 3 of 5 words"), "{unknown}");
    let chinese = sentence("地震袭击洛杉矶", "quake town");
    assert!(chinese.contains("without spaces between words"), "{chinese}");
    assert!(!chinese.contains("closest"), "a stand-in is close to nothing: {chinese}");
}

#[test]
fn a_bag_is_in_the_order_of_its_keys_however_many_words_are_not_listed() {
    let engine = support::engine();
    for listed in [0, 1, 7, 14, 30, 40] {
        for unlisted in [0, 1, 2, 5] {
            // Every unlisted word stands twice, between listed ones.
            let words = (0..listed).map(|n| ["quake", "the", "city", "new"][n % 4].to_owned());
            let made = (0..2 * unlisted).map(|n| format!("zq{}xv", n % unlisted.max(1)));
            let mut text: Vec<String> = words.chain(made).collect();
            let middle = text.len() / 2;
            text.rotate_left(middle);
            let phrase = engine.model().phrase(&text.join(" "));
            assert_eq!(phrase.words().len(), listed + 2 * unlisted);
            let mut places: Vec<usize> = (0..phrase.words().len()).collect();
            places.sort_by_key(|&at| (phrase.key(phrase.words()[at]), at));
            let bag: Vec<_> = places.iter().map(|&at| phrase.words()[at]).collect();
            assert_eq!(phrase.bag(), bag, "{listed} {unlisted}");
            assert_eq!(phrase.bag_order(), places, "{listed} {unlisted}");
        }
    }
}
