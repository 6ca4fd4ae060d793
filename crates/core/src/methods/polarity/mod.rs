//! `coverage-blend`, lowered where one text says the opposite of the other (our own).
//!
//! A mean of word vectors hardly moves when "not" joins a text or "on" becomes "off", because such words
//! stand beside the same words. So they are looked for by name. Two texts are opposed by
//!
//! - **negation**: one has an odd number of words that negate and the other an even number;
//! - **antonym**: a word of one stands in the other exchanged for its opposite;
//! - **number**: each holds a number that the other lacks;
//! - **roles**: they have the same words, and two parts around a third have changed places: "A beats B" and
//!   "B beats A", but not "A and B";
//! - **name**: each names something that the other lacks, in texts that else agree, see `names.rs`.
//!
//! Negation and antonym together cancel: "keep it on" and "don't turn it off" agree. With `c` the score of
//! `coverage-blend`, `n` and `m` the numbers of words,
//!
//! `score = c − min(1, 2L / (n + m)) · Σ w_f · c⁴`,
//!
//! over the kinds that are found; weights `w_f` and length `L` stand in the model's section, see
//! [`Settings`]. The fourth power leaves alone what is unlike anyway. A score falls nowhere below 0 for
//! that: the weights of a pair count as 1 at most.
//!
//! Word order matters in these places alone: the word right behind a negator may take it back ("not
//! only"), a number is put together of neighbours ("two hundred", "5,000", "7 pm"), roles, and names. Names
//! are the only place where capitals matter.

mod name_list;
mod name_spelling;
mod name_text;
mod names;
mod signs;
mod table;

use std::cell::OnceCell;
use std::sync::Arc;

use crate::choice::choice;
use crate::methods::common::word_cosines::WordCosines;
pub use crate::methods::polarity::name_list::{SECTION as NAMES_SECTION, fit as fit_names};
use crate::methods::polarity::names::{Exchanged, Names};
use crate::methods::polarity::signs::Signs;
pub use crate::methods::polarity::table::{SECTION, Settings, fit};
use crate::methods::polarity::table::{Table, flag};
use crate::methods::sets::coverage::Coverage;
use crate::methods::{
    Against, Compare, Info, Loaded, Method, Parts, Scorer, Scratch, Shares, Unavailable, blend,
};
use crate::model::phrase::Word;
use crate::model::{Model, ModelError, Phrase, WordId};

pub(crate) const INFO: Info = Info {
    name: "polarity-blend",
    summary: "coverage-blend, lowered where one text says the opposite of the other.",
    ignoring_opposites: Some(Method::CoverageBlend),
    ..blend::coverage::INFO
};

/// Most words around which roles are looked for: what longer texts exchange are sentences.
const MAX_EXCHANGED: usize = 48;

pub(crate) fn load(model: &Model) -> Loaded {
    let Some(polarity) = Polarity::read(model)? else { return Ok(Err(missing())) };
    let plain = blend::coverage::method(model)?;
    Ok(Ok(Scorer::Compare(Box::new(PolarityBlend { plain, polarity }))))
}

/// The method without names, where the model has names: with all else that `counting` knows.
pub(crate) fn without_names(
    model: &Model,
    counting: Option<&Polarity>,
) -> Result<Option<Scorer>, ModelError> {
    let Some(Polarity { table, names: Some(_) }) = counting else { return Ok(None) };
    let polarity = Polarity { table: Arc::clone(table), names: None };
    let plain = blend::coverage::method(model)?;
    Ok(Some(Scorer::Compare(Box::new(PolarityBlend { plain, polarity }))))
}

/// What a model lacks that has no such section.
pub(crate) fn missing() -> Unavailable {
    Unavailable {
        missing: "the model does not say which words negate and which are opposites".to_owned(),
        remedy: "add it with `cognate fit MODEL --polarity models/polarity-en.tsv`".to_owned(),
    }
}

/// How two texts are opposed: one negates and the other does not, a word stands exchanged for its
/// opposite, their numbers differ, two parts have changed places around a third, or each names what the other
/// lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OppositionKind {
    /// One negates and the other does not.
    Negation,
    /// A word stands exchanged for its opposite.
    Antonym,
    /// Their numbers differ.
    Number,
    /// Two parts have changed places around a third.
    Roles,
    /// Each names something that the other lacks, in texts that else agree.
    Name,
}

choice!(OppositionKind {
    Negation = "negation",
    Antonym = "antonym",
    Number = "number",
    Roles = "roles",
    Name = "name"
});

/// The kinds by which two texts are opposed; none for most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Oppositions(u8);

impl Oppositions {
    fn with(self, kind: OppositionKind, found: bool) -> Self {
        Self(self.0 | u8::from(found) << kind as u8)
    }

    /// Whether the texts are not opposed.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether they are opposed by this kind.
    pub fn contains(self, kind: OppositionKind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    /// The kinds in their order.
    pub fn iter(self) -> impl Iterator<Item = OppositionKind> {
        OppositionKind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }
}

impl serde::Serialize for Oppositions {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// One opposition of two texts, with the tokens of either that carry it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opposition {
    /// The kind of opposition.
    pub kind: OppositionKind,
    /// Numbers of tokens of the one text and of the other, in rising order; one side may have none.
    pub tokens: [Vec<u32>; 2],
}

/// What a model knows of negation, opposites, numbers and names.
pub struct Polarity {
    table: Arc<Table>,
    names: Option<Names>,
}

/// The signs of a text that was read; memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct Read(Signs);

/// A text whose signs are compared with those of others.
pub struct PreparedSigns<'q> {
    polarity: &'q Polarity,
    one: &'q Phrase<'q>,
    /// Its own signs, and room for those of another.
    signs: [Signs; 2],
    cosines: WordCosines,
}

impl PreparedSigns<'_> {
    /// The kinds by which another text is opposed to it.
    pub fn kinds(&mut self, other: &Phrase<'_>) -> Oppositions {
        let [own, of_other] = &mut self.signs;
        of_other.read(&self.polarity.table, other);
        self.cosines.forget();
        self.polarity.compare([self.one, other], [own, of_other], &mut self.cosines)
    }
}

impl Polarity {
    /// The section of a model, if it has one.
    pub fn read(model: &Model) -> Result<Option<Self>, ModelError> {
        let Some(table) = Table::read(model)? else { return Ok(None) };
        Ok(Some(Self { table: Arc::new(table), names: Names::read(model)? }))
    }

    /// Prepares a text of the model, to be compared with others.
    pub fn prepare<'q>(&'q self, one: &'q Phrase<'q>) -> PreparedSigns<'q> {
        let mut signs = [Signs::default(), Signs::default()];
        signs[0].read(&self.table, one);
        PreparedSigns { polarity: self, one, signs, cosines: WordCosines::default() }
    }

    /// The oppositions of two texts of the model, with the tokens that carry them.
    pub fn tell(&self, texts: [&Phrase<'_>; 2]) -> Vec<Opposition> {
        let [mut one, mut other] = [Signs::default(), Signs::default()];
        one.read(&self.table, texts[0]);
        other.read(&self.table, texts[1]);
        let (signs, mut cosines) = ([&one, &other], WordCosines::default());
        let kinds = self.compare(texts, signs, &mut cosines);
        let told = kinds.iter().map(|kind| {
            let mut tokens = match kind {
                OppositionKind::Negation => signs.map(|signs| signs.negators.clone()),
                OppositionKind::Antonym => self.exchanged_tokens(texts, signs),
                OppositionKind::Number => [0, 1].map(|side: usize| {
                    let (own, other) = (signs[side], signs[1 - side]);
                    let lacking = own.numbers.iter().filter(|(_, number)| !other.has(*number));
                    lacking.map(|&(token, _)| token).collect()
                }),
                OppositionKind::Roles => {
                    self.exchanged_roles(texts).map_or_else(Default::default, |exchanged| {
                        let mut at = 0;
                        exchanged.map(|places| {
                            let tokens = texts[at].origins().map(|origin| origin.token);
                            at += 1;
                            let within = |place: &usize| places.iter().any(|p| p.contains(place));
                            (0..).zip(tokens).filter(|(p, _)| within(p)).map(|(_, t)| t).collect()
                        })
                    })
                }
                OppositionKind::Name => {
                    let names = self.exchanged_names(texts, signs, &mut cosines);
                    names.unwrap_or_default()
                }
            };
            for side in &mut tokens {
                side.sort_unstable();
                side.dedup();
            }
            Opposition { kind, tokens }
        });
        told.collect()
    }

    /// The kinds by which two texts are opposed.
    fn compare(
        &self,
        texts: [&Phrase<'_>; 2],
        [one, other]: [&Signs; 2],
        cosines: &mut WordCosines,
    ) -> Oppositions {
        let name = self.exchanged_names(texts, [one, other], cosines).is_some();
        let negation = one.negates() != other.negates();
        let antonym = self.exchanges([one, other]).next().is_some()
            || turns(texts, one).next().is_some()
            || turns([texts[1], texts[0]], other).next().is_some();
        let lacks = |one: &Signs, other: &Signs| one.numbers.iter().any(|&(_, n)| !other.has(n));
        let number = lacks(one, other) && lacks(other, one);
        let agree = negation && antonym;
        Oppositions::default()
            .with(OppositionKind::Negation, negation && !agree)
            .with(OppositionKind::Antonym, antonym && !agree)
            .with(OppositionKind::Number, number)
            .with(OppositionKind::Roles, self.exchanged_roles(texts).is_some())
            .with(OppositionKind::Name, name)
    }

    fn exchanged_names(
        &self,
        texts: [&Phrase<'_>; 2],
        signs: [&Signs; 2],
        cosines: &mut WordCosines,
    ) -> Option<Exchanged> {
        self.names.as_ref()?.exchanged(texts, signs.map(|signs| &signs.names), cosines)
    }

    /// Words of the one text that stand in the other exchanged for an opposite: their tokens.
    fn exchanges<'s>(&'s self, [one, other]: [&'s Signs; 2]) -> impl Iterator<Item = u32> + 's {
        let own = one.opposable.iter().filter(|_| !other.opposable.is_empty());
        let own = own.filter(|(_, word)| !other.has_opposable(*word));
        let exchanged =
            |opposite: &WordId| other.has_opposable(*opposite) && !one.has_opposable(*opposite);
        let exchanged = move |word: WordId| self.table.opposites(word).iter().any(exchanged);
        own.filter(move |(_, word)| exchanged(*word)).map(|&(token, _)| token)
    }

    /// The tokens of both texts that stand exchanged for opposites.
    fn exchanged_tokens(&self, texts: [&Phrase<'_>; 2], signs: [&Signs; 2]) -> [Vec<u32>; 2] {
        let [one, other] = texts;
        let mut tokens = [Vec::new(), Vec::new()];
        for side in [0, 1] {
            let of_side = if side == 0 { [one, other] } else { [other, one] };
            tokens[side].extend(self.exchanges([signs[side], signs[1 - side]]));
            for (token, word) in turns(of_side, signs[side]) {
                tokens[side].push(token);
                let other = of_side[1];
                let stands = other.origins().zip(other.words()).filter(|(_, own)| **own == word);
                tokens[1 - side].extend(stands.map(|(origin, _)| origin.token));
            }
        }
        tokens
    }

    /// The places of the words of both texts that have changed places around others, if the texts have the
    /// same words in another order, and but for two parts stand alike.
    fn exchanged_roles(&self, texts: [&Phrase<'_>; 2]) -> Option<[[std::ops::Range<usize>; 2]; 2]> {
        let [one, other] = texts;
        if one.words().len() != other.words().len() || !one.same_bag(other) {
            return None;
        }
        let key = |phrase: &Phrase<'_>| -> Vec<u64> {
            phrase.words().iter().map(|&word| phrase.key(word)).collect()
        };
        let (a, b) = (key(one), key(other));
        let begin = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
        let to = a.len() - end.min(a.len());
        let (a, b) = (a.get(begin..to)?, b.get(begin..to)?);
        if a.is_empty() || a.len() > MAX_EXCHANGED {
            return None;
        }
        let joins = |words: &[Word]| {
            let flags =
                words.iter().filter_map(|&word| one.id(word)).map(|id| self.table.flags(id));
            flags.into_iter().any(|flags| flags & flag::JOINS != 0)
        };
        // a = x middle y, b = y middle x.
        for x in 1..a.len().saturating_sub(1) {
            if a.get(..x) != b.get(b.len() - x..) {
                continue;
            }
            for y in 1..a.len() - x {
                let middle = x..a.len() - y;
                let around = a.get(middle.end..) == b.get(..y)
                    && a.get(middle.clone()) == b.get(y..b.len() - x);
                let words = one.words().get(begin + middle.start..begin + middle.end);
                if around && !joins(words.unwrap_or_default()) {
                    let ends = [begin..begin + x, to - y..to];
                    return Some([ends, [begin..begin + y, to - x..to]]);
                }
            }
        }
        None
    }

    fn lowered(&self, score: f32, texts: [&Phrase<'_>; 2], kinds: Oppositions) -> f32 {
        if kinds.is_empty() || score <= 0.0 {
            return score;
        }
        let Settings { negation, antonym, number, roles, name, words, .. } = &self.table.settings;
        let weights = OppositionKind::ALL.iter().zip([negation, antonym, number, roles, name]);
        let weight: f64 = weights.filter(|(kind, _)| kinds.contains(**kind)).map(|(_, w)| w).sum();
        let lengths = (texts[0].words().len() + texts[1].words().len()) as f64;
        let whole = (2.0 * words / lengths.max(1.0)).min(1.0);
        let score = f64::from(score);
        let square = score * score;
        (score - whole * weight.min(1.0) * square * square).max(0.0) as f32
    }
}

fn has(phrase: &Phrase<'_>, word: WordId) -> bool {
    phrase.listed_in_bag().binary_search(&word).is_ok()
}

/// The words of the one text that turn around one which the other has and the one has not: token, and the
/// word of the other.
fn turns<'s>(
    [one, other]: [&'s Phrase<'s>; 2],
    signs: &'s Signs,
) -> impl Iterator<Item = (u32, WordId)> + 's {
    let turned = signs.turned.iter().copied();
    turned.filter(move |(_, word)| has(other, *word) && !has(one, *word))
}

struct PolarityBlend {
    plain: blend::Blend<Coverage>,
    polarity: Polarity,
}

impl Compare for PolarityBlend {
    type Against<'q> = Prepared<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, scratch: &mut Scratch) -> Prepared<'q> {
        let (read, least) = (std::mem::take(&mut scratch.signs[0]), f32::NEG_INFINITY);
        let (polarity, plain) = (&self.polarity, self.plain.against(one, scratch));
        Prepared { polarity, one, read, is_read: false, plain, least, last: None }
    }

    fn polarity(&self) -> Option<&Polarity> {
        Some(&self.polarity)
    }

    fn make_parts<'p>(&self, many: &'p [Phrase<'p>], parts: &mut Parts<'p>, scratch: &mut Scratch) {
        self.plain.make_parts(many, parts, scratch);
        parts.signs.resize_with(many.len(), OnceCell::new);
    }
}

struct Prepared<'q> {
    polarity: &'q Polarity,
    one: &'q Phrase<'q>,
    /// Its signs, once a comparison needed them.
    read: Read,
    is_read: bool,
    plain: <blend::Blend<Coverage> as Compare>::Against<'q>,
    /// Nobody needs a score below this.
    least: f32,
    /// The oppositions of the text that was scored last.
    last: Option<Oppositions>,
}

impl Prepared<'_> {
    /// The score lowered; the cosines of the words of both texts may be known.
    fn lowered(&mut self, score: f32, other: &Phrase<'_>, scratch: &mut Scratch) -> f32 {
        let Scratch { signs: [_, signs], cosines, .. } = scratch;
        signs.0.read(&self.polarity.table, other);
        self.lowered_by(score, other, signs, cosines)
    }

    fn lowered_by(
        &mut self,
        score: f32,
        other: &Phrase<'_>,
        signs: &Read,
        cosines: &mut WordCosines,
    ) -> f32 {
        let texts = [self.one, other];
        if !std::mem::replace(&mut self.is_read, true) {
            self.read.0.read(&self.polarity.table, self.one);
        }
        let kinds = self.polarity.compare(texts, [&self.read.0, &signs.0], cosines);
        cosines.forget();
        self.last = Some(kinds);
        self.polarity.lowered(score, texts, kinds)
    }
}

impl Against for Prepared<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], scratch: &mut Scratch) {
        // Forgets cosines of earlier pairs, so that those of a single pair can be reused by `lowered`.
        scratch.cosines.forget();
        self.plain.score(many, out, scratch);
        for (other, score) in many.iter().zip(out) {
            *score = self.lowered(*score, other, scratch);
        }
    }

    fn score_prepared(
        &mut self,
        many: &[Phrase<'_>],
        parts: &Parts<'_>,
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        scratch.cosines.forget();
        self.plain.score_prepared(many, parts, out, scratch);
        let least = self.least;
        let needed = many.iter().zip(&parts.signs).zip(out).filter(|(_, score)| **score >= least);
        for ((other, signs), score) in needed {
            let signs = signs.get_or_init(|| {
                let mut signs = Read::default();
                signs.0.read(&self.polarity.table, other);
                signs
            });
            *score = self.lowered_by(*score, other, signs, &mut scratch.cosines);
        }
    }

    /// Opposites lower a score and raise none.
    fn need_from(&mut self, least: f32) {
        self.least = least;
    }

    /// What the words add to the score of `coverage-blend`, each lowered by the same factor.
    fn shares(&mut self, other: &Phrase<'_>, scratch: &mut Scratch) -> Option<Shares> {
        let mut shares = self.plain.shares(other, scratch)?;
        scratch.cosines.forget();
        let mut plain = [0.0];
        self.plain.score(std::slice::from_ref(other), &mut plain, scratch);
        let lowered = self.lowered(plain[0], other, scratch);
        if lowered != plain[0] {
            let factor = lowered / plain[0];
            shares.one.iter_mut().chain(&mut shares.other).for_each(|share| *share *= factor);
        }
        Some(shares)
    }

    fn opposed(&self) -> Option<Oppositions> {
        self.last
    }

    fn give_back(&mut self, scratch: &mut Scratch) {
        self.plain.give_back(scratch);
        scratch.signs[0] = std::mem::take(&mut self.read);
    }
}
