//! The methods: every way of saying how alike two texts are, by name.
//!
//! A method is one file (or one module of a family's file) with two items, `INFO` and `load`, and
//! one line in the list below; flags, documents, tables and law tests walk [`Method::ALL`].
//! Nothing here is numeric, and nothing elsewhere matches on a [`Method`].
//!
//! [`Embed`] and [`Compare`] are two traits because only some methods have a vector of one text
//! alone; what needs both texts compares **one text with many**, so that whatever belongs to the
//! one is prepared once.

use crate::kernels::transport::Transport;
use crate::model::Model;
use crate::model::ModelError;
use crate::model::Phrase;
use crate::model::format::Dtype;
use crate::model::writer::Draft;
use crate::model::writer::Table;

/// Turns a text into one vector, compared by cosine or Euclidean distance.
pub trait Embed: Send + Sync {
    /// Dimensions of the vector, for word vectors of `dims`.
    fn dims(&self, dims: usize) -> usize {
        dims
    }

    /// What its vectors are compared by unless a query says otherwise.
    fn measure(&self) -> Measure {
        Measure::Cosine
    }

    /// Writes the vector of a text into `out`, which arrives zeroed and [`Embed::dims`] long.
    fn embed(&self, phrase: &Phrase<'_>, out: &mut [f32]);

    /// Writes, for each word in the order of the text, its share of the product of the text's
    /// vector with `other`; the shares add up to that product. `false` if the vector does not come
    /// apart into words.
    fn shares(&self, _phrase: &Phrase<'_>, _other: &[f32], _shares: &mut [f32]) -> bool {
        false
    }
}

/// Scores pairs of texts directly.
pub trait Compare: Send + Sync {
    /// Scores `one` against each of `many`, into `out` of the same length. Engines hand over texts
    /// with what [`Info::reads`] asks for only.
    fn compare(
        &self,
        one: &Phrase<'_>,
        many: &[Phrase<'_>],
        out: &mut [f32],
        scratch: &mut Scratch,
    );

    /// Writes, for each of `many`, a number that its score is not above, into `out` of the same
    /// length; worth having where it takes much less than the score. `false` if the method has
    /// none.
    fn bounds(
        &self,
        _one: &Phrase<'_>,
        _many: &[Phrase<'_>],
        _out: &mut [f32],
        _scratch: &mut Scratch,
    ) -> bool {
        false
    }

    /// What each word of both texts, in their order, adds to the score. `None` if the score does
    /// not come apart into words.
    fn shares(
        &self,
        _one: &Phrase<'_>,
        _other: &Phrase<'_>,
        _scratch: &mut Scratch,
    ) -> Option<Shares> {
        None
    }

    /// Which words of the other text each word of the one was read from. `None` if the method does
    /// not look at one text with the words of the other.
    fn attention(
        &self,
        _one: &Phrase<'_>,
        _other: &Phrase<'_>,
        _scratch: &mut Scratch,
    ) -> Option<Vec<ranker::Attention>> {
        None
    }
}

/// What the words of two texts add to their score: all numbers of both sides add up to it. For a
/// method that [`Reads::Tokens`] there is a number a token that was read, in place of a word.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shares {
    /// One number a word of the one text.
    pub one: Vec<f32>,
    /// One number a word of the other.
    pub other: Vec<f32>,
    /// The memberships behind the shares, where the method has such.
    pub memberships: Option<Memberships>,
}

/// How much each word of the universe belongs to either text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Memberships {
    /// For each word of the one text: its membership in the one and in the other.
    pub one: Vec<[f32; 2]>,
    /// For each word of the other text: its membership in the one and in the other.
    pub other: Vec<[f32; 2]>,
}

/// Scores a whole list of candidates against a query, where a candidate's score depends on the
/// others.
pub trait RankList: Send + Sync {
    /// Scores every candidate, into `out` of the same length.
    fn rank(
        &self,
        query: &Phrase<'_>,
        candidates: &[Phrase<'_>],
        out: &mut [f32],
        scratch: &mut Scratch,
    );
}

/// A method ready to score.
pub enum Scorer {
    /// By a vector of each text.
    Embed(Box<dyn Embed>),
    /// By both texts.
    Compare(Box<dyn Compare>),
    /// By the whole list of candidates; only ranks.
    RankList(Box<dyn RankList>),
}

/// Memory that scoring reuses from one call to the next.
#[derive(Default)]
pub struct Scratch {
    /// Rows of the one text.
    pub one: Vec<f32>,
    /// Rows of the other.
    pub other: Vec<f32>,
    /// Products of the one text's rows with themselves.
    pub one_gram: Vec<f32>,
    /// Products of the other text's rows with themselves.
    pub other_gram: Vec<f32>,
    /// Products of the rows of both.
    pub cross: Vec<f32>,
    /// Numbers a word of the one text.
    pub one_numbers: Vec<f32>,
    /// Numbers a word of the other.
    pub other_numbers: Vec<f32>,
    /// Masses and costs of a transport problem.
    pub masses: [Vec<f64>; 3],
    /// A text and those it is compared with by DynaMax, and what it has learnt of their words.
    pub(crate) dynamax: dynamax::Memory,
    /// Two texts compared by DynaMax on their own.
    pub(crate) dynamax_pair: dynamax::Memory,
    /// A query and posts under a trained network, and what it has learnt of their words.
    pub(crate) ranker: ranker::Memory,
    /// Both texts in the weighted form of DynaMax.
    pub(crate) sides: [dynamax_weighted::Side; 2],
    /// Vectors of both texts.
    pub vectors: [Vec<f32>; 2],
    /// The solver of transport problems.
    pub transport: Transport,
}

impl Scratch {
    /// Forgets what was learnt of texts, which the next question may not know, and gives back what
    /// only a long question needed. Memory for texts stays.
    pub(crate) fn forget(&mut self) {
        self.dynamax.forget();
        self.ranker.forget();
    }
}

/// What a method is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// How alike two texts are: symmetric, and most for a text and itself.
    Similarity,
    /// How well a candidate answers a query.
    Ranker,
}

/// What a text must have to be scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// At least one word with a vector.
    Words,
    /// At least one token, known or not.
    Tokens,
}

/// What is to be known of a method without running it.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    /// Its name, as requests and flags spell it.
    pub name: &'static str,
    /// What it is for.
    pub kind: Kind,
    /// How much work it is.
    pub cost: Cost,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub paper: &'static str,
    /// Between which numbers its scores lie; infinite where they have no bound.
    pub range: (f32, f32),
    /// What a text must have.
    pub reads: Reads,
    /// Whether it has a vector of one text alone.
    pub embeds: bool,
    /// Whether it weights words by how frequent they are, which vectors with
    /// [`crate::model::Frequency::InNorm`] already do.
    pub weights_frequency: bool,
}

/// Why a method cannot be used with a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{missing}; {remedy}")]
pub struct Unavailable {
    /// What the model file lacks.
    pub missing: String,
    /// Which command adds it.
    pub remedy: String,
}

/// A scorer, or why there is none.
pub type Loaded = Result<Result<Scorer, Unavailable>, ModelError>;

/// The answer of a method that the model file has nothing for.
pub(crate) fn unavailable(missing: &str, remedy: &str) -> Loaded {
    Ok(Err(Unavailable { missing: missing.to_owned(), remedy: remedy.to_owned() }))
}

/// What a method fitted to a model and its corpus, to be stored as a section.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The section's name.
    pub section: &'static str,
    /// Its settings, as JSON: how it was fitted.
    pub settings: String,
    /// Its tensors: name, shape, numbers.
    pub tensors: Vec<(&'static str, Vec<usize>, Vec<f32>)>,
}

impl Fitted {
    /// Puts it into a model file to be, in place of what was fitted before.
    pub fn put_into<'a>(&'a self, draft: &mut Draft<'a>) {
        let table = |(name, shape, numbers): &'a (&'static str, Vec<usize>, Vec<f32>)| {
            Table::of(*name, Dtype::F32, shape, numbers)
        };
        let tables = self.tensors.iter().map(table).collect();
        draft.set_section(self.section, self.settings.clone(), tables);
    }
}

/// Why a method cannot be fitted to a model and its corpus.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{section} cannot be fitted: {problem}")]
pub struct Unfittable {
    /// The section that was wanted.
    pub section: &'static str,
    /// What stands in the way.
    pub problem: String,
}

macro_rules! methods {
    ($($variant:ident => $($module:ident)::+,)+) => {
        /// A method of comparing texts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Method {
            $(#[doc = concat!("See [`", stringify!($($module)::+), "`].")] $variant,)+
        }

        impl Method {
            /// Every method, in the order of listings.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// What is to be known of it.
            pub fn info(self) -> &'static Info {
                match self { $(Self::$variant => &$($module)::+::INFO,)+ }
            }

            /// Makes it ready for a model.
            pub fn load(self, model: &Model) -> Loaded {
                match self { $(Self::$variant => $($module)::+::load(model),)+ }
            }
        }
    };
}

pub mod ablation;
pub mod avg_cos;
pub mod blend;
pub mod bm25;
mod collection;
pub(crate) mod cosine;
mod cost;
mod counted;
mod distinct;
pub mod dynamax;
pub mod dynamax_weighted;
pub mod extremes;
pub mod fbow_jaccard;
mod fuzzy;
pub mod idf_mean;
pub mod learned_idf;
pub mod max_jaccard;
mod means;
mod measure;
mod mover;
mod names;
pub mod overlap;
pub mod ql;
pub mod ranker;
pub mod rm3;
mod rows;
pub mod sif;
pub mod soft_cardinality;
mod stored;
pub mod tf_idf;
mod token_bag;
pub mod top30;
pub mod usif;
pub mod wmd;
mod words_met;
pub mod wrd;

pub use cost::Cost;
pub use cost::Formula;
pub use measure::Measure;

#[cfg(feature = "http")]
pub(crate) use names::edit_distance;

methods! {
    AvgCos => avg_cos,
    Sif => sif::weighted,
    SifPca => sif::pca,
    Usif => usif,
    IdfMean => idf_mean,
    MaxCos => extremes::max,
    MinMax => extremes::min_max,
    MeanTop30 => top30::mean,
    MaxTop30 => top30::max,
    MinMaxTop30 => top30::min_max,
    LearnedIdf => learned_idf,
    TfIdf => tf_idf,
    Jaccard => overlap::set,
    JaccardBag => overlap::bag,
    DynamaxJaccard => dynamax::jaccard,
    DynamaxOtsuka => dynamax::otsuka,
    DynamaxDice => dynamax::dice,
    DynamaxCosine => dynamax::cosine,
    DynamaxSif => dynamax::sif,
    MaxJaccard => max_jaccard,
    FbowJaccard => fbow_jaccard,
    SoftCardinality => soft_cardinality,
    Wmd => wmd,
    Wrd => wrd,
    DynamaxWeighted => dynamax_weighted,
    Blend => blend,
    Bm25 => bm25,
    Ql => ql,
    Rm3 => rm3,
    Bicnn => ranker::bicnn,
    Qatt => ranker::qatt,
    Patt => ranker::patt,
    RankerQl => ranker::ranker_ql,
}
