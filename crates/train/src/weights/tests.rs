//! Tests of the arithmetic against finite differences and the method's own vectors, and of equal
//! bits for any number of threads, amount of memory and interruption.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use cognate::methods::Scorer;
use cognate::methods::means::learned_idf;
use cognate::model::format::Dtype;
use cognate::model::vocabulary::VocabularyTables;
use cognate::model::writer::{Draft, Table};
use cognate::model::{OpenOptions, Unknown};
use cognate::text::Normalisation;
use cognate_kernels::random::Random;
use cognate_stats::distribution::quantile;

use super::couples::Couple;
use super::descent::{LossBuffers, Objective, Slope};
use super::forms::{DistanceScale, KEPT_BYTES, PairForms};
use super::{FOLDS, *};
use crate::checkpoint;

const DIMS: usize = 24;
const TOPICS: usize = 12;
const RARE: usize = 4;
const FREQUENT: usize = 30;

fn share(random: &mut Random) -> f32 {
    random.below(1 << 20) as f32 / (1 << 20) as f32 - 0.5
}

/// A model in which the rare words of a topic share a direction and frequent words have random
/// ones.
fn model(folder: &Path) -> PathBuf {
    let mut random = Random::seeded(3);
    let (mut words, mut counts, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for topic in 0..TOPICS {
        let direction: Vec<f32> = (0..DIMS).map(|_| share(&mut random)).collect();
        for rare in 0..RARE {
            words.push(format!("topic{topic}word{rare}"));
            counts.push(3 + rare as u64);
            rows.extend(direction.iter().map(|value| value + 0.3 * share(&mut random)));
        }
    }
    for frequent in 0..FREQUENT {
        words.push(format!("frequent{frequent}"));
        counts.push(1000 + frequent as u64);
        rows.extend((0..DIMS).map(|_| share(&mut random)));
    }
    let idf: Vec<f32> = counts.iter().map(|&count| (40_000.0 / count as f32).ln()).collect();
    let tables = VocabularyTables::build(words.iter().map(String::as_str));
    let mut draft = Draft::default();
    let said = [
        ("dim", DIMS.to_string()),
        ("normalisation", serde_json::to_string(&Normalisation::preset("plain").unwrap()).unwrap()),
        ("unknown", serde_json::to_string(&Unknown::Skip).unwrap()),
        ("frequency", "none".to_owned()),
        ("tokens", "40000".to_owned()),
        ("idf_unknown", "11".to_owned()),
    ];
    draft.metadata.extend(said.map(|(key, value)| (key.to_owned(), value)));
    draft.tables.push(Table::new("vectors", Dtype::F32, &[words.len(), DIMS], &rows));
    draft.push_vocabulary(&tables);
    draft.tables.push(Table::new("counts", Dtype::U64, &[words.len()], &counts));
    draft.tables.push(Table::new("idf", Dtype::F32, &[words.len()], &idf));
    let path = folder.join("model.safetensors");
    draft.write(&path).unwrap();
    path
}

fn open(path: &Path) -> Model {
    Model::open(path, &OpenOptions::default()).unwrap()
}

fn couples(count: usize, seed: u64) -> Vec<Couple> {
    let mut random = Random::seeded(seed);
    let mut text = |topic: usize| {
        let mut words: Vec<String> =
            (0..2).map(|_| format!("topic{topic}word{}", random.below(RARE))).collect();
        for _ in 0..5 + random.below(4) {
            words.push(format!("frequent{}", random.below(FREQUENT)));
        }
        words.join(" ")
    };
    let couple = |at: usize| {
        let related = at.is_multiple_of(2);
        let (one, other) = (at / 2 % TOPICS, (at / 2 + usize::from(!related)) % TOPICS);
        Couple { related, texts: (text(one), text(other)) }
    };
    (0..count).map(couple).collect()
}

fn written(path: PathBuf, couples: &[Couple]) -> PathBuf {
    let rows = couples.iter().map(|Couple { related, texts: (one, other) }| {
        format!("{}\t{one}\t{other}\n", u8::from(*related))
    });
    std::fs::write(&path, rows.collect::<String>()).unwrap();
    path
}

fn options(folder: &Path) -> WeightsOptions {
    let output = folder.join("trained.safetensors");
    WeightsOptions {
        couples: vec![written(folder.join("couples.tsv"), &couples(300, 5))],
        validation: None,
        model: model(folder),
        run: RunFiles {
            checkpoint: checkpoint::beside(&output),
            output,
            report: None,
            restart: false,
        },
        set: None,
        usage: Use::AsBefore,
        loss: Loss::Median,
        measure: Measure::Euclidean,
        max_length: 6,
        lambda: 0.001,
        kappa: Kappa::Searched,
        seed: 1,
        epochs: 12,
        threads: NonZeroUsize::new(2),
        export: None,
        memory: KEPT_BYTES,
    }
}

#[test]
fn gradients_are_those_of_small_differences() {
    let folder = tempfile::tempdir().unwrap();
    let model = open(&model(folder.path()));
    let couples = couples(20, 9);
    let places: Vec<usize> = (0..couples.len()).collect();
    let mut random = Random::seeded(2);
    for measure in [Measure::Euclidean, Measure::Cosine] {
        let forms = PairForms::new(&model, &couples, (measure, 5), KEPT_BYTES);
        let scale = DistanceScale::new(&forms, &places).unwrap();
        let weights: Vec<f64> = (0..5).map(|_| 0.7 + f64::from(share(&mut random))).collect();
        for slope in [Slope::Contrastive, Slope::Median { kappa: 3.0 }] {
            let objective = Objective { scale, slope, lambda: 0.01 };
            let mut work = LossBuffers::default();
            let mut loss = |weights: &[f64]| {
                let mut made = Vec::new();
                let block = forms.block(&places, &mut made);
                let batch = places.iter().map(|&at| (block.form(at), couples[at].related));
                (
                    objective.of(&batch.collect::<Vec<_>>(), weights, &mut work),
                    work.gradient.clone(),
                )
            };
            let (_, gradient) = loss(&weights);
            for (rank, slope) in gradient.into_iter().enumerate() {
                let mut moved = |step: f64| {
                    let mut weights = weights.clone();
                    weights[rank] += step;
                    loss(&weights).0
                };
                let expected = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                let off = (slope - expected).abs();
                assert!(off < 1e-7 + 1e-5 * slope.abs(), "{measure:?} {rank}: {slope} {expected}");
            }
        }
    }
}

#[test]
fn distances_of_forms_are_those_of_the_vectors_that_the_method_makes() {
    let folder = tempfile::tempdir().unwrap();
    let bare = open(&model(folder.path()));
    let weights: Vec<f32> = vec![1.9, 0.8, 0.4, 0.35, 0.2, 0.15, -0.1];
    let couples = couples(40, 4);
    let places: Vec<usize> = (0..couples.len()).collect();
    for measure in [Measure::Euclidean, Measure::Cosine] {
        let path = folder.path().join("with.safetensors");
        let set =
            NamedSet { set: "own".to_owned(), measure, weights: weights.clone(), trained: None };
        set.write_into(&bare, Use::AsBefore, &path).unwrap();
        let model = open(&path);
        let Ok(Ok(Scorer::Embed(method))) = learned_idf::load(&model) else {
            panic!("the set is not usable")
        };
        let forms = PairForms::new(&bare, &couples, (measure, weights.len()), KEPT_BYTES);
        let scale = DistanceScale::new(&forms, &places).unwrap();
        let wide: Vec<f64> = weights.iter().copied().map(f64::from).collect();
        let found = scale.all(&forms, &places, &wide);
        for (couple, found) in couples.iter().zip(found) {
            let [one, other] = [&couple.texts.0, &couple.texts.1].map(|text| {
                let mut vector = vec![0.0; DIMS];
                method.embed(&model.phrase(text), &mut vector);
                vector
            });
            let score = f64::from(method.measure().score(&one, &other));
            let expected = match measure {
                Measure::Euclidean => 1.0 / score - 1.0,
                Measure::Cosine => 1.0 - score,
            };
            let found = found * scale.unit;
            assert!((found - expected).abs() < 1e-5, "{measure:?}: {found}, made {expected}");
        }
    }
}

#[test]
fn texts_of_the_same_words_have_no_distance_and_do_not_pull() {
    let folder = tempfile::tempdir().unwrap();
    let model = open(&model(folder.path()));
    let mut couples = couples(9, 1);
    let (one, _) = couples[0].texts.clone();
    let turned: Vec<&str> = one.split(' ').rev().collect();
    couples[0].texts.1 = turned.join(" ");
    let places: Vec<usize> = (0..couples.len()).collect();
    let forms = PairForms::new(&model, &couples, (Measure::Euclidean, 4), KEPT_BYTES);
    let scale = DistanceScale::new(&forms, &places).unwrap();
    let mut made = Vec::new();
    let mut slope = [9.0; 4];
    let form = forms.block(&places, &mut made);
    let distance = scale.slope(form.form(0), &[0.5; 4], &mut Default::default(), &mut slope);
    assert_eq!((distance, slope), (0.0, [0.0; 4]));
}

#[test]
fn losses_fall_and_the_rarest_words_come_to_count_most() {
    let folder = tempfile::tempdir().unwrap();
    for (loss, measure) in [
        (Loss::Median, Measure::Euclidean),
        (Loss::Median, Measure::Cosine),
        (Loss::Contrastive, Measure::Euclidean),
    ] {
        let judged = written(folder.path().join("judged.tsv"), &couples(1000, 6));
        let validation = Some(judged);
        let of_folder = options(folder.path());
        let options = WeightsOptions { loss, measure, validation, epochs: 60, ..of_folder };
        let trained = train(&options).unwrap();
        let Course { set, losses, judged, tried, .. } = &trained.course;
        assert!(losses[0] > losses[losses.len() - 1], "{losses:?}");
        // The two rarest words of a text belong to its topic; the others carry no information.
        let others = set.weights[2..].iter().copied().fold(f32::MIN, f32::max);
        assert!(set.weights[0] > set.weights[1] && set.weights[1] > others, "{:?}", set.weights);
        let [before, after] = [&judged.before, &judged.after].map(|side| side.parting);
        assert!(after.split_error < before.split_error, "{before:?} {after:?}");
        assert!(after.js_divergence > before.js_divergence, "{before:?} {after:?}");
        assert_eq!(tried.is_empty(), loss == Loss::Contrastive);
    }
}

#[test]
fn the_median_couple_trained_on_is_at_distance_one_whatever_kappa() {
    let folder = tempfile::tempdir().unwrap();
    for kappa in [1.0, 50.0] {
        let options = options(folder.path());
        let validation = Some(options.couples[0].clone());
        let trained =
            train(&WeightsOptions { kappa: Kappa::Given(kappa), validation, ..options }).unwrap();
        let median = quantile(&trained.course.judged.after.distances, 0.5).unwrap();
        assert!((median - 1.0).abs() < 1e-6, "κ {kappa}: {median}");
    }
}

fn digest(options: &WeightsOptions) -> String {
    train(options).unwrap().written.digest
}

#[test]
fn neither_threads_nor_room_change_a_bit() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    let expected = digest(&options);
    let alone = WeightsOptions { threads: NonZeroUsize::new(1), ..options.clone() };
    assert_eq!(digest(&alone), expected);
    let no_room = WeightsOptions { memory: 0, ..options.clone() };
    assert_eq!(digest(&no_room), expected, "forms made again each time");
    let other = WeightsOptions { seed: 2, ..options };
    assert_ne!(digest(&other), expected);
}

#[test]
fn a_run_ended_anywhere_goes_on_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    let whole = train(&options).unwrap();
    let runs = whole.course.tried.len() * FOLDS;
    let ended = |after: usize| {
        let steps = AtomicUsize::new(0);
        train_until(&options, &|| match steps.fetch_add(1, Ordering::Relaxed) + 1 < after {
            true => Ok(()),
            false => Err(crate::TrainError::Options("ended".to_owned())),
        })
    };
    for after in [1, 7, runs, runs + 1, runs + 4] {
        assert!(ended(after).is_err_and(|error| error.to_string() == "ended"), "{after}");
        assert!(options.run.checkpoint.exists());
        let went_on = train(&options).unwrap();
        assert_eq!(went_on.written.digest, whole.written.digest, "ended after {after} steps");
        let done = went_on.course.resumed;
        // Folds that were running when the search was stopped are saved, too.
        assert!(done.runs >= after.min(runs), "{done:?}");
        assert_eq!(done.epochs, after.saturating_sub(runs));
        assert!(!options.run.checkpoint.exists());
    }

    ended(3).unwrap_err();
    let other = WeightsOptions { lambda: 0.002, ..options.clone() };
    let refusal = train(&other).unwrap_err().to_string();
    assert!(refusal.contains("--restart"), "{refusal}");
    let run = RunFiles { restart: true, ..other.run.clone() };
    let anew = WeightsOptions { run, ..other };
    assert_eq!(train(&anew).unwrap().course.resumed, Default::default());
}
