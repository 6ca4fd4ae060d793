//! The numbers that a fastText file begins with. Knows nothing of what follows them.

use cognate::model::subword::NGrams;

use crate::readers::fasttext_bin::MAGIC;
use crate::readers::positioned::Scan;
use crate::readers::{Budget, ReadError};

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
