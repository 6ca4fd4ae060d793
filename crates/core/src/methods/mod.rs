//! The methods: every way of saying how alike two texts are, by name.
//!
//! A method is one file (or one module of a family's file) with two items, `INFO` and `load`, and
//! one line in the list below; flags, documents, tables and law tests walk [`Method::ALL`].
//! Nothing here is numeric, and nothing elsewhere matches on a [`Method`].
//!
//! [`Embed`] and [`Compare`] are two traits because only some methods have a vector of one text
//! alone; what needs both texts compares **one text with many**, so that whatever belongs to the
//! one is prepared once.

mod auto;
pub mod blend;
pub(crate) mod common {
    //! What methods of more than one family use; no method lives here.

    pub(crate) mod text_vector;
    pub(crate) mod union;
    pub(crate) mod unit_rows;
    pub(crate) mod word_cosines;
    pub(crate) mod words_met;
}
mod fitted;
mod info;
pub mod lexical {
    //! Methods by shared tokens; only `prf_cos` has vectors beside.

    pub mod bm25;
    pub mod collection;
    pub(super) mod counted;
    mod feedback;
    pub mod overlap;
    pub mod prf_cos;
    pub mod ql;
    pub mod rm3;
    pub mod tf_idf;
    pub(crate) mod token_bag;
}
pub mod means {
    //! Methods by one vector a text: averages of its words' vectors, weighted and corrected, and their
    //! extremes.

    pub mod avg_cos;
    pub mod extremes;
    pub mod idf_mean;
    pub mod learned_idf;
    pub mod sif;
    pub mod top30;
    pub mod usif;
    pub(crate) mod weighted_sum;
}
pub mod polarity;
pub mod ranker;
mod scorer;
pub mod sets {
    //! Methods by fuzzy sets of words: how much each word of a universe belongs to either text.

    pub mod ablation;
    pub mod coverage;
    pub mod dynamax;
    pub mod dynamax_weighted;
    pub mod fbow_jaccard;
    mod fuzzy;
    pub mod max_jaccard;
    pub mod same_event;
    pub mod soft_cardinality;
}
pub mod transport {
    //! Methods by optimal transport: what it costs to move the words of one text onto the other's.

    mod mover;
    pub mod wmd;
    pub mod wrd;
}

pub use auto::Auto;
pub use fitted::{Fitted, Unfittable};
pub use info::{Cost, Formula, Info, Kind, Measure, Reads, Unavailable};
pub use lexical::collection::Posts;
pub use lexical::counted::Counted;
pub use lexical::token_bag::TokenBag;
pub use scorer::{
    Against, Compare, DynCompare, Embed, Memberships, Parts, RankList, Scorer, Scratch, Shares,
};

use crate::model::{Model, ModelError};

/// A scorer, or why there is none.
pub type Loaded = Result<Result<Scorer, Unavailable>, ModelError>;

/// The answer of a method that the model file has nothing for.
pub(crate) fn unavailable(missing: &str, remedy: &str) -> Loaded {
    Ok(Err(Unavailable { missing: missing.to_owned(), remedy: remedy.to_owned() }))
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

            /// The method's name, summary, source and cost.
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

methods! {
    AvgCos => means::avg_cos,
    Sif => means::sif::weighted,
    SifPca => means::sif::pca,
    Usif => means::usif,
    IdfMean => means::idf_mean,
    MaxCos => means::extremes::max,
    MinMax => means::extremes::min_max,
    MeanTop30 => means::top30::mean,
    MaxTop30 => means::top30::max,
    MinMaxTop30 => means::top30::min_max,
    LearnedIdf => means::learned_idf,
    TfIdf => lexical::tf_idf,
    Jaccard => lexical::overlap::set,
    JaccardBag => lexical::overlap::bag,
    DynamaxJaccard => sets::dynamax::jaccard,
    DynamaxOtsuka => sets::dynamax::otsuka,
    DynamaxDice => sets::dynamax::dice,
    DynamaxCosine => sets::dynamax::cosine,
    DynamaxSif => sets::dynamax::sif,
    MaxJaccard => sets::max_jaccard,
    FbowJaccard => sets::fbow_jaccard,
    SoftCardinality => sets::soft_cardinality,
    Wmd => transport::wmd,
    Wrd => transport::wrd,
    DynamaxWeighted => sets::dynamax_weighted,
    Blend => blend::dynamax,
    Coverage => sets::coverage,
    CoverageBlend => blend::coverage,
    SameEvent => sets::same_event,
    PolarityBlend => polarity,
    Bm25 => lexical::bm25,
    Ql => lexical::ql,
    Rm3 => lexical::rm3,
    PrfCos => lexical::prf_cos,
    Bicnn => ranker::bicnn,
    Qatt => ranker::qatt,
    Patt => ranker::patt,
    RankerQl => ranker::ranker_ql,
}
