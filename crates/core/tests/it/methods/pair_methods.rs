//! Methods of two texts on tiny vectors: against NumPy, by hand, and what their words add.

use cognate::engine::{Engine, Query, TextLimits};
use cognate::methods::Method;
use cognate::methods::sets::fbow_jaccard::Universe;
use cognate::methods::sets::{ablation, fbow_jaccard};
use cognate_testing::{Chance, word_table};
use serde_json::Value;

/// The methods told of here.
const METHODS: [Method; 9] = [
    Method::MaxJaccard,
    Method::FbowJaccard,
    Method::SoftCardinality,
    Method::Wmd,
    Method::Wrd,
    Method::DynamaxWeighted,
    Method::Blend,
    Method::Coverage,
    Method::CoverageBlend,
];

/// Those of them that say how far words belong to either text.
const SETS: [Method; 4] =
    [Method::DynamaxWeighted, Method::Blend, Method::Coverage, Method::CoverageBlend];

struct Golden {
    value: Value,
}

impl Golden {
    fn read() -> Self {
        let text = include_str!("../../data/pair_methods/golden.json");
        Self { value: serde_json::from_str(text).unwrap() }
    }

    fn words(&self) -> Vec<&str> {
        self.value["words"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect()
    }

    fn numbers(&self, name: &str) -> Vec<f32> {
        let numbers = self.value[name].as_array().unwrap();
        numbers.iter().map(|number| number.as_f64().unwrap() as f32).collect()
    }

    fn engine(&self, sections: &[word_table::Section<'_>]) -> Engine {
        let universe = self.numbers("universe");
        let mut all = vec![("universe", "{}", universe.as_slice())];
        all.extend(sections);
        let model = word_table::model(&self.words(), &self.numbers("vectors"), &all);
        Engine::new(model).unwrap()
    }

    fn pairs(&self) -> impl Iterator<Item = ([&str; 2], &Value)> {
        self.value["pairs"].as_array().unwrap().iter().map(|pair| {
            let text = |side: usize| pair["texts"][side].as_str().unwrap();
            ([text(0), text(1)], pair)
        })
    }
}

fn score(engine: &Engine, method: Method, [a, b]: [&str; 2]) -> f32 {
    engine.similarity(&[(a, b)], &Query::new(method)).unwrap().scores[0]
}

fn close(got: f32, expected: &Value, what: &str) {
    let expected = expected.as_f64().unwrap();
    assert!((f64::from(got) - expected).abs() < 1e-5, "{what}: {got}, expected {expected}");
}

#[test]
fn scores_are_those_of_numpy() {
    let golden = Golden::read();
    let engine = golden.engine(&[]);
    let changed = golden.engine(&[
        ("dynamax-weighted", "{\"alpha\":0.7,\"beta\":0.5}", &[]),
        ("blend", "{\"weight\":0.25}", &[]),
        ("coverage", "{\"alpha\":0.5,\"p\":1.25}", &[]),
        ("coverage-blend", "{\"weight\":0.6}", &[]),
    ]);
    let mut compared = 0;
    for (texts, pair) in golden.pairs() {
        for method in METHODS {
            let what = format!("{} of {texts:?}", method.name());
            close(score(&engine, method, texts), &pair["scores"][method.name()], &what);
            compared += 1;
        }
        for method in SETS {
            close(score(&changed, method, texts), &pair["otherwise"][method.name()], "changed");
        }
        for ablation in ablation::all() {
            let scorer = (ablation.load)(engine.model()).unwrap().unwrap();
            let pairs = [(texts[0], texts[1])];
            let scores = engine.by(&scorer, &ablation.info).similarity(&pairs).unwrap();
            let (least, most) = ablation.info.range;
            assert!((least..=most).contains(&scores.scores[0]), "{}", ablation.name());
            if ablation.name() != "random-jaccard" {
                let expected = &pair["ablations"][ablation.name()];
                close(scores.scores[0], expected, &format!("{} of {texts:?}", ablation.name()));
            }
        }
    }
    assert_eq!(compared, 21 * METHODS.len());
}

#[test]
fn no_bit_depends_on_word_order_or_side() {
    let golden = Golden::read();
    let engine = golden.engine(&[]);
    let mut chance = Chance(7);
    for (texts, _) in golden.pairs() {
        let mut shuffled = texts.map(|text| text.split(' ').collect::<Vec<_>>());
        for words in &mut shuffled {
            for at in (1..words.len()).rev() {
                words.swap(at, chance.below(at + 1));
            }
        }
        let [one, other] = shuffled.map(|words| words.join(" "));
        for method in METHODS {
            let expected = score(&engine, method, texts).to_bits();
            for pair in [[&*one, &*other], [&*other, &*one], [texts[1], texts[0]]] {
                assert_eq!(score(&engine, method, pair).to_bits(), expected, "{}", method.name());
            }
            assert_eq!(score(&engine, method, [texts[0], texts[0]]), 1.0);
        }
        for ablation in ablation::all() {
            let scorer = (ablation.load)(engine.model()).unwrap().unwrap();
            let pairs = [(texts[0], texts[1]), (&other, &one), (&one, texts[0])];
            let scores = engine.by(&scorer, &ablation.info).similarity(&pairs).unwrap();
            assert_eq!(scores.scores[0].to_bits(), scores.scores[1].to_bits());
            assert_eq!(scores.scores[2], 1.0);
        }
    }
}

#[test]
fn what_words_add_adds_up_to_the_score() {
    let golden = Golden::read();
    let engine = golden.engine(&[("blend", "{\"weight\":0.25}", &[])]);
    for (texts, _) in golden.pairs() {
        for method in METHODS {
            let told = engine.explain(texts[0], texts[1], &Query::new(method)).unwrap();
            let Some(shares) = told.shares else {
                assert!(matches!(method, Method::Wmd | Method::SoftCardinality));
                continue;
            };
            let sum: f32 = shares.one.iter().chain(&shares.other).sum();
            assert!((sum - told.score).abs() < 1e-5, "{}: {sum}, {}", method.name(), told.score);
            assert_eq!(shares.memberships.is_some(), SETS.contains(&method));
            // A word that stands twice adds the same both times, and sides only change places.
            let back = engine.explain(texts[1], texts[0], &Query::new(method)).unwrap();
            assert_eq!(back.shares.unwrap().one, shares.other, "{} {texts:?}", method.name());
        }
    }
    let told = engine.explain("night night morning", "storm", &Query::new(Method::Wrd)).unwrap();
    let shares = told.shares.unwrap();
    assert_eq!(shares.one[0], shares.one[1]);
}

/// Points of a plane: three along one axis, one along the other, and one without direction.
fn plane() -> Engine {
    let words = ["near", "far", "away", "up", "nowhere"];
    let rows = [1.0, 0.0, 3.0, 0.0, -2.0, 0.0, 0.0, 4.0, 0.0, 0.0];
    Engine::new(word_table::model(&words, &rows, &[])).unwrap()
}

#[test]
fn small_cases_come_out_as_worked_by_hand() {
    let engine = plane();
    let check = |method, texts, expected: f32| {
        let got = score(&engine, method, texts);
        assert!((got - expected).abs() < 1e-6, "{texts:?}: {got}, expected {expected}");
    };
    // Half of the mass moves from `near` to `far`, 2 apart.
    check(Method::Wmd, ["near far", "far"], 1.0 / 2.0);
    // Repeating all words changes nothing; the distance to `up` is √17 and 5.
    check(Method::Wmd, ["near far near far", "up up"], 1.0 / (1.0 + (17.0_f32.sqrt() + 5.0) / 2.0));
    // One direction, whatever the length; opposite and square to it.
    check(Method::Wrd, ["near near", "far"], 1.0);
    check(Method::Wrd, ["near", "away"], -1.0);
    check(Method::Wrd, ["far", "up"], 0.0);
    // 3 of 7 stay, 4 turn by a right angle.
    check(Method::Wrd, ["far up", "near"], 3.0 / 7.0);
    // Dimensions: (3, 0) against (1, 4).
    check(Method::MaxJaccard, ["far away", "near up"], 1.0 / 7.0);
    // `near` and `far` are one element between them, `up` another.
    check(Method::SoftCardinality, ["near far up", "near"], 0.5);
    check(Method::SoftCardinality, ["near", "up"], 0.0);
    // Weights 1, 3 and 8; `up` is in the second text alone.
    let weights = [1.0, 3.0_f32.powf(1.5), 8.0];
    let shared = weights[0] + weights[1];
    check(Method::DynamaxWeighted, ["near", "far up"], shared / (shared + weights[2]));
    // `near` is covered whole; of the other text `far` is, and `up`, which is longer, is not.
    let [far, up] = [3.0_f32, 4.0].map(|length| length.powf(1.75));
    check(Method::Coverage, ["near", "far up"], (far / (far + up)).sqrt());
    // Saying a word twice changes nothing: either of the two counts half.
    check(Method::Coverage, ["near", "far far up"], (far / (far + up)).sqrt());
}

#[test]
fn words_without_length_are_weighed_by_no_method_that_asks_for_it() {
    let engine = plane();
    for method in METHODS.into_iter().filter(|&method| engine.unavailable(method).is_none()) {
        let alone = score(&engine, method, ["nowhere", "nowhere nowhere"]);
        assert!((0.0..=1.0).contains(&alone), "{}: {alone}", method.name());
        assert_eq!(score(&engine, method, ["nowhere", "nowhere"]), 1.0);
        let found = score(&engine, method, ["nowhere near", "far"]);
        assert!((-1.0..=1.0).contains(&found), "{}: {found}", method.name());
    }
    assert_eq!(score(&engine, Method::Wrd, ["nowhere", "near"]), 0.0);
    let with = score(&engine, Method::Wrd, ["nowhere far up", "near"]);
    assert_eq!(with, score(&engine, Method::Wrd, ["far up", "near"]));
    assert_eq!(score(&engine, Method::Wmd, ["nowhere", "near"]), 0.5);
}

#[test]
fn shares_add_up_for_equal_texts_whose_vectors_say_nothing() {
    let words = ["for", "against", "nothing"];
    let engine = Engine::new(word_table::model(&words, &[1.0, 2.0, -1.0, -2.0, 0.0, 0.0], &[]));
    let engine = engine.unwrap();
    for method in SETS {
        for (a, b) in [("for against", "against for"), ("nothing", "nothing")] {
            let told = engine.explain(a, b, &Query::new(method)).unwrap();
            let shares = told.shares.unwrap();
            let sum: f32 = shares.one.iter().chain(&shares.other).sum();
            assert_eq!(told.score, 1.0);
            assert!((sum - 1.0).abs() < 1e-4, "{}: {sum}", method.name());
        }
    }
}

#[test]
fn texts_beyond_what_the_solver_takes_are_scored_by_their_first_words() {
    let words: Vec<String> = (0..600).map(|word| format!("w{word}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let rows: Vec<f32> = (0..1200).map(|at| (at % 7) as f32 + 1.0).collect();
    let limits = TextLimits { tokens: 4096, ..TextLimits::DEFAULT };
    let engine = Engine::new(word_table::model(&words, &rows, &[])).unwrap().with_limits(limits);
    for method in [Method::Wmd, Method::Wrd] {
        let found = score(&engine, method, [&words.join(" "), "w1 w2"]);
        assert!((0.0..1.0).contains(&found), "{found}");
        let told = engine.explain(&words.join(" "), "w1 w2", &Query::new(method)).unwrap();
        assert_eq!(told.one.len(), 600);
    }
}

#[test]
fn exponents_of_one_give_dynamax_itself() {
    let golden = Golden::read();
    let engine = golden.engine(&[("dynamax-weighted", "{\"alpha\":1.0,\"beta\":1.0}", &[])]);
    for (texts, _) in golden.pairs() {
        let plain = score(&engine, Method::DynamaxJaccard, texts);
        assert!((score(&engine, Method::DynamaxWeighted, texts) - plain).abs() < 1e-6);
    }
}

#[test]
fn a_section_that_cannot_be_used_is_refused_by_name() {
    let golden = Golden::read();
    let rows = golden.numbers("vectors");
    for (section, settings, needs) in [
        ("dynamax-weighted", "{\"alpha\":-1.0}", "0 to 4"),
        ("dynamax-weighted", "{\"gamma\":1.0}", "gamma"),
        ("blend", "{\"weight\":1.5}", "0 to 1"),
        ("coverage", "{\"p\":0.7}", "multiples of 0.25"),
        ("coverage", "{\"alpha\":1e999}", "coverage"),
        ("coverage-blend", "{\"weight\":-0.5}", "0 to 1"),
        ("universe", "{}", "F32 [n, 7]"),
    ] {
        let model = word_table::model(&golden.words(), &rows, &[(section, settings, &[])]);
        let error = Engine::new(model).err().unwrap().to_string();
        assert!(error.contains(section) && error.contains(needs), "{error}");
    }
    let model = word_table::model(&golden.words(), &rows, &[]);
    let reason = Engine::new(model).unwrap().unavailable(Method::FbowJaccard).unwrap().to_string();
    assert!(reason.contains("--universe axes:100"), "{reason}");
}

#[test]
fn a_universe_is_made_of_the_vocabulary() {
    let golden = Golden::read();
    let model = word_table::model(&golden.words(), &golden.numbers("vectors"), &[]);
    assert!("planes".parse::<Universe>().unwrap_err().to_string().contains("axes or centroids"));
    let axes = fbow_jaccard::fit(&model, "axes".parse().unwrap(), 3, 0);
    assert_eq!(axes.settings, "{\"kind\":\"axes\",\"size\":3,\"seed\":0}");
    let (name, shape, rows) = &axes.tensors[0];
    assert_eq!((*name, shape.as_slice()), ("rows", [3, 7].as_slice()));
    for (at, one) in rows.chunks(7).enumerate() {
        for (to, other) in rows.chunks(7).enumerate() {
            let product: f32 = one.iter().zip(other).map(|(a, b)| a * b).sum();
            assert!((product - f32::from(u8::from(at == to))).abs() < 1e-6);
        }
    }
    // There are no more axes than dimensions, nor clusters than words.
    assert_eq!(fbow_jaccard::fit(&model, Universe::Axes, 100, 0).tensors[0].1, [7, 7]);
    let centroids = fbow_jaccard::fit(&model, Universe::Centroids, 100, 5);
    assert_eq!(centroids.tensors[0].1, [15, 7]);
    assert_eq!(centroids, fbow_jaccard::fit(&model, Universe::Centroids, 100, 5));

    let section = (axes.section, axes.settings.as_str(), axes.tensors[0].2.as_slice());
    let engine =
        Engine::new(word_table::model(&golden.words(), &golden.numbers("vectors"), &[section]));
    let texts = ["quake hits city", "storm shakes coast"];
    assert!(score(&engine.unwrap(), Method::FbowJaccard, texts) > 0.0);
}
