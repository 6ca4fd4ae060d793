//! The run: texts with the same tokens, words counted and a sample drawn, keys, blocks, clusters,
//! and what is written of them.

use std::time::Instant;

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_128;

use crate::dedupe::DedupeError;
use crate::dedupe::Options;
use crate::dedupe::Report;
use crate::dedupe::block::Judge;
use crate::dedupe::block::Match;
use crate::dedupe::block::Member;
use crate::dedupe::block::Work;
use crate::dedupe::buckets;
use crate::dedupe::buckets::Buckets;
use crate::dedupe::buckets::Room;
use crate::dedupe::check::Check;
use crate::dedupe::clusters::Clusters;
use crate::dedupe::clusters::Matches;
use crate::dedupe::keys;
use crate::dedupe::keys::WordCounts;
use crate::dedupe::keys::mixed;
use crate::dedupe::output;
use crate::dedupe::sorter::Sorted;
use crate::dedupe::sorter::Sorter;
use crate::dedupe::texts::Source;
use crate::dedupe::texts::Text;
use crate::dedupe::texts::Texts;
use crate::engine::Engine;
use crate::engine::Measure;
use crate::engine::Query;
use crate::methods::Reads;
use crate::model::Phrase;

/// Texts of blocks that are worked on at a time.
const BATCH: usize = 1 << 15;
/// Most texts of one block that are held at once.
const MOST_MEMBERS: usize = 1 << 16;
/// By how much a cosine may be rounded otherwise than the method's own.
const ROUNDING: f32 = 1e-4;
/// How far below the threshold the cosine of a pair may lie that another method scores as high: so far
/// it does in 1 of 400 pairs of tweets that `coverage-blend` scores 0.8 or more.
const MARGIN: f32 = 0.1;

/// Looks for duplicates and writes what was found.
pub fn run(engine: &Engine, options: &Options) -> Result<Report, DedupeError> {
    let begun = Instant::now();
    output::check(options)?;
    let judge = judge(engine, options)?;
    let mut texts = Texts { sources: Vec::new() };
    for path in options.against.iter().chain([&options.file]) {
        let column = options.text.as_deref();
        texts.sources.push(Source::new(path, options.records, column, &options.folder)?);
    }
    let mut run = Run { engine, options, judge, texts, report: Report::default() };
    let firsts = run.same_tokens()?;
    let is_first = |id: u32| firsts.get(id as usize).is_some_and(|&first| first == id);
    let distinct = firsts.iter().zip(0..).filter(|&(&first, id)| first == id).count() as u64;
    let (counts, buckets) = run.learn(distinct, &is_first)?;
    let blocks = run.blocks(&counts, &buckets, &is_first)?;
    drop(counts);
    let matches = run.compare(blocks)?;
    let mut check = Check::new(options.check, firsts.len() as u32, is_first);
    let mut pairs = output::Pairs::create(options, run.judge.known)?;
    let mut ordered = matches.finish().map_err(DedupeError::Room)?;
    run.report.runs += ordered.runs();
    let explained_in = options.explain.then_some(options.folder.as_path());
    let known = run.judge.known;
    let clusters = Clusters::of(&firsts, &mut ordered, known, explained_in, |found| {
        check.see(found);
        pairs.push(found)
    });
    let clusters = clusters.map_err(DedupeError::Room)?;
    pairs.finish()?;
    if options.check > 0 {
        run.report.recall = Some(check.finish(&run.texts, &run.judge, is_first)?);
    }
    let mut report = run.report;
    let records = firsts.len() as u64 - u64::from(known.unwrap_or_default());
    (report.records, report.known, report.distinct) = (records, known.map(u64::from), distinct);
    (report.clusters, report.duplicates) = clusters.counts();
    report.buckets = buckets.count();
    let source = run.texts.sources.last();
    if let Some(source) = source {
        output::write(options, &run.judge, source, &clusters, &firsts)?;
    }
    report.seconds = begun.elapsed().as_secs_f64();
    Ok(report)
}

/// How texts are compared by the wanted method.
fn judge<'e>(engine: &'e Engine, options: &Options) -> Result<Judge<'e>, DedupeError> {
    let query = options.query;
    let info = query.method.info();
    // Asks of the method what every pair will ask.
    engine.similarity(&[("a", "a")], &query).map_err(DedupeError::Query)?;
    if info.reads == Reads::Tokens {
        let problem = format!(
            "--method: {} compares letters or tokens; duplicates are looked for by word vectors",
            info.name
        );
        return Err(DedupeError::Options(problem));
    }
    let embeds =
        engine.embeds(query.method) && engine.default_measure(query.method) == Measure::Cosine;
    let method = if embeds { query.method } else { engine.auto_embedding() };
    let vectors = Query { truncate: true, ..Query::new(method) };
    let dims = engine.embedding_dims(method).map_err(DedupeError::Query)?;
    let below = if embeds { ROUNDING } else { MARGIN };
    Ok(Judge {
        engine,
        query,
        vectors,
        dims,
        threshold: options.threshold,
        // A text without a vector has a product of 0 with all others.
        floor: options.floor.unwrap_or(options.threshold - below).max(ROUNDING),
        known: None,
        explain: options.explain,
    })
}

struct Run<'r> {
    engine: &'r Engine,
    options: &'r Options,
    judge: Judge<'r>,
    texts: Texts,
    report: Report,
}

impl Run<'_> {
    fn sorter(&self, share: usize) -> Sorter {
        Sorter::new(self.options.folder.clone(), self.options.memory / share)
    }

    /// For each text the first with the same tokens; itself where it has none.
    fn same_tokens(&mut self) -> Result<Vec<u32>, DedupeError> {
        let mut digests = self.sorter(1);
        let most = self.engine.limits().tokens;
        let digest = |part: &[Text]| {
            let mut phrase = Phrase::new(self.engine.model());
            let mut digests = Vec::with_capacity(part.len());
            let mut joined = Vec::new();
            for text in part {
                phrase.read_up_to(&text.text, most);
                joined.clear();
                for token in phrase.tokens().texts() {
                    joined.extend_from_slice(token.as_bytes());
                    joined.push(0);
                }
                if !joined.is_empty() {
                    digests.push((text.id, xxh3_128(&joined)));
                }
            }
            Ok(digests)
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
                        .map_err(DedupeError::Room)?;
                }
                Ok(())
            },
        )?;
        let mut firsts: Vec<u32> = (0..count).collect();
        let mut sorted = digests.finish().map_err(DedupeError::Room)?;
        self.report.runs += sorted.runs;
        let mut group: (u64, Vec<(Vec<u8>, u32)>) = (0, Vec::new());
        let mut low = Vec::new();
        while let Some((high, id)) = sorted.next(&mut low).map_err(DedupeError::Room)? {
            if group.0 != high {
                group = (high, Vec::new());
            }
            let id = id as u32;
            match group.1.iter().find(|(known, _)| *known == low) {
                Some(&(_, first)) => firsts[id as usize] = first,
                None => group.1.push((low.clone(), id)),
            }
        }
        if self.options.against.is_some() {
            self.judge.known = Some(self.known_count()?);
        }
        Ok(firsts)
    }

    /// How many records the other file has.
    fn known_count(&self) -> Result<u32, DedupeError> {
        let mut count = 0_u32;
        if let Some(other) = self.texts.sources.first() {
            let (mut records, _) = other.open()?;
            while records.read()?.is_some() {
                count = count.checked_add(1).ok_or(DedupeError::TooMany)?;
            }
        }
        Ok(count)
    }

    /// Counts words and finds the centres of buckets.
    fn learn(
        &mut self,
        distinct: u64,
        is_first: &(impl Fn(u32) -> bool + Sync),
    ) -> Result<(WordCounts, Buckets), DedupeError> {
        let counts = WordCounts::new();
        let most = self.engine.limits().tokens;
        let share = (buckets::SAMPLE as f64 / distinct.max(1) as f64).min(1.0);
        let drawn = |id: u32| (mixed(id.into()) >> 11) as f64 <= share * (1_u64 << 53) as f64;
        let judge = &self.judge;
        let work = |part: &[Text]| {
            let mut phrase = Phrase::new(self.engine.model());
            let mut sample = Vec::new();
            for text in part {
                phrase.read_up_to(&text.text, most);
                counts.see(&keys::different_words(&phrase));
                if drawn(text.id) {
                    sample.push(text.text.as_str());
                }
            }
            judge.vectors_of(&sample).map_err(DedupeError::Query)
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
        let most = self.engine.limits().tokens;
        let judge = &self.judge;
        let work = |part: &[Text]| {
            let mut phrase = Phrase::new(self.engine.model());
            let mut room = Room::default();
            let all: Vec<&str> = part.iter().map(|text| text.text.as_str()).collect();
            let rows = judge.vectors_of(&all).map_err(DedupeError::Query)?;
            let mut made = Vec::with_capacity(part.len());
            for (text, row) in part.iter().zip(rows.chunks_exact(judge.dims)) {
                // Without a vector no pair of the text would be near enough.
                if row.iter().all(|&x| x == 0.0) {
                    continue;
                }
                phrase.read_up_to(&text.text, most);
                let mut own = Vec::new();
                counts.keys(&keys::different_words(&phrase), &mut own);
                own.extend(buckets.nearest(row, &mut room).map(keys::of_bucket));
                own.sort_unstable();
                own.dedup();
                made.push((text.id, own, text.text.clone()));
            }
            Ok(made)
        };
        let mut blocks = self.sorter(1);
        let mut bytes = Vec::new();
        self.texts.each("keys", is_first, work, |made| {
            for (id, own, text) in made {
                bytes.clear();
                bytes.push(own.len() as u8);
                own.iter().for_each(|key| bytes.extend_from_slice(&key.to_le_bytes()));
                bytes.extend_from_slice(text.as_bytes());
                for &key in &own {
                    blocks.push((key, id.into()), &bytes).map_err(DedupeError::Room)?;
                }
            }
            Ok(())
        })?;
        let sorted = blocks.finish().map_err(DedupeError::Room)?;
        self.report.runs += sorted.runs;
        Ok(sorted)
    }

    /// Compares the texts of each block.
    fn compare(&mut self, mut sorted: Sorted) -> Result<Matches, DedupeError> {
        let mut matches = Matches::new(self.sorter(4));
        let mut ahead = None;
        let mut batch = next_blocks(&mut sorted, &mut ahead).map_err(DedupeError::Room)?;
        while !batch.is_empty() {
            let judge = &self.judge;
            let judged = |(key, members): &(u64, Vec<Member>)| judge.matches(*key, members);
            let (done, next) = rayon::join(
                || batch.par_iter().with_max_len(1).map(judged).collect::<Vec<_>>(),
                || next_blocks(&mut sorted, &mut ahead),
            );
            for done in done {
                let (found, Work { compared, scored }) = done.map_err(DedupeError::Query)?;
                self.report.compared += compared;
                self.report.scored += scored;
                self.report.matches += found.len() as u64;
                let mut push = |found: &Match| matches.push(found);
                found.iter().try_for_each(&mut push).map_err(DedupeError::Room)?;
            }
            batch = next.map_err(DedupeError::Room)?;
        }
        let query = &self.options.query;
        self.report.method = query.method.name();
        (self.report.threshold, self.report.floor) = (self.judge.threshold, self.judge.floor);
        Ok(matches)
    }
}

/// The next blocks of more than one text, as many as are worked on at a time.
fn next_blocks(
    sorted: &mut Sorted,
    ahead: &mut Option<(u64, Member)>,
) -> std::io::Result<Vec<(u64, Vec<Member>)>> {
    let (mut blocks, mut held, mut bytes) = (Vec::new(), 0, Vec::new());
    while held < BATCH {
        let mut block: Option<(u64, Vec<Member>)> = ahead.take().map(|(key, one)| (key, vec![one]));
        while let Some((key, id)) = sorted.next(&mut bytes)? {
            let member = member(id as u32, &bytes);
            match &mut block {
                Some((known, members)) if *known == key && members.len() < MOST_MEMBERS => {
                    members.push(member);
                }
                Some(_) => {
                    *ahead = Some((key, member));
                    break;
                }
                None => block = Some((key, vec![member])),
            }
        }
        let Some(block) = block else { break };
        if block.1.len() > 1 {
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
