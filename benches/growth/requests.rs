//! Growth of what is asked: pairs a request, words a text, candidates of a ranking.

use cognate::engine::{Engine, Query};
use cognate::methods::Method;

use crate::panels::Panel;
use crate::support::{Clock, Contestant};
use crate::{METHODS, ROUNDS, support};

const PAIRS: [usize; 9] = [1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000];
const WORDS: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
const CANDIDATES: [usize; 7] = [10, 30, 100, 300, 1_000, 3_000, 10_000];
/// Words of text that a turn reads, and the fewest and most pairs that they are cut into.
const WORDS_A_TURN: usize = 80_000;

/// Work of one size: it is done `items` times a turn.
struct Size<'a> {
    size: usize,
    items: usize,
    work: Box<dyn FnMut() -> u64 + 'a>,
}

/// Lets sizes take turns and tells the seconds an item of each.
fn seconds(sizes: Vec<Size<'_>>) -> Vec<(f64, f64)> {
    let counts: Vec<(usize, usize)> = sizes.iter().map(|size| (size.size, size.items)).collect();
    let mut contestants: Vec<Contestant<'_>> =
        sizes.into_iter().map(|size| ("", size.work)).collect();
    let taken = support::interleaved_by(Clock::Thread, &mut contestants, ROUNDS);
    let point =
        |((size, items), taken): (&(usize, usize), f64)| (*size as f64, taken / *items as f64);
    counts.iter().zip(taken).map(point).collect()
}

/// The same in another unit, so many a second.
fn scaled(points: Vec<(f64, f64)>, unit: f64) -> Vec<(f64, f64)> {
    points.into_iter().map(|(size, seconds)| (size, seconds * unit)).collect()
}

/// Scores pairs in requests of so many; what is left over is not asked.
pub fn scores(engine: &Engine, method: Method, pairs: &[(String, String)], request: usize) -> u64 {
    let query = Query::new(method);
    let answers = pairs.chunks_exact(request).map(|pairs| engine.similarity(pairs, &query));
    answers.map(|answer| answer.expect("the pairs can be scored").scores.len() as u64).sum()
}

/// Time a request, and a pair of it, by the pairs of a request.
pub fn by_pairs(engine: &Engine, pairs: &[(String, String)]) -> Vec<Panel> {
    let x = "pairs a request";
    let mut requests =
        Panel::new("pairs-request", "Pairs a request, the request", x, "µs a request");
    let mut each = Panel::new("pairs-pair", "Pairs a request, a pair of it", x, "ns a pair");
    for method in METHODS {
        let size = |&size: &usize| Size {
            size,
            items: pairs.len() / size,
            work: Box::new(move || scores(engine, method, pairs, size)),
        };
        let points = seconds(PAIRS.iter().map(size).collect());
        let pair = points.iter().map(|(pairs, seconds)| (*pairs, seconds / pairs)).collect();
        requests = requests.line(method.name(), scaled(points, 1e6));
        each = each.line(method.name(), scaled(pair, 1e9));
    }
    vec![requests, each]
}

/// Time a pair, by the words of each of its texts, all of them known.
pub fn by_words(engine: &Engine, pairs: &[(String, String)]) -> Panel {
    let vocabulary = engine.model().vocabulary();
    let plain = |word: &&str| {
        word.bytes().all(|byte| byte.is_ascii_lowercase()) && vocabulary.lookup(word).is_some()
    };
    let texts = pairs.iter().flat_map(|(a, b)| [a.as_str(), b.as_str()]);
    let stream: Vec<&str> = texts.flat_map(str::split_ascii_whitespace).filter(plain).collect();
    let cut = |words: usize| -> Vec<(String, String)> {
        let texts: Vec<String> = stream
            .chunks_exact(words)
            .take((WORDS_A_TURN / words).min(4_000))
            .map(|words| words.join(" "))
            .collect();
        texts.as_chunks::<2>().0.iter().map(|[a, b]| (a.clone(), b.clone())).collect()
    };
    let texts = WORDS.map(|words| (words, cut(words)));
    let mut panel = Panel::new("words", "Words a text", "words a text", "ns a pair");
    for method in METHODS {
        // One request for each turn: another panel shows what a request costs in addition to its pairs.
        let sizes = texts.iter().map(|(size, pairs)| Size {
            size: *size,
            items: pairs.len(),
            work: Box::new(move || scores(engine, method, pairs, pairs.len())),
        });
        let points = seconds(sizes.collect());
        panel = panel.line(method.name(), scaled(points, 1e9));
    }
    panel
}

/// Time a ranking, by its candidates.
pub fn by_candidates(engine: &Engine, pairs: &[(String, String)]) -> Panel {
    let all: Vec<&str> = pairs.iter().map(|(_, b)| b.as_str()).collect();
    let mut panel = Panel::new("candidates", "Candidates a ranking", "candidates", "µs a ranking");
    for method in METHODS {
        let query = Query::new(method);
        let all = &all;
        let size = |&size: &usize| {
            let lists: Vec<&[&str]> = all.chunks_exact(size).collect();
            let items = lists.len();
            let ranked = move |(number, list): (usize, &&[&str])| {
                let text = &pairs[number * 7919 % pairs.len()].0;
                let answer = engine.rank(text, list, &query);
                answer.expect("the candidates can be ranked").results.len() as u64
            };
            let work = move || lists.iter().enumerate().map(ranked).sum();
            Size { size, items, work: Box::new(work) }
        };
        let points = seconds(CANDIDATES.iter().map(size).collect());
        panel = panel.line(method.name(), scaled(points, 1e6));
    }
    panel
}
