//! How a method scores: by a vector of each text, by both texts, or by a whole list of candidates.
//!
//! What belongs to one text is prepared once, in an [`Against`], however many others it is compared
//! with: all that was learnt of a text lives there and ends with it. [`Scratch`] is memory alone; no
//! number is read from it that the same call did not write.

use std::cell::OnceCell;

use cognate_kernels::transport::Transport;

use crate::methods::common::text_vector::{TextVector, Weights};
use crate::methods::common::unit_rows;
use crate::methods::common::word_cosines::WordCosines;
use crate::methods::lexical::token_bag::TokenBag;
use crate::methods::polarity::{Oppositions, Polarity};
use crate::methods::sets::{coverage, dynamax, dynamax_weighted};
use crate::methods::{Measure, Posts, polarity, ranker};
use crate::model::Phrase;

/// Turns a text into one vector, compared by cosine or Euclidean distance.
pub trait Embed: Send + Sync {
    /// Dimensions of the vector, for word vectors of `dims`.
    fn dims(&self, dims: usize) -> usize {
        dims
    }

    /// The measure of its vectors unless a query names another.
    fn measure(&self) -> Measure {
        Measure::Cosine
    }

    /// Writes the vector of a text into `out`, which arrives zeroed and [`Embed::dims`] long.
    fn embed(&self, phrase: &Phrase<'_>, out: &mut [f32]);

    /// Appends a coefficient for each word, in the order of the bag, and gives back a factor, if the
    /// text's vector is the factor times the sum of the words' rows, each times its coefficient:
    /// added one after the other, and multiplied by the factor in the end.
    fn coefficients(&self, _phrase: &Phrase<'_>, _out: &mut Vec<f32>) -> Option<f32> {
        None
    }

    /// Writes, for each word in the order of the text, its share of the product of the text's
    /// vector with `other`; the shares add up to that product. `false` if the vector does not come
    /// apart into words.
    fn shares(&self, _phrase: &Phrase<'_>, _other: &[f32], _shares: &mut [f32]) -> bool {
        false
    }
}

/// Scores pairs of texts directly. Texts without what [`crate::methods::Info::reads`] asks for never get
/// here.
pub trait Compare: Send + Sync {
    /// A text prepared for comparisons by this method.
    type Against<'q>: Against
    where
        Self: 'q;

    /// Prepares a text.
    fn against<'q>(&'q self, one: &'q Phrase<'q>, scratch: &mut Scratch) -> Self::Against<'q>;

    /// Returns the method's knowledge of opposites, if it counts opposites.
    fn polarity(&self) -> Option<&Polarity> {
        None
    }

    /// Adds to `parts`, for each text, what every comparison with it would otherwise compute again.
    fn make_parts<'p>(
        &self,
        _many: &'p [Phrase<'p>],
        _parts: &mut Parts<'p>,
        _scratch: &mut Scratch,
    ) {
    }
}

/// Maximum number of floats whose memory `prepared_vectors` keeps: 1 MiB.
const KEPT_NUMBERS: usize = 1 << 18;

/// What a method computed of many texts once, before other texts are compared with them. Each method
/// fills its own list; a method that fills none computes it in each comparison.
#[derive(Default)]
pub struct Parts<'p> {
    /// The memberships of each text's words in their own text.
    pub(crate) memberships: Vec<Vec<f32>>,
    pub(crate) coverage: Vec<coverage::TextParts<'p>>,
    /// Their vectors, one after the other.
    pub(crate) vectors: Vec<f32>,
    /// Read when the first comparison needs them.
    pub(crate) signs: Vec<OnceCell<polarity::Read>>,
}

impl Parts<'_> {
    /// Returns the memory of rows and vectors to `scratch` for later texts, unless it is unusually much.
    pub(crate) fn give_back(mut self, scratch: &mut Scratch) {
        scratch.coverage.take_back(self.coverage);
        self.vectors.clear();
        self.vectors.shrink_to(KEPT_NUMBERS);
        scratch.prepared_vectors = self.vectors;
    }
}

/// A text, prepared for any number of comparisons with others.
pub trait Against: Send {
    /// Scores the text against each of `many`, into `out` of the same length. A score of a [`Compare`]
    /// or an [`Embed`] depends on both texts alone, bit for bit, not on the others of `many` or of
    /// earlier calls; a score of a [`RankList`] depends on all of `many`.
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], scratch: &mut Scratch);

    /// Returns the scores of [`Against::score`], bit for bit; uses what the method precomputed of `many`.
    fn score_prepared(
        &mut self,
        many: &[Phrase<'_>],
        _parts: &Parts<'_>,
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        self.score(many, out, scratch);
    }

    /// From now on a score below `least` may be any number below `least`, if that takes less.
    fn need_from(&mut self, _least: f32) {}

    /// Writes an upper bound of the score of each of `many` into `out` of the same length, if that
    /// takes much less than the score. `false` if the method has no bounds.
    fn bounds(&mut self, _many: &[Phrase<'_>], _out: &mut [f32], _scratch: &mut Scratch) -> bool {
        false
    }

    /// The score of the text with a text of these tokens, for a method whose scores of tokens are
    /// [counted](crate::methods::Method::counted).
    fn score_bag(&self, _bag: &TokenBag) -> Option<f32> {
        None
    }

    /// Scores the text against each of the posts of a list, into `out` of the same length: what
    /// [`Against::score`] does for all of them. Call it only for the scorer of a [`RankList`].
    fn score_list(&mut self, _posts: &Posts, _out: &mut [f32]) {}

    /// What each word of both texts, in their order, adds to the score. `None` if the score does
    /// not come apart into words.
    fn shares(&mut self, _other: &Phrase<'_>, _scratch: &mut Scratch) -> Option<Shares> {
        None
    }

    /// Which words of the other text each word of this one was read from. `None` if the method does
    /// not look at one text with the words of the other.
    fn attention(
        &mut self,
        _other: &Phrase<'_>,
        _scratch: &mut Scratch,
    ) -> Option<Vec<ranker::Attention>> {
        None
    }

    /// How the text that was scored last is opposed to this text. `None` if the method does not look.
    fn opposed(&self) -> Option<Oppositions> {
        None
    }

    /// Returns to `scratch` the memory that preparing took. Call it after the last comparison.
    fn give_back(&mut self, _scratch: &mut Scratch) {}
}

/// [`Compare`], whichever method it is.
pub trait DynCompare: Send + Sync {
    /// Prepares a text.
    fn against<'q>(&'q self, one: &'q Phrase<'q>, scratch: &mut Scratch) -> Box<dyn Against + 'q>;

    /// Scores one pair without allocating for a prepared text, and returns what [`Against::opposed`] does.
    fn pair(
        &self,
        one: &Phrase<'_>,
        other: &Phrase<'_>,
        scratch: &mut Scratch,
    ) -> (f32, Option<Oppositions>);

    /// What the method knows of opposites.
    fn polarity(&self) -> Option<&Polarity>;

    /// Calls [`Compare::make_parts`].
    fn make_parts<'p>(&self, many: &'p [Phrase<'p>], parts: &mut Parts<'p>, scratch: &mut Scratch);
}

impl<M: Compare> DynCompare for M {
    fn against<'q>(&'q self, one: &'q Phrase<'q>, scratch: &mut Scratch) -> Box<dyn Against + 'q> {
        Box::new(Compare::against(self, one, scratch))
    }

    fn pair(
        &self,
        one: &Phrase<'_>,
        other: &Phrase<'_>,
        scratch: &mut Scratch,
    ) -> (f32, Option<Oppositions>) {
        only(Compare::against(self, one, scratch), other, scratch)
    }

    fn polarity(&self) -> Option<&Polarity> {
        Compare::polarity(self)
    }

    fn make_parts<'p>(&self, many: &'p [Phrase<'p>], parts: &mut Parts<'p>, scratch: &mut Scratch) {
        Compare::make_parts(self, many, parts, scratch);
    }
}

/// Scores the only text that a prepared text is compared with.
fn only(
    mut against: impl Against,
    other: &Phrase<'_>,
    scratch: &mut Scratch,
) -> (f32, Option<Oppositions>) {
    let mut score = [0.0];
    against.score(std::slice::from_ref(other), &mut score, scratch);
    let opposed = against.opposed();
    against.give_back(scratch);
    (score[0], opposed)
}

/// Scores a whole list of candidates against a query, where a candidate's score depends on the
/// others.
pub trait RankList: Send + Sync {
    /// Scores every post, into `out` of the same length.
    fn rank(&self, query: &Phrase<'_>, posts: &Posts, out: &mut [f32]);
}

/// A method ready to score.
pub enum Scorer {
    /// By a vector of each text.
    Embed(Box<dyn Embed>),
    /// By both texts.
    Compare(Box<dyn DynCompare>),
    /// By the whole list of candidates; only ranks.
    RankList(Box<dyn RankList>),
}

impl Scorer {
    /// Returns the method's knowledge of opposites, if it counts opposites.
    pub(crate) fn polarity(&self) -> Option<&Polarity> {
        match self {
            Self::Compare(method) => method.polarity(),
            Self::Embed(_) | Self::RankList(_) => None,
        }
    }

    /// Returns what the method computes once of texts that several others are compared with.
    pub(crate) fn prepared_parts<'p>(
        &self,
        many: &'p [Phrase<'p>],
        scratch: &mut Scratch,
    ) -> Parts<'p> {
        let mut parts = Parts::default();
        if let Self::Compare(method) = self {
            method.make_parts(many, &mut parts, scratch);
        }
        parts
    }

    pub(crate) fn against<'q>(
        &'q self,
        measure: Measure,
        one: &'q Phrase<'q>,
        scratch: &mut Scratch,
    ) -> Box<dyn Against + 'q> {
        match self {
            Self::Embed(embedder) => {
                Box::new(ByVector::new(embedder.as_ref(), measure, one, scratch))
            }
            Self::Compare(method) => method.against(one, scratch),
            Self::RankList(method) => Box::new(WholeList { method: method.as_ref(), one }),
        }
    }

    /// Scores one pair. Vectors are compared by `measure`.
    pub fn pair(
        &self,
        measure: Measure,
        one: &Phrase<'_>,
        other: &Phrase<'_>,
        scratch: &mut Scratch,
    ) -> f32 {
        self.pair_told(measure, one, other, scratch).0
    }

    /// [`Scorer::pair`], and how the texts are opposed if the method looks, so that no caller has to
    /// look again.
    pub(crate) fn pair_told(
        &self,
        measure: Measure,
        one: &Phrase<'_>,
        other: &Phrase<'_>,
        scratch: &mut Scratch,
    ) -> (f32, Option<Oppositions>) {
        match self {
            Self::Embed(embedder) => {
                only(ByVector::new(embedder.as_ref(), measure, one, scratch), other, scratch)
            }
            Self::Compare(method) => method.pair(one, other, scratch),
            Self::RankList(method) => {
                only(WholeList { method: method.as_ref(), one }, other, scratch)
            }
        }
    }
}

/// A text's vector, to be compared with those of others.
struct ByVector<'q> {
    embedder: &'q dyn Embed,
    measure: Measure,
    vector: TextVector<'q>,
}

impl<'q> ByVector<'q> {
    fn new(
        embedder: &'q dyn Embed,
        measure: Measure,
        one: &'q Phrase<'q>,
        scratch: &mut Scratch,
    ) -> Self {
        let vector = TextVector::new(embedder, one, std::mem::take(&mut scratch.vectors));
        Self { embedder, measure, vector }
    }
}

impl Against for ByVector<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], scratch: &mut Scratch) {
        let only = many.len() == 1;
        for (other, score) in many.iter().zip(out) {
            *score = if self.vector.text().same_bag(other) {
                1.0
            } else if self.measure == Measure::Cosine {
                self.vector.cosine(other, only, &mut scratch.weights)
            } else {
                let [own, of_other] = self.vector.with(other);
                self.measure.score(own, of_other)
            };
        }
    }

    fn shares(&mut self, other: &Phrase<'_>, _scratch: &mut Scratch) -> Option<Shares> {
        if self.measure != Measure::Cosine {
            return None;
        }
        let one = self.vector.text();
        unit_rows::shares(self.embedder, [one, other], self.vector.with(other))
    }

    fn give_back(&mut self, scratch: &mut Scratch) {
        scratch.vectors = self.vector.take_memory();
    }
}

struct WholeList<'q> {
    method: &'q dyn RankList,
    one: &'q Phrase<'q>,
}

impl Against for WholeList<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], _scratch: &mut Scratch) {
        let mut posts = Posts::default();
        many.iter().for_each(|post| posts.push(post));
        self.score_list(&posts, out);
    }

    fn score_list(&mut self, posts: &Posts, out: &mut [f32]) {
        self.method.rank(self.one, posts, out);
    }
}

/// What the words of two texts add to their score: all numbers of both sides add up to it. For a
/// method that [`crate::methods::Reads::Tokens`] there is a number a token that was read, in place of a word.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shares {
    /// One number a word of the first text.
    pub one: Vec<f32>,
    /// One number for each word of the other text.
    pub other: Vec<f32>,
    /// The memberships behind the shares, if the method has memberships.
    pub memberships: Option<Memberships>,
}

/// How much each word of the universe belongs to either text: `[in a, in b]`.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Memberships {
    /// Of each word of `a`.
    #[serde(rename = "a")]
    pub one: Vec<[f32; 2]>,
    /// Of each word of `b`.
    #[serde(rename = "b")]
    pub other: Vec<[f32; 2]>,
}

/// Memory that scoring reuses from one question to the next, whatever the model.
#[derive(Default)]
pub struct Scratch {
    pub(crate) one: Vec<f32>,
    pub(crate) other: Vec<f32>,
    pub(crate) unit_rows: [unit_rows::RowBuffers; 2],
    pub(crate) cosines: WordCosines,
    pub(crate) products: unit_rows::Work,
    pub(crate) one_gram: Vec<f32>,
    pub(crate) other_gram: Vec<f32>,
    pub(crate) cross: Vec<f32>,
    /// Numbers a word of the first text.
    pub(crate) one_numbers: Vec<f32>,
    pub(crate) other_numbers: Vec<f32>,
    pub(crate) masses: [Vec<f64>; 3],
    pub(crate) bags: [TokenBag; 2],
    pub(crate) dynamax: dynamax::Buffers,
    pub(crate) sides: [dynamax_weighted::Side; 2],
    pub(crate) coverage: coverage::Buffers,
    pub(crate) signs: [polarity::Read; 2],
    pub(crate) ranker: ranker::Work,
    pub(crate) vectors: [Vec<f32>; 2],
    pub(crate) prepared_vectors: Vec<f32>,
    pub(crate) weights: Weights,
    pub(crate) transport: Transport,
}
