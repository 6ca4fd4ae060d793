//! The dictionary of a fastText file: how much it holds, its entries walked over, and which n-grams a
//! pruned model kept.

use cognate::model::subword::NGrams;

use crate::readers::fasttext_bin::MAGIC;
use crate::readers::positioned::Scan;
use crate::readers::{Budget, ReadError};

/// An entry of the dictionary is at least its zero byte, its count and its kind.
const SMALLEST_ENTRY: u64 = 10;
/// An n-gram that was kept is its bucket and its row.
const PAIR: u64 = 8;

/// How much the dictionary holds.
#[derive(Clone, Copy)]
pub(super) struct Entries {
    pub(super) words: u64,
    pub(super) labels: u64,
    /// n-grams that were kept; nothing for a model that was not pruned.
    pub(super) kept: Option<u64>,
}

/// Reads the numbers before the dictionary and checks them against what is left of the file.
pub(super) fn read_head(scan: &mut Scan, budget: Budget) -> Result<Entries, ReadError> {
    let at = scan.position();
    let entries = argument(scan, "the number of dictionary entries", 0, i32::MAX)?;
    let words = argument(scan, "the number of words", 0, i32::MAX)?;
    let labels = argument(scan, "the number of labels", 0, i32::MAX)?;
    if words.checked_add(labels) != Some(entries) {
        let problem =
            format!("expected {entries} entries, found {words} words and {labels} labels");
        return Err(scan.source().malformed(at, problem));
    }
    let tokens_at = scan.position();
    let tokens = scan.i64("the number of tokens")?;
    if tokens < 0 {
        let problem = format!("expected a number of tokens, found {tokens}");
        return Err(scan.source().malformed(tokens_at, problem));
    }
    let pruned_at = scan.position();
    let kept = match scan.i64("the number of n-grams kept")? {
        -1 => None,
        kept => Some(u64::try_from(kept).map_err(|_| {
            let problem = format!("expected -1 or a number of n-grams kept, found {kept}");
            scan.source().malformed(pruned_at, problem)
        })?),
    };
    if u64::from(words) > budget.words {
        let problem = format!("{words} words, at most {} are taken", budget.words);
        return Err(scan.source().unsupported(problem));
    }
    let pairs = kept.unwrap_or(0).checked_mul(PAIR);
    let smallest = pairs.and_then(|pairs| pairs.checked_add(u64::from(entries) * SMALLEST_ENTRY));
    if smallest.is_none_or(|smallest| smallest > scan.left()) {
        let kept = kept.map_or(String::new(), |kept| format!(" and {kept} n-grams"));
        let problem = format!(
            "{entries} dictionary entries{kept} cannot fit in the {} bytes left",
            scan.left()
        );
        return Err(scan.source().malformed(at, problem));
    }
    Ok(Entries { words: u64::from(words), labels: u64::from(labels), kept })
}

/// Walks over the dictionary once, so that a fault in it is reported before hours of packing.
pub(super) fn check_entries(
    scan: &mut Scan,
    entries: Entries,
    budget: Budget,
) -> Result<(), ReadError> {
    let mut word = Vec::new();
    for index in 0..entries.words + entries.labels {
        scan.terminated_word(&mut word, budget.word_bytes)?;
        let at = scan.position();
        let count = scan.i64("a word's count")?;
        if count < 0 {
            let problem = format!("expected a word's count, found {count}");
            return Err(scan.source().malformed(at, problem));
        }
        // Rows are numbered by entries, so a label among the words would shift them.
        let expected = u8::from(index >= entries.words);
        let [kind] = scan.array("a word's kind")?;
        if kind != expected {
            let problem = format!("expected kind {expected} for entry {index}, found {kind}");
            return Err(scan.source().malformed(at + 8, problem));
        }
    }
    Ok(())
}

/// Reads which n-grams were kept: for each the bucket that it hashes to and its row behind the words,
/// in the order of the buckets.
pub(super) fn read_kept(
    scan: &mut Scan,
    count: u64,
    buckets: u64,
) -> Result<Vec<(u32, u32)>, ReadError> {
    let begin = scan.position();
    // The pairs were found to fit in the file.
    let mut kept = Vec::new();
    for _ in 0..count {
        let at = scan.position();
        let pair = (scan.i32("the bucket of an n-gram")?, scan.i32("the row of an n-gram")?);
        let (bucket, row) = (u32::try_from(pair.0), u32::try_from(pair.1));
        match (bucket, row) {
            (Ok(bucket), Ok(row)) if u64::from(bucket) < buckets && u64::from(row) < count => {
                kept.push((bucket, row));
            }
            _ => {
                let problem = format!(
                    "expected a bucket below {buckets} and a row below {count}, found {} and {}",
                    pair.0, pair.1
                );
                return Err(scan.source().malformed(at, problem));
            }
        }
    }
    kept.sort_unstable();
    if kept.windows(2).any(|two| matches!(two, [a, b] if a.0 == b.0)) {
        return Err(scan.source().malformed(begin, "the same n-gram was kept twice"));
    }
    Ok(kept)
}

/// Models 1 to 3 are cbow, skip-gram and supervised.
const SUPERVISED: i32 = 3;
/// Losses 1 to 4 are hierarchical softmax, negative sampling, softmax and one against all.
const LAST_LOSS: i32 = 4;
/// fastText's default is 6; beyond this the n-grams of one word would take forever to sum up.
const LONGEST_NGRAM: u32 = 64;

/// What a model was trained with, as far as its vectors depend on it.
pub(super) struct Arguments {
    pub(super) dims: usize,
    pub(super) buckets: u64,
    shortest: u32,
    longest: u32,
}

impl Arguments {
    /// Reads and checks them.
    pub(super) fn read(scan: &mut Scan, budget: Budget) -> Result<Self, ReadError> {
        let magic = scan.i32("the magic number")?;
        if magic != MAGIC {
            return Err(scan.source().unsupported(format!(
                "no binary fastText model of version 11 or 12: it begins with {magic} where \
                 {MAGIC} is expected. Files from before 2017 have no such number; open and save \
                 them with gensim or export their vectors as text"
            )));
        }
        let version = scan.i32("the version")?;
        if !(11..=12).contains(&version) {
            let problem = format!("fastText version 11 or 12 is expected, found {version}");
            return Err(scan.source().unsupported(problem));
        }
        let dims = argument(scan, "dim", 1, i32::MAX)?;
        if dims as usize > budget.dims {
            let problem =
                format!("vectors of {dims} dimensions, at most {} are taken", budget.dims);
            return Err(scan.source().unsupported(problem));
        }
        for what in ["ws", "epoch", "minCount", "neg", "wordNgrams"] {
            scan.i32(what)?;
        }
        argument(scan, "loss", 1, LAST_LOSS)?;
        let model = argument(scan, "model", 1, SUPERVISED)?;
        let buckets = argument(scan, "bucket", 0, i32::MAX)?;
        let shortest = argument(scan, "minn", 0, i32::MAX)?;
        let mut longest = argument(scan, "maxn", 0, i32::MAX)?;
        if longest > LONGEST_NGRAM {
            let problem =
                format!("n-grams of {longest} characters, at most {LONGEST_NGRAM} are taken");
            return Err(scan.source().unsupported(problem));
        }
        scan.i32("lrUpdateRate")?;
        scan.array::<8>("t")?;
        // Supervised models of version 11 were trained without n-grams, whatever they say.
        if version == 11 && model == SUPERVISED as u32 {
            longest = 0;
        }
        Ok(Self { dims: dims as usize, buckets: u64::from(buckets), shortest, longest })
    }

    /// The n-gram rule, unless it yields nothing. A supervised model without character n-grams
    /// may still have buckets: those belong to its word n-grams.
    pub(super) fn ngrams(&self) -> Option<NGrams> {
        let some = self.longest > 0 && self.shortest <= self.longest && self.buckets > 0;
        let rule = NGrams { min: self.shortest, max: self.longest, buckets: self.buckets };
        some.then_some(rule)
    }
}

/// A whole number within a range.
pub(super) fn argument(
    scan: &mut Scan,
    name: &str,
    least: i32,
    most: i32,
) -> Result<u32, ReadError> {
    let at = scan.position();
    let value = scan.i32(name)?;
    if (least..=most).contains(&value) {
        return Ok(value.unsigned_abs());
    }
    let problem = format!("expected {name} between {least} and {most}, found {value}");
    Err(scan.source().malformed(at, problem))
}
