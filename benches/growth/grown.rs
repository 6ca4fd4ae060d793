//! Vectors of any size, made of the real ones: for figures that depend on sizes alone.

use std::collections::HashSet;

use crate::ground::Vectors;

/// The first `words` words, made-up ones after the real ones are used up. Their rows are real rows,
/// turned by a few places or, where more dimensions are wanted, repeated.
pub fn grown(real: &Vectors, words: usize, dims: usize) -> Vectors {
    let known: HashSet<&str> = real.words.iter().map(String::as_str).collect();
    let made_up = (0..).map(made_up).filter(|word| !known.contains(word.as_str()));
    let all: Vec<String> = real.words.iter().cloned().chain(made_up).take(words).collect();
    let mut rows = Vec::with_capacity(words * dims);
    for number in 0..words {
        let (turn, place) = (number / real.words.len(), number % real.words.len());
        let row = &real.rows[place * real.dims..][..real.dims];
        rows.extend((0..dims).map(|d| row[(d + 7 * turn) % real.dims]));
    }
    Vectors { words: all, rows, dims }
}

/// A word of letters alone, so that it is one token under any rules.
fn made_up(mut number: usize) -> String {
    let mut word = String::from("zq");
    loop {
        word.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
        if number == 0 {
            return word;
        }
    }
}
