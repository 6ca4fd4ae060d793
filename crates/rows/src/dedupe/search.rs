//! Runs the search: texts with the same tokens, word counts and a sample, keys, blocks, clusters, and
//! the check of the search's recall. Other modules read texts and write results.

use std::collections::{BTreeSet, BinaryHeap};
use std::io;
use std::sync::atomic::Ordering;

use cognate::engine::{Engine, QueryError, RankOptions};
use cognate_kernels::scan::Probe;
use rayon::prelude::*;
use serde::Serialize;

use crate::dedupe::block::{Block, Blocks, Match, Row, Work};
use crate::dedupe::buckets::{Buckets, Centres};
use crate::dedupe::clusters::Clusters;
use crate::dedupe::judge::{Judge, Mark};
use crate::dedupe::sorter::{Sorted, Sorter};
use crate::dedupe::steps::WordCounts;
use crate::dedupe::store::Store;
use crate::dedupe::texts::{Source, Text, Texts};
use crate::dedupe::words::{WordBits, mixed};
use crate::dedupe::{DedupeError, Report, Search, clusters, steps, words};

/// Texts in the blocks that are compared at a time.
const BATCH: usize = 1 << 15;
/// Shares of the memory: of what is kept of each text, of texts, and of the sorted keys of both.
const ROWS_SHARE: (usize, usize) = (3, 8);
const TEXTS_SHARE: usize = 32;
const KEYS_SHARE: usize = 4;

pub(super) struct SearchResult<'e> {
    pub(super) judge: Judge<'e>,
    /// For each text, the number of the first text with the same tokens.
    pub(super) firsts: Vec<u32>,
    pub(super) clusters: Clusters,
    /// The counts of the report; the time is filled in by the caller.
    pub(super) report: Report,
}

/// Searches for duplicates; calls `look` with every match and the number of texts in the other
/// file.
pub(super) fn search<'e>(
    judge: Judge<'e>,
    search: &Search,
    texts: &Texts<'_>,
    mut look: impl FnMut(&Match, u32) -> io::Result<()>,
) -> Result<SearchResult<'e>, DedupeError> {
    let mut run = Run { search, judge, texts, report: Report::default() };
    let firsts = run.same_tokens()?;
    let is_first = |id: u32| firsts.get(id as usize).is_some_and(|&first| first == id);
    let distinct = firsts.iter().zip(0..).filter(|&(&first, id)| first == id).count() as u64;
    let (counts, buckets) = run.learn(distinct, &is_first)?;
    let (blocks, kept) = run.blocks(&counts, &buckets, &is_first)?;
    drop(counts);
    let matches = run.compare(blocks, &kept)?;
    drop(kept);
    let mut check = Check::new(search.check, firsts.len() as u32, is_first);
    let ordered = matches.finish().map_err(|error| search.room(error))?;
    run.report.runs += ordered.runs;
    let explained_in = search.explain.then_some(search.folder.as_path());
    let known = run.judge.known;
    let clusters = Clusters::new(&firsts, ordered, known, explained_in, |found| {
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
    (report.clusters, report.duplicates) = clusters.counts(known);
    report.buckets = buckets.count();
    Ok(SearchResult { judge, firsts, clusters, report })
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

    /// For each text, the number of the first one with the same tokens; itself if it has no tokens.
    fn same_tokens(&mut self) -> Result<Vec<u32>, DedupeError> {
        let (mut digests, search) = (self.sorter(1), self.search);
        let room = |error| search.room(error);
        let digest = |part: &[Text]| {
            self.go_on()?;
            let digests = self.judge.digests(part).into_iter().zip(part);
            let known = digests.filter_map(|(digest, text)| Some((text.id, digest?)));
            Ok(known.collect::<Vec<_>>())
        };
        let (count, known) = self.texts.each(
            "texts",
            |_| true,
            digest,
            |part| {
                for (id, digest) in part {
                    let (high, low) = ((digest >> 64) as u64, digest as u64);
                    digests.push((high, id), &low.to_le_bytes()).map_err(room)?;
                }
                Ok(())
            },
        )?;
        let mut firsts: Vec<u32> = (0..count).collect();
        let mut sorted = digests.finish().map_err(room)?;
        self.report.runs += sorted.runs;
        let mut group: (u64, Vec<(Vec<u8>, u32)>) = (0, Vec::new());
        let mut low = Vec::new();
        while let Some((high, id)) = sorted.next(&mut low).map_err(room)? {
            if group.0 != high {
                group = (high, Vec::new());
            }
            match group.1.iter().find(|(known, _)| *known == low) {
                Some(&(_, first)) => firsts[id as usize] = first,
                None => group.1.push((low.clone(), id)),
            }
        }
        self.judge.known = known;
        Ok(firsts)
    }

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
            Ok(judge.vectors_of(&sample.collect::<Vec<_>>())?)
        };
        let mut sample = Vec::new();
        self.texts.each("words", is_first, work, |rows| {
            let has_length = |row: &&[f32]| row.iter().any(|&x| x != 0.0);
            sample.extend(rows.chunks_exact(judge.dims.max(1)).filter(has_length).flatten());
            Ok(())
        })?;
        let centres = Centres::new(&sample, judge.dims, distinct);
        Ok((counts, Buckets::new(&centres, judge.dims)))
    }

    /// The keys of all texts, each with the index of its text in `Kept`.
    fn blocks(
        &mut self,
        counts: &WordCounts,
        buckets: &Buckets,
        is_first: &(impl Fn(u32) -> bool + Sync),
    ) -> Result<(Sorted, Kept), DedupeError> {
        let work = |part: &[Text]| {
            self.go_on()?;
            Ok(part.iter().cloned().zip(self.judge.keyed(part, counts, buckets)?).collect())
        };
        let (mut blocks, search) = (self.sorter(KEYS_SHARE), self.search);
        let mut kept = Kept::new(search, &self.judge);
        let room = |error| search.room(error);
        self.texts.each("rare words and buckets", is_first, work, |made: Vec<_>| {
            for (text, (keys, mark)) in made {
                if keys.is_empty() {
                    continue;
                }
                let place = kept.push(&text, &keys, &mark).map_err(room)?;
                for &key in &keys {
                    blocks.push((key, place), &[]).map_err(room)?;
                }
            }
            Ok(())
        })?;
        kept.rows.finish().and_then(|()| kept.texts.finish()).map_err(room)?;
        let sorted = blocks.finish().map_err(room)?;
        self.report.runs += sorted.runs;
        Ok((sorted, kept))
    }

    fn compare(&mut self, mut sorted: Sorted, kept: &Kept) -> Result<Sorter, DedupeError> {
        let mut matches = self.sorter(4);
        let (mut ahead, search) = (Blocks::default(), self.search);
        let room = |error| search.room(error);
        let mut batch = next_blocks(&mut sorted, &mut ahead).map_err(room)?;
        while !batch.is_empty() {
            let judged = |(key, places): &Block<u32>| {
                self.go_on()?;
                let (mut rows, mut texts, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
                for &place in places {
                    let (row, text) = kept.row(place, &mut bytes).map_err(room)?;
                    rows.push(row);
                    texts.push(text);
                }
                self.judge.compare(*key, &rows, |at| {
                    let texts = at.iter().filter_map(|&at| texts.get(at));
                    texts.map(|&text| kept.text(text)).collect::<io::Result<Vec<_>>>().map_err(room)
                })
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
                let mut push = |found| clusters::push(&mut matches, found);
                found.iter().try_for_each(&mut push).map_err(room)?;
            }
            batch = next.map_err(room)?;
        }
        self.report.method = self.search.query.method.name();
        self.report.copies = self.judge.finds_copies();
        (self.report.threshold, self.report.floor) = (self.judge.threshold, self.judge.floor);
        Ok(matches)
    }
}

/// The next blocks with more than one text, as many as are compared at a time.
fn next_blocks(sorted: &mut Sorted, ahead: &mut Blocks<u32>) -> io::Result<Vec<Block<u32>>> {
    let (mut blocks, mut held, mut bytes) = (Vec::new(), 0, Vec::new());
    while held < BATCH {
        let Some((key, place)) = sorted.next(&mut bytes)? else {
            blocks.extend(ahead.finish());
            break;
        };
        if let Some(block) = ahead.push(key, place) {
            held += block.1.len();
            blocks.push(block);
        }
    }
    Ok(blocks)
}

/// What is stored of the texts that are compared, in the order of their numbers: the texts, and of
/// each its vector, its number, where its text is, the bits of its words, and its keys.
struct Kept {
    rows: Store,
    texts: Store,
    /// Bytes of a vector, and of all that is kept of a text.
    widths: (usize, usize),
    most_keys: usize,
    count: u32,
    bytes: Vec<u8>,
}

/// Stands for a key that a text does not have.
const NO_KEY: u64 = u64::MAX;
/// Numbers that are kept of a text before the bits of its words and its keys.
const HEAD_NUMBERS: usize = 2;

impl Kept {
    fn new(search: &Search, judge: &Judge<'_>) -> Self {
        let store = |memory| Store::new(search.folder.clone(), memory);
        let (vector, most_keys) = (Probe::written(judge.dims), judge.most_keys());
        Self {
            rows: store(search.memory / ROWS_SHARE.1 * ROWS_SHARE.0),
            texts: store(search.memory / TEXTS_SHARE),
            widths: (
                vector,
                vector + (HEAD_NUMBERS + words::BITS_LENGTH + most_keys) * size_of::<u64>(),
            ),
            most_keys,
            count: 0,
            bytes: Vec::new(),
        }
    }

    /// Returns the place of the text.
    fn push(&mut self, text: &Text, keys: &[u64], mark: &Mark) -> io::Result<u32> {
        let begin = self.texts.push(text.text.as_bytes())?;
        self.bytes.clear();
        mark.vector.write(&mut self.bytes);
        let numbers = [u64::from(text.id) | (text.text.len() as u64) << 32, begin];
        let keys = keys.iter().copied().chain(std::iter::repeat(NO_KEY)).take(self.most_keys);
        for number in numbers.into_iter().chain(mark.words.numbers()).chain(keys) {
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
        self.rows.push(&self.bytes)?;
        self.count += 1;
        Ok(self.count - 1)
    }

    /// What is compared of the text at a place, and where the text is.
    fn row(&self, place: u32, room: &mut Vec<u8>) -> io::Result<(Row, (u64, u64))> {
        let (vector, whole) = self.widths;
        let bytes = self.rows.read((u64::from(place) * whole as u64, whole), room)?;
        let (vector, numbers) = bytes.split_at(vector);
        let mut numbers = numbers.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number));
        let [numbered, begin] = [(); HEAD_NUMBERS].map(|()| numbers.next().unwrap_or_default());
        let words = [(); words::BITS_LENGTH].map(|()| numbers.next().unwrap_or_default());
        let keys = numbers.take_while(|&key| key != NO_KEY).collect();
        let mark = Mark { vector: Probe::read(vector), words: WordBits::from_numbers(words) };
        // The number of the text in 32 bits, and above them how long it is.
        Ok((Row { id: numbered as u32, keys, mark }, (begin, numbered >> 32)))
    }

    fn text(&self, (begin, length): (u64, u64)) -> io::Result<String> {
        let mut room = Vec::new();
        let bytes = self.texts.read((begin, length as usize), &mut room)?;
        String::from_utf8(bytes.to_vec()).map_err(io::Error::other)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Duplicates {
    /// For each text the index of its representative (in `against`, if that was given) and its
    /// score with it; `None` for a representative.
    pub of: Vec<Option<(u32, f32)>>,
    /// All matches, sorted by the later text; indices as in `of`.
    pub matches: Vec<Match>,
    pub report: Report,
}

/// Finds duplicates among texts, or of texts in `against`. A missing text is no duplicate.
pub fn among(
    engine: &Engine,
    texts: &[Option<&str>],
    against: Option<&[Option<&str>]>,
    search: &Search,
) -> Result<Duplicates, DedupeError> {
    let judge = Judge::new(engine, search)?;
    let sources = against.into_iter().chain([texts]).map(Source::Column);
    let texts = Texts { sources: sources.collect() };
    let mut matches = Vec::new();
    let found = self::search(judge, search, &texts, |found, known| {
        matches.push(Match { later: found.later - known, ..found.clone() });
        Ok(())
    })?;
    let SearchResult { judge, firsts, clusters, report } = found;
    let own = judge.known.unwrap_or_default()..firsts.len() as u32;
    let of_text = |id: u32| {
        let (of, score) = clusters.of_text(id);
        (of != id).then_some((of, score))
    };
    Ok(Duplicates { of: own.map(of_text).collect(), matches, report })
}

/// How many matches of a sample of texts the search found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Recall {
    /// Number of texts in the sample, which were compared with all others.
    pub texts: usize,
    pub matches: usize,
    /// Number of these matches that the search found, too.
    pub found: usize,
}

/// The texts of the sample, and the matches of these texts that the search found.
pub(super) struct Check {
    sample: BTreeSet<u32>,
    found: BTreeSet<(u32, u32)>,
}

impl Check {
    /// A sample of `wanted` texts among those for which `takes_part` holds; it depends only on
    /// their numbers.
    pub(super) fn new(wanted: usize, count: u32, takes_part: impl Fn(u32) -> bool) -> Self {
        let mut drawn: BinaryHeap<(u64, u32)> = BinaryHeap::new();
        for id in (0..count).filter(|&id| takes_part(id)) {
            drawn.push((mixed(id.into()), id));
            if drawn.len() > wanted {
                drawn.pop();
            }
        }
        let sample = drawn.into_iter().map(|(_, id)| id).collect();
        Self { sample, found: BTreeSet::new() }
    }

    pub(super) fn see(&mut self, found: &Match) {
        if self.sample.contains(&found.later) || self.sample.contains(&found.earlier) {
            self.found.insert((found.earlier, found.later));
        }
    }

    pub(super) fn finish(
        self,
        texts: &Texts<'_>,
        judge: &Judge<'_>,
        takes_part: impl Fn(u32) -> bool + Sync,
    ) -> Result<Recall, DedupeError> {
        let Self { sample, found } = self;
        let mut drawn: Vec<Text> = Vec::new();
        texts.each(
            "sample",
            |id| sample.contains(&id),
            |part| Ok(part.to_vec()),
            |part| {
                drawn.extend(part);
                Ok(())
            },
        )?;
        let mut there = BTreeSet::new();
        let every = |part: &[Text]| matches_of(&drawn, part, judge).map_err(DedupeError::Query);
        texts.each("check", takes_part, every, |matches| {
            there.extend(matches);
            Ok(())
        })?;
        let both = there.intersection(&found).count();
        Ok(Recall { texts: sample.len(), matches: there.len(), found: both })
    }
}

fn matches_of(
    sample: &[Text],
    part: &[Text],
    judge: &Judge<'_>,
) -> Result<Vec<(u32, u32)>, QueryError> {
    let candidates: Vec<&str> = part.iter().map(|text| text.text.as_str()).collect();
    let mut found = Vec::new();
    for (drawn, (&query, score_of)) in
        sample.iter().flat_map(|one| judge.asked().map(move |by| (one, by)))
    {
        let least = judge.threshold.min(judge.least_shared);
        let options = RankOptions { min_score: Some(least), ..RankOptions::all(query) };
        let ranking = match judge.engine.rank_best(&drawn.text, &candidates, &options) {
            // A text that cannot be scored has no matches.
            Err(error) if error.place().is_some() => continue,
            other => other?,
        };
        for result in ranking.results {
            let Some(other) = part.get(result.index) else { continue };
            let (earlier, later) = (drawn.id.min(other.id), drawn.id.max(other.id));
            let across = judge.known.is_none_or(|known| earlier < known && later >= known);
            if earlier != later && across && score_of(result.score) >= judge.threshold {
                found.push((earlier, later));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use cognate::Query;
    use cognate::methods::Method;
    use cognate_kernels::random::Random;

    use super::*;

    const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default.safetensors");

    /// Texts in small families, no two of the same words.
    fn families(count: usize) -> Vec<String> {
        let mut random = Random::seeded(7);
        let mut texts: BTreeSet<BTreeSet<String>> = BTreeSet::new();
        let word = |random: &mut Random| format!("word{}", random.below(60));
        while texts.len() < count {
            let length = 3 + random.below(9);
            let mut text: Vec<String> = (0..length).map(|_| word(&mut random)).collect();
            for _ in 0..1 + random.below(3) {
                texts.insert(text.iter().cloned().collect());
                let at = random.below(text.len());
                text[at] = word(&mut random);
            }
        }
        texts.into_iter().map(|words| Vec::from_iter(words).join(" ")).collect()
    }

    #[test]
    fn by_words_alone_every_pair_is_found() {
        let engine = Engine::open(MODEL.as_ref(), &Default::default()).unwrap();
        let texts = families(600);
        let column: Vec<Option<&str>> = texts.iter().map(|text| Some(text.as_str())).collect();
        let query = Query::new(Method::Jaccard);
        for threshold in [0.4, 0.6, 0.75] {
            let search = Search { check: 50, ..Search::new(query, threshold) };
            let found = among(&engine, &column, None, &search).unwrap();
            let recall = found.report.recall.unwrap();
            assert!(recall.matches == recall.found && recall.matches > 5, "{recall:?}");
            let mut every = Vec::new();
            for (later, text) in (0..).zip(&texts) {
                let pairs: Vec<_> = texts[..later as usize].iter().map(|one| (one, text)).collect();
                let scores = engine.similarity(&pairs, &query).unwrap().scores;
                let high = (0..).zip(scores).filter(|&(_, score)| score >= threshold);
                every.extend(high.map(|(earlier, score)| (earlier, later, score)));
            }
            assert!(every.len() > 30, "{}", every.len());
            let found = found.matches.iter().map(|found| (found.earlier, found.later, found.score));
            assert_eq!(found.collect::<Vec<_>>(), every, "{threshold}");
        }
    }

    #[test]
    fn copies_are_found_by_their_words_where_the_method_says_less() {
        let engine = Engine::open(MODEL.as_ref(), &Default::default()).unwrap();
        let texts = [
            "Storm Zwxqv floods three towns on the northern coast of Blorvia",
            "Strom Zwxqv floods three towns on the northern coats of Blorvia",
            "zwxqv blorvia krimtal ostrevin",
            "zwxqv blorvia krimtal ostrevin pelmot",
        ];
        let query = Query::new(engine.auto());
        let own = engine.similarity(&[(texts[0], texts[1])], &query).unwrap().scores[0];
        let found = |copies, threshold| {
            let search = Search { copies, ..Search::new(query, threshold) };
            among(&engine, &texts.map(Some), None, &search).unwrap().matches
        };
        // Of eleven words on either side nine are the same, of four and five four.
        let shares = [(0, 1, own.max(9.0 / 11.0)), (2, 3, 8.0 / 9.0)];
        let matches = found(true, 0.8);
        assert_eq!(matches.len(), 2, "{matches:?}");
        for (found, (earlier, later, score)) in matches.iter().zip(shares) {
            assert_eq!((found.earlier, found.later), (earlier, later));
            assert!(found.score >= score - 1e-6, "{found:?} {score}");
        }
        let plain = engine.similarity(&[(texts[2], texts[3])], &query).unwrap().scores[0];
        assert_eq!(found(false, 0.8).len(), [own, plain].iter().filter(|&&one| one >= 0.8).count());
    }
}
