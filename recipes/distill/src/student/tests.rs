//! Gradients, steps and threads of a batch.

use cognate_kernels::random::Random;
use cognate_train::sampling;

use super::*;

const DIMS: usize = 5;
const WORDS: usize = 9;

fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::seeded(seed);
    (0..count).map(|_| sampling::normal(&mut random) as f32).collect()
}

/// Texts of one to four words, one of them with a word twice.
fn texts(count: usize) -> (Bags, Targets) {
    let mut bags = Bags::default();
    for text in 0..count as u32 {
        let words: Vec<u32> =
            (0..1 + text % 4).map(|at| (text * 5 + at * 3) % WORDS as u32).collect();
        bags.push(&words);
    }
    bags.push(&[2, 2, 7]);
    (bags, Targets::of(numbers((count + 1) * DIMS, 2), DIMS))
}

fn loss(student: &Student, batch: &[u32], of: (&Bags, &Targets), weight: f32) -> f64 {
    let mut work = Work::default();
    work.sum(student, batch, of.0, of.1);
    let loss = work.differ(DIMS, batch.len());
    loss.apart + f64::from(weight) * loss.divergence
}

#[test]
fn gradients_are_slopes_of_the_loss() {
    let (bags, targets) = texts(7);
    let batch: Vec<u32> = (0..8).collect();
    let student = Student::new(numbers(WORDS * DIMS, 1), DIMS);
    let weight = 0.05;
    let mut work = Work::default();
    work.sum(&student, &batch, &bags, &targets);
    work.differ(DIMS, batch.len());
    work.descend(DIMS, batch.len(), weight / TEMPERATURE);
    work.mention(&batch, &bags, &[false; WORDS]);
    for word in 0..WORDS {
        for column in 0..DIMS {
            let of_word = work.mentions.iter().filter(|(found, _)| *found as usize == word);
            let slope: f32 =
                of_word.map(|(_, text)| work.gradients[*text as usize * DIMS + column]).sum();
            let at = |step: f32| {
                let mut moved = student.clone();
                moved.rows[word * DIMS + column] += step;
                loss(&moved, &batch, (&bags, &targets), weight)
            };
            let measured = (at(2e-3) - at(-2e-3)) / 4e-3;
            let apart = (measured - f64::from(slope)).abs();
            assert!(apart < 5e-3 + 0.01 * measured.abs(), "{word} {column} {measured} {slope}");
        }
    }
}

#[test]
fn steps_lower_the_loss_and_leave_frozen_words() {
    let (bags, targets) = texts(60);
    let batch: Vec<u32> = (0..61).collect();
    let mut student = Student::new(numbers(WORDS * DIMS, 1), DIMS);
    let before = (student.clone(), loss(&student, &batch, (&bags, &targets), 0.08));
    let mut frozen = [false; WORDS];
    frozen[4] = true;
    let pace = Pace { rate: 0.02, divergence: 0.08 };
    let mut work = Work::default();
    for _ in 0..50 {
        student.step(&batch, (&bags, &targets, &frozen), pace, &mut work);
    }
    let after = loss(&student, &batch, (&bags, &targets), 0.08);
    assert!(after < 0.9 * before.1, "{after} {}", before.1);
    let frozen = 4 * DIMS..5 * DIMS;
    assert_eq!(student.rows[frozen.clone()], before.0.rows[frozen]);
    assert_eq!(student.steps, [50, 50, 50, 50, 0, 50, 50, 50, 50]);
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let (bags, targets) = texts(300);
    let batch: Vec<u32> = (0..301).collect();
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut student = Student::new(numbers(WORDS * DIMS, 1), DIMS);
            let (mut work, pace) = (Work::default(), Pace { rate: 0.01, divergence: 0.08 });
            for _ in 0..5 {
                student.step(&batch, (&bags, &targets, &[false; WORDS]), pace, &mut work);
            }
            student
        })
    };
    assert_eq!(with(1), with(4));
}
