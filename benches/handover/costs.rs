//! What a question is taken for beside what it takes, for every method and texts of every length:
//! where each method's `INFO.cost` comes from.

use std::path::{Path, PathBuf};

use cognate::engine::{Engine, Query};
use cognate::methods::ranker::Encoder;
use cognate::methods::{Fitted, Kind, Method, ranker};
use cognate::model::writer::Draft;
use cognate::model::{Model, OpenOptions};
use cognate_kernels::random::Random;
use cognate_server::http::Models;
use cognate_server::http::request::query::{Resolved, estimate};
use rustix::time::{ClockId, clock_gettime};

/// Words of both texts.
const LENGTHS: [(usize, usize); 10] = [
    (1, 1),
    (4, 4),
    (12, 12),
    (32, 32),
    (64, 64),
    (128, 128),
    (256, 256),
    (512, 512),
    (8, 512),
    (512, 8),
];
/// Rounds of which the fastest counts: whoever else uses the machine only ever adds.
const ROUNDS: usize = 5;
/// Seconds that a round is meant to take.
const A_ROUND: f64 = 0.02;
/// Most questions of a round.
const MAX_PAIRS: usize = 512;

/// A kind of text, by where its words come from.
struct Words {
    name: &'static str,
    words: Vec<String>,
}

impl Words {
    /// The text of so many words that begins at the word of this number.
    fn text(&self, first: usize, count: usize) -> String {
        let words = self.words.iter().cycle().skip(first % self.words.len()).take(count);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// Returns word lists: words drawn with the model's frequencies, different words, different words of
/// two letters, and words that the model does not list.
fn kinds(model: &Model) -> Vec<Words> {
    let vocabulary = model.vocabulary();
    let plain = |word: &str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let mut chance = Random::seeded(1);
    let counts = vocabulary.counts.expect("the default model has counts");
    let sums: Vec<u64> = counts
        .iter()
        .scan(0_u64, |sum, count| {
            *sum += count;
            Some(*sum)
        })
        .collect();
    let all = sums.last().copied().unwrap_or_default() as usize;
    let drawn = |_| {
        let place = chance.below(all) as u64;
        vocabulary.word(sums.partition_point(|&sum| sum <= place) as u32).to_owned()
    };
    let running = (0..1 << 16).map(drawn).collect();
    let mut chance = Random::seeded(2);
    let mut distinct: Vec<String> =
        vocabulary.words().take(20_000).filter(|word| plain(word)).map(str::to_owned).collect();
    chance.shuffle(&mut distinct);
    let two = vocabulary.words().filter(|word| word.len() == 2).map(str::to_owned).collect();

    let mut letters = |_| char::from(b'a' + chance.below(26) as u8);
    let unlisted = (0..8192).map(|_| (0..7).map(&mut letters).collect()).collect();
    vec![
        Words { name: "drawn", words: running },
        Words { name: "distinct", words: distinct },
        Words { name: "two letters", words: two },
        Words { name: "unlisted", words: unlisted },
    ]
}

/// The engines that between them have every method.
fn engines(default: &Path, folder: &Path) -> Vec<Engine> {
    let open = || Model::open(default, &OpenOptions::default()).expect("the model opens");
    let ranker = |(number, encoder)| {
        let path = of_chance(&open(), encoder, folder.join(format!("{number}.safetensors")));
        Engine::open(&path, &OpenOptions::default()).expect("it opens")
    };
    let encoders = [Encoder::Qatt, Encoder::Bicnn, Encoder::Patt];
    let rankers = encoders.into_iter().enumerate().map(ranker);
    std::iter::once(Engine::new(open()).expect("it is sound")).chain(rankers).collect()
}

/// The model with a network of the paper's size, of numbers of chance: what a post takes depends on
/// sizes alone.
fn of_chance(model: &Model, encoder: Encoder, path: PathBuf) -> PathBuf {
    let (kernel, filters, hidden, joint) = (2, 250, 200, 100);
    let settings =
        ranker::Settings { encoder, kernel, filters, hidden, joint, alpha: 0.1, trained: None };
    let mut chance = Random::seeded(1);
    let mut tensor = |(name, shape): (&'static str, Vec<usize>)| {
        let mut number = |_| chance.below(2001) as f32 * 5e-5 - 0.05;
        let numbers = (0..shape.iter().product()).map(&mut number).collect();
        (name, shape, numbers)
    };
    let shapes = settings.shape(model.dims()).tensors();
    let section = Fitted {
        section: ranker::SECTION,
        settings: serde_json::to_string(&settings).expect("settings"),
        tensors: shapes.into_iter().map(&mut tensor).collect(),
        bytes: Vec::new(),
    };
    let mut draft = Draft::from_model(model);
    section.put_into(&mut draft);
    draft.write(&path).expect("a file");
    path
}

/// What is asked of the texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    /// How alike they are, pair by pair.
    Pairs,
    /// How well each of many answers one.
    All,
}

impl Question {
    fn all(method: Method) -> Vec<Self> {
        let info = method.info();
        match info.kind {
            Kind::Similarity => vec![Self::Pairs, Self::All],
            Kind::Ranker => vec![Self::All],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Pairs => "pairs",
            Self::All => "all",
        }
    }

    fn ask(self, resolved: &Resolved, pairs: &[(String, String)]) -> usize {
        let (engine, query) = (&resolved.model.engine, resolved.query);
        if self == Self::Pairs {
            return engine.similarity(pairs, &query).expect("they score").scores.len();
        }
        let posts: Vec<&str> = pairs.iter().map(|(_, post)| post.as_str()).collect();
        engine.rank(&pairs[0].0, &posts, &query).expect("they rank").results.len()
    }

    /// Nanoseconds that they are taken for.
    fn estimate(self, resolved: &Resolved, pairs: &[(String, String)]) -> u64 {
        let bytes = |texts: &dyn Fn(&(String, String)) -> usize| pairs.iter().map(texts).sum();
        if self == Self::Pairs {
            let multiplications = pairs.iter().map(|(a, b)| resolved.multiplications(a, b)).sum();
            return estimate(bytes(&|(a, b)| a.len() + b.len()), multiplications);
        }
        let posts = pairs.iter().map(|(_, post)| post.as_str());
        let [_, multiplications] =
            resolved.multiplications_of_ranking(std::iter::once(pairs[0].0.as_str()), posts, false);
        estimate(pairs[0].0.len() + bytes(&|(_, b)| b.len()), multiplications)
    }
}

/// Nanoseconds of this thread that an item takes and is taken for.
fn weigh(
    question: Question,
    resolved: &Resolved,
    kind: &Words,
    (n, m): (usize, usize),
) -> (f64, f64) {
    let mut items = 2;
    loop {
        let pairs: Vec<(String, String)> = (0..items)
            .map(|item| (kind.text(item * 997, n), kind.text(item * 997 + 491, m)))
            .collect();
        let taken = || {
            let start = seconds();
            std::hint::black_box(question.ask(resolved, &pairs));
            seconds() - start
        };
        let first = taken().min(taken());
        if first < A_ROUND / 4.0 && items < MAX_PAIRS {
            items *= 4;
            continue;
        }
        let fastest = (0..ROUNDS).map(|_| taken()).fold(first, f64::min);
        let estimate = question.estimate(resolved, &pairs) as f64;
        return (fastest * 1e9 / items as f64, estimate / items as f64);
    }
}

fn seconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// Prints a table of the methods whose names contain a wanted word, or of all methods: the measured cost
/// of an item, and the ratio of the estimated cost to it. Returns the table's rows.
pub fn table(default: &Path, wanted: &[String]) -> Vec<serde_json::Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let shelves: Vec<Models> = engines(default, folder.path())
        .into_iter()
        .map(|engine| Models::with_engine("default", engine))
        .collect();
    let served: Vec<_> = shelves.iter().filter_map(|shelf| shelf.choose(None).ok()).collect();
    let kinds = kinds(served[0].engine.model());
    let mut rows = Vec::new();
    let head: String =
        LENGTHS.iter().map(|(n, m)| format!(" {:>17}", format!("{n} x {m}"))).collect();
    println!("{:>16} {:>5} {:>11}{head}", "us an item", "", "words");
    for &method in Method::ALL {
        if !wanted.is_empty() && !wanted.iter().any(|word| method.name().contains(word.as_str())) {
            continue;
        }
        let able = served.iter().find(|served| served.engine.unavailable(method).is_none());
        let Some(served) = able else { continue };
        let query = Query { truncate: true, ..Query::new(method) };
        let resolved = Resolved { model: (*served).clone(), query, fused: None };
        let questions = Question::all(method).into_iter();
        for (question, kind) in
            questions.flat_map(|question| kinds.iter().map(move |kind| (question, kind)))
        {
            let mut line =
                format!("{:>16} {:>5} {:>11}", method.name(), question.name(), kind.name);
            for lengths in LENGTHS {
                let (taken, estimate) = weigh(question, &resolved, kind, lengths);
                let (taken, estimate) = (taken / 1e3, estimate / 1e3);
                line += &format!(" {taken:>8.1} {:>5.2} x", estimate / taken);
                rows.push(serde_json::json!({
                    "method": method.name(), "question": question.name(), "kind": kind.name,
                    "words": [lengths.0, lengths.1],
                    "us": taken, "estimate_us": estimate,
                }));
            }
            println!("{line}");
        }
    }
    rows
}
