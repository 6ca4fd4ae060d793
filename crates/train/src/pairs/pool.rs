//! A pool of chunks from earlier documents, so that non-related pairs can be made in one pass over
//! the text with bounded memory.
//!
//! Each related pair brings two chunks. One is paired at once with a random chunk of another
//! document from the pool; the other takes that chunk's place. So, as far as the documents allow,
//! each text occurs exactly once under each label, and no text reveals its label. Until the pool is
//! large enough, non-related pairs are only counted as owed; they are made at the end from the
//! chunks left in the pool.

use cognate_kernels::random::Random;

use crate::Result;
use crate::pairs::{Label, Output};

/// Maximum chunks in the pool: those of some 400 encyclopaedia articles, a few megabytes.
const WAITING: usize = 1 << 14;

#[derive(Debug, Clone)]
struct Chunk {
    document: u64,
    text: String,
}

/// Waiting chunks; those of the current document come last.
#[derive(Debug)]
pub(super) struct Pool {
    chunks: Vec<Chunk>,
    earlier: usize,
    document: u64,
    seen: usize,
    owed: u64,
    capacity: usize,
}

impl Pool {
    pub(super) fn new() -> Self {
        Self::with_capacity(WAITING)
    }

    fn with_capacity(capacity: usize) -> Self {
        Self { chunks: Vec::new(), earlier: 0, document: 0, seen: 0, owed: 0, capacity }
    }

    /// Adds the chunks of a related pair; makes a non-related pair, or counts it as owed.
    pub(super) fn take(
        &mut self,
        texts: [&str; 2],
        random: &mut Random,
        output: &mut Output,
    ) -> Result<()> {
        // If a document had more than half of the pool's chunks, some would find no chunk of another document.
        let half = self.capacity / 2;
        let own = self.chunks.len() - self.earlier;
        self.seen += 1;
        if own + 2 <= half && self.chunks.len() + 2 <= self.capacity {
            let document = self.document;
            self.chunks.extend(texts.map(|text| Chunk { document, text: text.to_owned() }));
            self.owed += 1;
            return Ok(());
        }
        let fresh = random.below(2);
        let mut place = self.earlier + random.below(self.seen);
        if self.earlier == 0 {
            self.owed += 1;
        } else {
            let drawn = random.below(self.earlier);
            output.push(Label::NonRelated, [texts[fresh], self.chunks[drawn].text.as_str()])?;
            if own < half {
                self.earlier -= 1;
                self.chunks.swap(drawn, self.earlier);
                place = self.earlier;
            }
        }
        // Reservoir sampling: each pair of an overlong document is equally likely to be in the
        // pool.
        if let Some(chunk) = self.chunks.get_mut(place) {
            chunk.document = self.document;
            chunk.text.clear();
            chunk.text.push_str(texts[1 - fresh]);
        }
        Ok(())
    }

    pub(super) fn end_document(&mut self) {
        self.document += 1;
        self.earlier = self.chunks.len();
        self.seen = 0;
    }

    /// Makes the owed pairs; `false` if all chunks belong to one document.
    pub(super) fn settle(mut self, random: &mut Random, output: &mut Output) -> Result<bool> {
        random.shuffle(&mut self.chunks);
        self.chunks.sort_by_key(|chunk| chunk.document);
        let mut write = |one: &Chunk, other: &Chunk| {
            output.push(Label::NonRelated, [one.text.as_str(), other.text.as_str()])
        };
        // After sorting, a chunk and the one half a pool further on belong to different documents,
        // unless one document has more than half of the chunks. So each chunk is used once.
        let (lower, upper) = self.chunks.split_at(self.chunks.len() / 2);
        for (one, other) in lower.iter().zip(upper) {
            if self.owed > 0 && one.document != other.document {
                write(one, other)?;
                self.owed -= 1;
            }
        }
        let [first, .., last] = self.chunks.as_slice() else { return Ok(false) };
        if first.document == last.document {
            return Ok(false);
        }
        // There were few documents, or one very long one: chunks are used more than once.
        for _ in 0..self.owed {
            let one = &self.chunks[random.below(self.chunks.len())];
            let from = self.chunks.partition_point(|chunk| chunk.document < one.document);
            let to = self.chunks.partition_point(|chunk| chunk.document <= one.document);
            let mut other = random.below(self.chunks.len() - (to - from));
            if other >= from {
                other += to - from;
            }
            write(one, &self.chunks[other])?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The non-related pairs, given the number of related pairs of each document, as the names
    /// `document:pair:side` of their chunks; and the chunks left in the pool.
    fn paid(capacity: usize, documents: &[usize]) -> (Vec<[String; 2]>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("couples.tsv");
        let mut output = Output::create(&path, &[]).unwrap();
        let (mut pool, mut random) = (Pool::with_capacity(capacity), Random::seeded(5));
        for (document, &pairs) in documents.iter().enumerate() {
            for pair in 0..pairs {
                let names = ["a", "b"].map(|side| format!("{document}:{pair}:{side}"));
                pool.take([&names[0], &names[1]], &mut random, &mut output).unwrap();
            }
            assert!(pool.chunks.len() <= capacity);
            pool.end_document();
        }
        let waiting = pool.chunks.iter().map(|chunk| chunk.text.clone()).collect();
        let settled = pool.settle(&mut random, &mut output).unwrap();
        output.finish().unwrap();
        let rows = std::fs::read_to_string(path).unwrap();
        let fields = |row: &str| -> Vec<String> { row.split('\t').map(str::to_owned).collect() };
        let pairs: Vec<[String; 2]> =
            rows.lines().skip(1).map(|row| fields(row)[1..].to_vec().try_into().unwrap()).collect();
        let related: usize = documents.iter().sum();
        assert!(!settled || pairs.len() == related, "{} for {related}", pairs.len());
        for [one, other] in &pairs {
            assert_ne!(one.split_once(':').unwrap().0, other.split_once(':').unwrap().0);
        }
        (pairs, waiting)
    }

    fn uses(pairs: &[[String; 2]]) -> BTreeMap<&str, usize> {
        let mut uses = BTreeMap::new();
        pairs.iter().flatten().for_each(|name| *uses.entry(name.as_str()).or_default() += 1);
        uses
    }

    #[test]
    fn every_chunk_is_used_once_where_no_document_is_too_long() {
        for documents in [vec![1, 1], vec![3, 2, 4], vec![7; 100], (0..30).collect()] {
            for capacity in [16, 64, 4096] {
                // Documents longer than half the pool are covered by another test.
                if documents.iter().any(|&pairs| 4 * pairs > capacity) {
                    continue;
                }
                let (pairs, _) = paid(capacity, &documents);
                let uses = uses(&pairs);
                assert_eq!(uses.len(), 2 * pairs.len(), "{documents:?} in {capacity}");
                assert!(uses.values().all(|&count| count == 1));
            }
        }
    }

    #[test]
    fn documents_of_any_length_are_balanced() {
        for documents in [
            vec![1, 500],
            vec![500, 1],
            vec![500, 1, 500],
            vec![0, 3, 0, 0, 90, 1],
            vec![40, 50, 60, 70],
        ] {
            for capacity in [16, 64] {
                assert!(!paid(capacity, &documents).0.is_empty());
            }
        }
    }

    #[test]
    fn one_document_alone_pays_nothing() {
        for documents in [vec![], vec![0, 0], vec![5], vec![0, 50, 0]] {
            assert!(paid(16, &documents).0.is_empty(), "{documents:?}");
        }
    }

    #[test]
    fn of_a_long_document_chunks_from_everywhere_wait() {
        let (_, waiting) = paid(200, &[10_000]);
        let pair = |name: &String| name.split(':').nth(1).unwrap().parse::<f64>().unwrap();
        let mean = waiting.iter().map(pair).sum::<f64>() / waiting.len() as f64;
        // The mean of 100 numbers from 0 to 9,999 has a standard deviation of 289.
        assert_eq!(waiting.len(), 100);
        assert!((mean - 5000.0).abs() < 1000.0, "{mean}");
    }
}
