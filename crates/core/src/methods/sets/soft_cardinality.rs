//! Soft cardinality (Jimenez, Gonzalez and Gelbukh 2010, section 2): a set counts for
//! less the more alike its elements are.
//!
//! `|A| = Σ_i 1 / Σ_j max(0, cos(v_i, v_j))^p` with `p = 1`, score
//! `(|A| + |B| − |A ∪ B|) / |A ∪ B|`. `A`, `B` and their union are bags: a word stands in the
//! union as often as on the side that has it more often. A word is always wholly like itself, one
//! without length too, which is then like no other.
//!
//! Departure: soft cardinalities are not additive, and two different texts can come out above the
//! 1 of equal ones (1.14 on real sentences). Such scores are cut to 1.

use cognate_kernels::vector;

use crate::methods::common::words_met::distinct;
use crate::methods::sets::fuzzy;
use crate::methods::{Against, Compare, Cost, Info, Loaded, Scorer, Scratch};
use crate::model::{Model, Phrase};

pub(crate) const INFO: Info = Info {
    cost: COST,
    summary: "Jaccard's ratio of sets in which words that are alike count for less.",
    paper: "Jimenez et al. 2010",
    range: (0.0, 1.0),
    ..Info::new("soft-cardinality")
};

/// The products of all words of both texts, and as many quotients.
const COST: Cost = Cost { pair: quotients, candidate: quotients, bound: None };

const fn quotients(n: u64, m: u64, d: u64) -> u64 {
    (n + m) * (n + m) * (d / 2 + 192)
}

pub(crate) fn load(_model: &Model) -> Loaded {
    Ok(Ok(Scorer::Compare(Box::new(SoftCardinality))))
}

struct SoftCardinality;

impl Compare for SoftCardinality {
    type Against<'q> = Prepared<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, _scratch: &mut Scratch) -> Prepared<'q> {
        Prepared { one }
    }
}

/// A text. Nothing of it can be prepared: all products are those of the union.
struct Prepared<'q> {
    one: &'q Phrase<'q>,
}

impl Against for Prepared<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], scratch: &mut Scratch) {
        for (other, score) in many.iter().zip(out) {
            let same = self.one.same_bag(other);
            *score = if same { 1.0 } else { jaccard(self.one, other, scratch) };
        }
    }
}

/// Writes the rows of the words of either text, each word once in the order of keys, and how often
/// the one, the other, and the union has it.
fn unite(one: &Phrase<'_>, other: &Phrase<'_>, scratch: &mut Scratch) {
    let dims = one.model().dims();
    let (rows, [of_one, of_other, of_union]) = (&mut scratch.other, &mut scratch.masses);
    rows.clear();
    [&mut *of_one, of_other, of_union].into_iter().for_each(Vec::clear);
    let (mut ones, mut others) = (distinct(one).peekable(), distinct(other).peekable());
    loop {
        let keys =
            [ones.peek().map(|(w, _)| one.key(*w)), others.peek().map(|(w, _)| other.key(*w))];
        let Some(key) = keys.into_iter().flatten().min() else { return };
        let in_one = ones.next_if(|(word, _)| one.key(*word) == key);
        let in_other = others.next_if(|(word, _)| other.key(*word) == key);
        let row = in_one.map(|(word, _)| one.row(word));
        let row = row.or(in_other.map(|(word, _)| other.row(word)));
        let start = rows.len();
        rows.resize(start + dims, 0.0);
        if let Some(row) = row {
            vector::add_scaled(&mut rows[start..], 1.0, row);
        }
        let [in_one, in_other] = [in_one, in_other].map(|found| found.map_or(0, |(_, n)| n));
        of_one.push(in_one as f64);
        of_other.push(in_other as f64);
        of_union.push(in_one.max(in_other) as f64);
    }
}

fn jaccard(one: &Phrase<'_>, other: &Phrase<'_>, scratch: &mut Scratch) -> f32 {
    unite(one, other, scratch);
    let dims = one.model().dims();
    vector::gram(&scratch.other, dims, &mut scratch.other_gram);
    let [of_one, of_other, of_union] = &scratch.masses;
    let words = of_union.len();
    let norms = scratch.other_gram.iter().step_by(words + 1).map(|square| square.sqrt());
    scratch.other_numbers.clear();
    scratch.other_numbers.extend(norms);
    let norms = &scratch.other_numbers;
    // Words in the order of keys, those a bag lacks counted zero times: the sums have one order,
    // whichever text is the one.
    let mut sizes = [0.0_f64; 3];
    for (at, products) in scratch.other_gram.chunks_exact(words).enumerate() {
        let mut alike = [0.0_f64; 3];
        for (to, &product) in products.iter().enumerate() {
            let lengths = norms[at] * norms[to];
            let cosine = if at == to { 1.0 } else { fuzzy::ratio(product.into(), lengths.into()) };
            for (sum, times) in alike.iter_mut().zip([of_one, of_other, of_union]) {
                *sum += times[to] * cosine;
            }
        }
        for ((size, times), alike) in sizes.iter_mut().zip([of_one, of_other, of_union]).zip(alike)
        {
            // A word's similarity to itself is 1, so the sum of a word of the bag is at least 1.
            if times[at] > 0.0 {
                *size += times[at] / alike;
            }
        }
    }
    let [one, other, union] = sizes;
    fuzzy::ratio(one + other - union, union) as f32
}
