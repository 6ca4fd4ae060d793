//! How the command line spells what can be chosen from a list, and what help says of each choice.
//! The types themselves know nothing of flags.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::bulk::OnError;
use crate::engine::Measure;
use crate::eval::View;
use crate::export::{Inflections, Library};
use crate::http::api::rank::LikeStrategy;
use crate::pack::counts::Documents;
use crate::pack::intake::{BadUtf8, FlawedRows};
use crate::pack::transform::Cut;
#[cfg(feature = "train-ranker")]
use crate::train::ranker::Encoder;
#[cfg(feature = "train-ranker")]
use crate::train::ranker::Goal;
#[cfg(feature = "train-ranker")]
use crate::train::ranker::batch::Grouping;
use crate::train::vectors::Objective;
use crate::train::vectors::siamese::Others;
use crate::train::weights::Loss;

macro_rules! choices {
    ($($(#[$condition:meta])* $type:ident { $($variant:ident = $name:literal $(: $help:literal)?,)+ })+) => {$(
        $(#[$condition])*
        impl ValueEnum for $type {
            fn value_variants<'a>() -> &'a [Self] {
                &[$(Self::$variant),+]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                Some(match self {
                    $(Self::$variant => PossibleValue::new($name)$(.help($help))?,)+
                })
            }
        }
    )+};
}

choices! {
    BadUtf8 {
        Strict = "strict": "Stop, naming the row",
        Lossy = "lossy": "Replace the bad bytes by U+FFFD",
        Skip = "skip": "Leave the row out and count it",
    }
    Cut {
        Pca = "pca": "Rotate rows to their principal axes, keep the largest",
        Truncate = "truncate": "Keep the first dimensions, for vectors that come in that order",
    }
    Inflections {
        All = "all": "Every form that a suffix rule leads to a listed word",
        None = "none": "Listed words alone",
    }
    LikeStrategy {
        Best = "best": "The best of the scores",
        Mean = "mean": "The mean of the scores",
        Sum = "sum": "The sum of the scores",
    }
    Library {
        Model2vec = "model2vec",
        SentenceTransformers = "sentence-transformers",
    }
    Documents {
        Line = "line": "Every line is a document",
        Paragraph = "paragraph": "Documents are separated by an empty line",
    }
    OnError {
        Fail = "fail": "Stop, naming the row",
        Null = "null": "Leave its score empty, and count it",
    }
    #[cfg(feature = "train-ranker")]
    Encoder {
        Bicnn = "bicnn": "Query and post apart",
        Qatt = "qatt": "And the post through kernels made for each word of the query",
        Patt = "patt": "And the post with each word weighted by its cosine to each word of the query",
    }
    FlawedRows {
        Refuse = "refuse": "Stop, naming the row",
        Drop = "drop": "Leave the row out and count it",
    }
    #[cfg(feature = "train-ranker")]
    Goal {
        Map = "map": "Mean average precision",
        P30 = "p30": "Precision among the first thirty",
    }
    #[cfg(feature = "train-ranker")]
    Grouping {
        Query = "query": "Posts of one query, so that a step is about what tells them apart",
        Mixed = "mixed": "Posts of any queries",
    }
    Loss {
        Median = "median": "Push related pairs below the batch's median distance, others above",
        Contrastive = "contrastive": "Push related pairs together, others apart",
    }
    Measure {
        Cosine = "cosine",
        Euclidean = "euclidean",
    }
    Objective {
        SiameseCbow = "siamese-cbow":
            "Vectors made for being averaged: neighbouring sentences against others",
        Cbow = "cbow": "word2vec: a word from the mean of its neighbours",
        SkipGram = "skip-gram": "word2vec: a word from each of its neighbours",
    }
    Others {
        Document = "document":
            "The same document, near but not next to the centre: what tells neighbours from these is \
             what sentences say, not what the document is about",
        Text = "text":
            "Other documents, as in the paper: what a document is about is enough to tell neighbours \
             from these, in novels as in an encyclopaedia",
    }
    View {
        Files = "files": "Each file; a year's figure is the mean over its files",
        Mteb = "mteb": "All pairs of a year in one list, as tables of published models have it",
    }
}
