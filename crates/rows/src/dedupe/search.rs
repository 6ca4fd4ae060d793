//! The search: texts with the same tokens, words counted and a sample drawn, keys, blocks, clusters.
//! Where texts come from and what is written is not known here.

use std::io;
use std::sync::atomic::Ordering;

use rayon::prelude::*;

use crate::dedupe::block::{Block, Blocks, Match, Member, Work};
use crate::dedupe::buckets::Buckets;
use crate::dedupe::check::Check;
use crate::dedupe::clusters::{Clusters, Matches};
use crate::dedupe::judge::Judge;
use crate::dedupe::keys::WordCounts;
use crate::dedupe::sorter::{Sorted, Sorter};
use crate::dedupe::texts::{Text, Texts};
use crate::dedupe::{DedupeError, Report, Search, steps};

/// Texts of blocks that are worked on at a time.
const BATCH: usize = 1 << 15;

pub(super) struct Found<'e> {
    pub(super) judge: Judge<'e>,
    /// For each text the first with the same tokens.
    pub(super) firsts: Vec<u32>,
    pub(super) clusters: Clusters,
    /// What was done; the time is not known here.
    pub(super) report: Report,
}

/// Looks for duplicates; `look` sees every match, and the number of the first text of the file itself.
pub(super) fn search<'e>(
    judge: Judge<'e>,
    search: &Search,
    texts: &Texts<'_>,
    mut look: impl FnMut(&Match, u32) -> io::Result<()>,
) -> Result<Found<'e>, DedupeError> {
    let mut run = Run { search, judge, texts, report: Report::default() };
    let firsts = run.same_tokens()?;
    let is_first = |id: u32| firsts.get(id as usize).is_some_and(|&first| first == id);
    let distinct = firsts.iter().zip(0..).filter(|&(&first, id)| first == id).count() as u64;
    let (counts, buckets) = run.learn(distinct, &is_first)?;
    let blocks = run.blocks(&counts, &buckets, &is_first)?;
    drop(counts);
    let matches = run.compare(blocks)?;
    let mut check = Check::new(search.check, firsts.len() as u32, is_first);
    let mut ordered = matches.finish().map_err(|error| search.room(error))?;
    run.report.runs += ordered.runs();
    let explained_in = search.explain.then_some(search.folder.as_path());
    let known = run.judge.known;
    let clusters = Clusters::of(&firsts, &mut ordered, known, explained_in, |found| {
        check.see(found);
        look(found, known.unwrap_or_default())
    });
    let clusters = clusters.map_err(|error| search.room(error))?;
    if search.check > 0 {
        run.report.recall = Some(check.finish(run.texts, &run.judge, is_first)?);
    }
    let Run { judge, mut report, .. } = run;
    let records = firsts.len() as u64 - u64::from(known.unwrap_or_default());
    (report.records, report.known, report.distinct) = (records, known.map(u64::from), distinct);
    (report.clusters, report.duplicates) = clusters.counts();
    report.buckets = buckets.count();
    Ok(Found { judge, firsts, clusters, report })
}

struct Run<'r, 'e> {
    search: &'r Search,
    judge: Judge<'e>,
    texts: &'r Texts<'r>,
    report: Report,
}

impl Run<'_, '_> {
    fn sorter(&self, share: usize) -> Sorter {
        Sorter::new(self.search.folder.clone(), self.search.memory / share)
    }

    fn go_on(&self) -> Result<(), DedupeError> {
        match self.search.stop.load(Ordering::Relaxed) {
            true => Err(DedupeError::Stopped),
            false => Ok(()),
        }
    }

    /// For each text the first with the same tokens; itself where it has none.
    fn same_tokens(&mut self) -> Result<Vec<u32>, DedupeError> {
        let mut digests = self.sorter(1);
        let digest = |part: &[Text]| {
            self.go_on()?;
            let digests = self.judge.digests(part).into_iter().zip(part);
            let known = digests.filter_map(|(digest, text)| Some((text.id, digest?)));
            Ok(known.collect::<Vec<_>>())
        };
        let count = self.texts.each(
            "texts",
            |_| true,
            digest,
            |part| {
                for (id, digest) in part {
                    let (high, low) = ((digest >> 64) as u64, digest as u64);
                    digests
                        .push((high, id.into()), &low.to_le_bytes())
                        .map_err(|error| self.search.room(error))?;
                }
                Ok(())
            },
        )?;
        let mut firsts: Vec<u32> = (0..count).collect();
        let mut sorted = digests.finish().map_err(|error| self.search.room(error))?;
        self.report.runs += sorted.runs;
        let mut group: (u64, Vec<(Vec<u8>, u32)>) = (0, Vec::new());
        let mut low = Vec::new();
        while let Some((high, id)) =
            sorted.next(&mut low).map_err(|error| self.search.room(error))?
        {
            if group.0 != high {
                group = (high, Vec::new());
            }
            let id = id as u32;
            match group.1.iter().find(|(known, _)| *known == low) {
                Some(&(_, first)) => firsts[id as usize] = first,
                None => group.1.push((low.clone(), id)),
            }
        }
        self.judge.known = self.texts.known()?;
        Ok(firsts)
    }

    /// Counts words and finds the centres of buckets.
    fn learn(
        &mut self,
        distinct: u64,
        is_first: &(impl Fn(u32) -> bool + Sync),
    ) -> Result<(WordCounts, Buckets), DedupeError> {
        let counts = WordCounts::default();
        let judge = &self.judge;
        let work = |part: &[Text]| {
            self.go_on()?;
            judge.count(part, &counts);
            let sample = part.iter().filter(|text| steps::drawn(text.id, distinct));
            judge.vectors_of(&sample.collect::<Vec<_>>()).map_err(DedupeError::Query)
        };
        let mut sample = Vec::new();
        self.texts.each("words", is_first, work, |rows| {
            let has_length = |row: &&[f32]| row.iter().any(|&x| x != 0.0);
            sample.extend(rows.chunks_exact(judge.dims).filter(has_length).flatten());
            Ok(())
        })?;
        let buckets = Buckets::of(&sample, judge.dims, distinct);
        Ok((counts, buckets))
    }

    /// Puts texts into the order of the keys they are compared by.
    fn blocks(
        &mut self,
        counts: &WordCounts,
        buckets: &Buckets,
        is_first: &(impl Fn(u32) -> bool + Sync),
    ) -> Result<Sorted, DedupeError> {
        let work = |part: &[Text]| {
            self.go_on()?;
            let keys = self.judge.keys(part, counts, buckets).map_err(DedupeError::Query)?;
            Ok(part.iter().cloned().zip(keys).collect::<Vec<_>>())
        };
        let mut blocks = self.sorter(1);
        let mut bytes = Vec::new();
        self.texts.each("keys", is_first, work, |made| {
            for (text, own) in made {
                bytes.clear();
                bytes.push(own.len() as u8);
                own.iter().for_each(|key| bytes.extend_from_slice(&key.to_le_bytes()));
                bytes.extend_from_slice(text.text.as_bytes());
                for &key in &own {
                    blocks
                        .push((key, text.id.into()), &bytes)
                        .map_err(|error| self.search.room(error))?;
                }
            }
            Ok(())
        })?;
        let sorted = blocks.finish().map_err(|error| self.search.room(error))?;
        self.report.runs += sorted.runs;
        Ok(sorted)
    }

    /// Compares the texts of each block.
    fn compare(&mut self, mut sorted: Sorted) -> Result<Matches, DedupeError> {
        let mut matches = Matches::new(self.sorter(4));
        let mut ahead = Blocks::default();
        let mut batch =
            next_blocks(&mut sorted, &mut ahead).map_err(|error| self.search.room(error))?;
        while !batch.is_empty() {
            let judged = |(key, members): &Block| {
                self.go_on()?;
                self.judge.matches(*key, members).map_err(DedupeError::Query)
            };
            let (done, next) = rayon::join(
                || batch.par_iter().with_max_len(1).map(judged).collect::<Vec<_>>(),
                || next_blocks(&mut sorted, &mut ahead),
            );
            for done in done {
                let (found, Work { compared, scored }) = done?;
                self.report.compared += compared;
                self.report.scored += scored;
                self.report.matches += found.len() as u64;
                let mut push = |found: &Match| matches.push(found);
                found.iter().try_for_each(&mut push).map_err(|error| self.search.room(error))?;
            }
            batch = next.map_err(|error| self.search.room(error))?;
        }
        self.report.method = self.search.query.method.name();
        (self.report.threshold, self.report.floor) = (self.judge.threshold, self.judge.floor);
        Ok(matches)
    }
}

/// The next blocks of more than one text, as many as are worked on at a time.
fn next_blocks(sorted: &mut Sorted, ahead: &mut Blocks) -> io::Result<Vec<Block>> {
    let (mut blocks, mut held, mut bytes) = (Vec::new(), 0, Vec::new());
    while held < BATCH {
        let Some((key, id)) = sorted.next(&mut bytes)? else {
            blocks.extend(ahead.finish());
            break;
        };
        if let Some(block) = ahead.push(key, member(id as u32, &bytes)) {
            held += block.1.len();
            blocks.push(block);
        }
    }
    Ok(blocks)
}

/// A text as it was put into its blocks.
fn member(id: u32, bytes: &[u8]) -> Member {
    let (&count, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let (keys, text) = rest.split_at_checked(usize::from(count) * 8).unwrap_or_default();
    let keys = keys.as_chunks::<8>().0.iter().map(|key| u64::from_le_bytes(*key)).collect();
    Member { id, keys, text: String::from_utf8_lossy(text).into_owned() }
}
