//! The gradient held to finite differences, the bits to the number of threads.

use cognate::text::Normalisation;
use cognate_kernels::random::Random;

use super::*;
use crate::vectors::siamese::Tally;
use crate::vectors::tables::{Blocks, Update};

const DIMS: usize = 7;

fn corpus() -> Corpus {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text.txt");
    let mut random = Random::seeded(11);
    let mut text = String::new();
    for document in 0..12 {
        for _ in 0..4 {
            for _ in 0..1 + random.below(6) {
                text.push_str(&format!("w{} ", (document * 3 + random.below(9)) % 40));
            }
            text.push('\n');
        }
        text.push_str("\n\n");
    }
    std::fs::write(&file, text).unwrap();
    Corpus::read(&[file], &Normalisation::preset("plain").unwrap(), 1).unwrap()
}

fn rows(words: usize) -> Vec<f32> {
    let mut random = Random::seeded(5);
    (0..words * DIMS).map(|_| (random.below(2000) as f32 - 1000.0) / 1000.0).collect()
}

/// The loss of a batch as the paper's equations have it, in doubles and from nothing but texts.
fn loss(corpus: &Corpus, batch: &Batch, rows: &[f64]) -> f64 {
    let mean = |slot: u32| -> Vec<f64> {
        let words = corpus.sentence(batch.sentences[slot as usize]);
        let at = |dim: usize| words.iter().map(move |&word| rows[word as usize * DIMS + dim]);
        (0..DIMS).map(|dim| at(dim).sum::<f64>() / words.len() as f64).collect()
    };
    let cosine = |a: &[f64], b: &[f64]| {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    };
    let mut loss = 0.0;
    for example in 0..batch.centres.len() {
        let of = |to: &&Relation| to.example as usize == example;
        let relations: Vec<&Relation> = batch.relations.iter().filter(of).collect();
        let centre = mean(batch.centres[example]);
        let weights: Vec<f64> =
            relations.iter().map(|to| cosine(&centre, &mean(to.other)).exp()).collect();
        let total: f64 = weights.iter().sum();
        let neighbours = relations.iter().filter(|to| to.neighbour).count() as f64;
        for (to, weight) in relations.iter().zip(weights) {
            if to.neighbour {
                loss -= (weight / total).ln() / neighbours;
            }
        }
    }
    loss
}

fn step(siamese: &Siamese<'_>, rows: &mut [f32], squares: &mut [f32], update: Update) -> Tally {
    let mut batch = Batch::default();
    siamese.gather(0, &mut batch);
    let blocks = Blocks::of_words(&siamese.corpus.counts, DIMS);
    batch.step(siamese.corpus, &blocks, rows, squares, update)
}

#[test]
fn a_step_goes_down_the_gradient() {
    let corpus = corpus();
    let siamese = Siamese::new(&corpus, 20, (Others::Text, 3), 9);
    let before = rows(corpus.words.len());
    let mut batch = Batch::default();
    siamese.gather(0, &mut batch);
    let exact: Vec<f64> = before.iter().map(|&value| f64::from(value)).collect();
    let mut after = before.clone();
    let tally = step(&siamese, &mut after, &mut [], Update::Descend(1.0));
    assert!((tally.loss - loss(&corpus, &batch, &exact)).abs() < 1e-4);
    let mut largest = 0.0_f64;
    for at in 0..before.len() {
        let moved = |by: f64| {
            let mut rows = exact.clone();
            rows[at] += by;
            loss(&corpus, &batch, &rows)
        };
        let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
        let gradient = f64::from(before[at] - after[at]);
        assert!((difference - gradient).abs() < 1e-4, "{at}: {difference} {gradient}");
        largest = largest.max(gradient.abs());
    }
    assert!(largest > 0.01, "nothing was learned: {largest}");
}

#[test]
fn neighbours_are_of_the_document_and_others_are_not() {
    let corpus = corpus();
    let mut siamese = Siamese::new(&corpus, 20, (Others::Text, 3), 9);
    siamese.begin(1);
    let mut centres = Vec::new();
    for number in 0..siamese.batches() {
        let mut batch = Batch::default();
        siamese.gather(number, &mut batch);
        assert!(batch.centres.len() <= 20);
        for to in &batch.relations {
            let centre = batch.sentences[batch.centres[to.example as usize] as usize];
            let other = batch.sentences[to.other as usize];
            assert_eq!(to.neighbour, corpus.same_document(centre, other));
            assert!(!to.neighbour || centre.abs_diff(other) == 1);
        }
        centres.extend(batch.centres.iter().map(|&slot| batch.sentences[slot as usize]));
    }
    // Every sentence is a centre once an epoch: all of these documents have several.
    centres.sort_unstable();
    assert_eq!(centres, (0..corpus.sentences()).collect::<Vec<_>>());
}

#[test]
fn others_of_the_document_are_not_beside_the_centre() {
    let corpus = corpus();
    let siamese = Siamese::new(&corpus, 20, (Others::Document, 3), 9);
    let mut batch = Batch::default();
    siamese.gather(0, &mut batch);
    for to in batch.relations.iter().filter(|to| !to.neighbour) {
        let centre = batch.sentences[batch.centres[to.example as usize] as usize];
        let other = batch.sentences[to.other as usize];
        assert!(corpus.same_document(centre, other) && centre.abs_diff(other) > 1);
    }
    let mut random = Random::seeded(3);
    let mut seen = [0; 9];
    (0..600).for_each(|_| seen[near(4, 2..9, &mut random).unwrap()] += 1);
    assert_eq!(seen.map(|count| count > 100), [0, 0, 1, 0, 0, 0, 1, 1, 1].map(|here| here == 1));
    for (centre, run) in [(0, 0..2), (1, 0..3), (5, 5..6)] {
        assert_eq!(near(centre, run, &mut random), None);
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let corpus = corpus();
    let siamese = Siamese::new(&corpus, 40, (Others::Document, 2), 9);
    for update in [Update::Descend(0.1), Update::Adagrad(0.1)] {
        let trained = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut rows = rows(corpus.words.len());
            let mut squares = vec![0.0; rows.len()];
            pool.install(|| step(&siamese, &mut rows, &mut squares, update));
            rows
        };
        let one = trained(1);
        assert_eq!(one, trained(4));
        assert_ne!(one, rows(corpus.words.len()));
    }
}

#[test]
fn adagrad_divides_by_the_root_of_the_squares_so_far() {
    let (mut row, mut squares) = (vec![1.0_f32; 2], vec![0.0_f32, 9.0]);
    let gradients = [[3.0_f32, 1.0], [1.0, 3.0]];
    let update = Update::Adagrad(0.5);
    update.apply(&mut row, &mut squares, gradients.iter().map(<[f32; 2]>::as_slice));
    assert_eq!(squares, [16.0, 25.0]);
    assert!((row[0] - 0.5).abs() < 1e-6 && (row[1] - (1.0 - 0.5 * 4.0 / 5.0)).abs() < 1e-6);
}
