//! Assigns duplicates to representatives: a text is assigned to the best match among the earlier
//! representatives, and is a representative itself if there is none.
//!
//! So no chain of small differences joins texts that are far apart, each duplicate has a score with
//! its representative, and the outcome depends only on the matches, not on the order in which they
//! were found.

use std::fs::File;
use std::io;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use cognate::model::disk;

use crate::dedupe::block::Match;
use crate::dedupe::sorter::{Sorted, Sorter};

/// Adds a match to those that are sorted by the later text and then the earlier one.
pub(super) fn push(sorter: &mut Sorter, found: &Match) -> io::Result<()> {
    let mut bytes = found.score.to_le_bytes().to_vec();
    bytes.extend_from_slice(found.shared.as_bytes());
    sorter.push((found.later.into(), found.earlier), &bytes)
}

fn next(sorted: &mut Sorted, bytes: &mut Vec<u8>) -> io::Result<Option<Match>> {
    let Some((later, earlier)) = sorted.next(bytes)? else { return Ok(None) };
    let (score, shared) = bytes.split_first_chunk::<4>().unwrap_or((&[0; 4], &[]));
    Ok(Some(Match {
        earlier,
        // The number had 32 bits when it was pushed.
        later: later as u32,
        score: f32::from_le_bytes(*score),
        shared: String::from_utf8_lossy(shared).into_owned(),
    }))
}

pub(super) struct Clusters {
    representative: Vec<u32>,
    score: Vec<f32>,
    shared: Option<SharedWords>,
}

/// The words that duplicates share with their representatives, on disk.
struct SharedWords {
    file: BufWriter<File>,
    /// For each such text, in order: its number, and the offset and length of its words.
    places: Vec<(u32, u64, u32)>,
    end: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Duplicate {
    pub(super) of: u32,
    pub(super) score: f32,
    /// The shared words, if requested and not all of the text's words.
    pub(super) shared: Option<String>,
}

impl Clusters {
    /// Assigns a representative to each text. `firsts` has, for each text, the first text with the same
    /// tokens; `matches` are pairs of such first texts. Calls `look` with every match. If `known` is given,
    /// texts below it belong to another file, and only they are representatives.
    pub(super) fn new(
        firsts: &[u32],
        mut matches: Sorted,
        known: Option<u32>,
        explained_in: Option<&Path>,
        mut look: impl FnMut(&Match) -> io::Result<()>,
    ) -> io::Result<Self> {
        let shared = match explained_in {
            Some(folder) => {
                let file = BufWriter::new(disk::nameless(folder)?);
                Some(SharedWords { file, places: Vec::new(), end: 0 })
            }
            None => None,
        };
        let count = firsts.len() as u32;
        let (representative, score) = ((0..count).collect(), vec![1.0; firsts.len()]);
        let mut clusters = Self { representative, score, shared };
        let (mut best, mut bytes): (Option<Match>, _) = (None, Vec::new());
        while let Some(found) = next(&mut matches, &mut bytes)? {
            look(&found)?;
            if let Some(done) = best.take_if(|best| best.later != found.later) {
                clusters.join(&done)?;
            }
            let stands = clusters.representative_of(found.earlier) == found.earlier;
            let better = best.as_ref().is_none_or(|best| found.score > best.score);
            if stands && better {
                best = Some(found);
            }
        }
        if let Some(done) = best {
            clusters.join(&done)?;
        }
        if let Some(shared) = &mut clusters.shared {
            shared.file.flush()?;
        }
        clusters.take_in_copies(firsts, known);
        Ok(clusters)
    }

    /// The representative of a text (itself, if it is one), and its score with it.
    pub(super) fn of_text(&self, id: u32) -> (u32, f32) {
        let score = self.score.get(id as usize).copied().unwrap_or_default();
        (self.representative_of(id), score)
    }

    fn representative_of(&self, id: u32) -> u32 {
        self.representative.get(id as usize).copied().unwrap_or(id)
    }

    fn join(&mut self, found: &Match) -> io::Result<()> {
        let at = found.later as usize;
        if let (Some(of), Some(score)) = (self.representative.get_mut(at), self.score.get_mut(at)) {
            (*of, *score) = (found.earlier, found.score);
        }
        if let Some(shared) = &mut self.shared {
            let bytes = found.shared.as_bytes();
            shared.file.write_all(bytes)?;
            shared.places.push((found.later, shared.end, bytes.len() as u32));
            shared.end += bytes.len() as u64;
        }
        Ok(())
    }

    /// Texts with the same tokens as an earlier text get that text's representative.
    fn take_in_copies(&mut self, firsts: &[u32], known: Option<u32>) {
        for (at, &first) in firsts.iter().enumerate() {
            if first as usize == at {
                continue;
            }
            let of = self.representative_of(first);
            // The similarity of two new texts does not matter if only known texts represent others.
            if known.is_some_and(|known| of >= known) {
                continue;
            }
            let score = if of == first { 1.0 } else { self.score[first as usize] };
            (self.representative[at], self.score[at]) = (of, score);
        }
    }

    /// What a text duplicates; `None` for a representative.
    pub(super) fn duplicate(&self, id: u32, first: u32) -> io::Result<Option<Duplicate>> {
        let of = self.representative_of(id);
        if of == id {
            return Ok(None);
        }
        let score = self.score.get(id as usize).copied().unwrap_or_default();
        let shared = match &self.shared {
            Some(shared) => shared.of(first)?,
            None => None,
        };
        Ok(Some(Duplicate { of, score, shared }))
    }

    /// Number of representatives with duplicates, and number of duplicates. If `known` is given, texts below
    /// it belong to another file, whose own copies are not counted.
    pub(super) fn counts(&self, known: Option<u32>) -> (u64, u64) {
        let mut stands = vec![0_u64; self.representative.len().div_ceil(64)];
        let mut duplicates = 0;
        let own = self.representative.iter().enumerate().skip(known.unwrap_or_default() as usize);
        for (at, &of) in own {
            if of as usize != at {
                duplicates += 1;
                stands[of as usize / 64] |= 1 << (of % 64);
            }
        }
        (stands.iter().map(|bits| u64::from(bits.count_ones())).sum(), duplicates)
    }
}

/// Returns for each of `texts` distinct texts the number of its representative (the text itself, if it is
/// one) and its score with it; matches may be in any order.
pub fn stand_for(texts: u32, found: &[Match]) -> io::Result<Vec<(u32, f32)>> {
    // No folder is needed: everything stays in memory.
    let mut matches = Sorter::new(PathBuf::new(), usize::MAX);
    found.iter().try_for_each(|found| push(&mut matches, found))?;
    let firsts: Vec<u32> = (0..texts).collect();
    let clusters = Clusters::new(&firsts, matches.finish()?, None, None, |_| Ok(()))?;
    Ok((0..texts).map(|id| clusters.of_text(id)).collect())
}

impl SharedWords {
    fn of(&self, id: u32) -> io::Result<Option<String>> {
        let Ok(at) = self.places.binary_search_by_key(&id, |place| place.0) else {
            return Ok(None);
        };
        let (_, from, count) = self.places[at];
        let mut bytes = vec![0; count as usize];
        self.file.get_ref().read_exact_at(&mut bytes, from)?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clusters(firsts: &[u32], found: &[(u32, u32, f32)], known: Option<u32>) -> Clusters {
        let folder = std::env::temp_dir();
        let mut matches = Sorter::new(folder.clone(), 1 << 20);
        for &(earlier, later, score) in found {
            let shared = format!("{earlier} {later}");
            push(&mut matches, &Match { earlier, later, score, shared }).unwrap();
        }
        let mut seen = 0;
        let matches = matches.finish().unwrap();
        let look = |_: &Match| {
            seen += 1;
            Ok(())
        };

        let clusters = Clusters::new(firsts, matches, known, Some(&folder), look).unwrap();
        assert_eq!(seen, found.len());
        clusters
    }

    #[test]
    fn a_text_belongs_to_its_best_match_that_stands_for_itself() {
        // 2 matches 1, which belongs to 0; 4 matches 3 better than 0.
        let found = [(0, 1, 0.9), (1, 2, 0.95), (0, 4, 0.9), (3, 4, 0.92)];
        let clusters = clusters(&[0, 1, 2, 3, 4], &found, None);
        assert_eq!(clusters.representative, [0, 0, 2, 3, 3]);
        assert_eq!(clusters.counts(None), (2, 2));
        let expected = Duplicate { of: 3, score: 0.92, shared: Some("3 4".to_owned()) };
        assert_eq!(clusters.duplicate(4, 4).unwrap(), Some(expected));
        assert_eq!(clusters.duplicate(2, 2).unwrap(), None);
    }

    #[test]
    fn copies_follow_the_first_of_them() {
        let found = [(0, 1, 0.9)];
        let clusters = clusters(&[0, 1, 0, 1, 4], &found, None);
        assert_eq!(clusters.representative, [0, 0, 0, 0, 4]);
        assert_eq!(clusters.score[2..4], [1.0, 0.9]);
        let shared = |id, first| clusters.duplicate(id, first).unwrap().unwrap().shared;
        assert_eq!(shared(3, 1).as_deref(), Some("0 1"));
        assert_eq!(shared(2, 0), None, "all of them");
    }

    #[test]
    fn with_another_file_only_its_texts_stand_for_others() {
        let clusters = clusters(&[0, 1, 0, 3, 3, 1, 6], &[(0, 6, 0.8)], Some(3));
        assert_eq!(clusters.representative, [0, 1, 0, 3, 4, 1, 0]);
        assert_eq!(clusters.counts(Some(3)), (2, 2), "the copy within the other file is none");
    }
}
