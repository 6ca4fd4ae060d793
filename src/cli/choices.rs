//! How the command line spells the choices of a list, and their help. The types themselves know
//! nothing of flags.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use cognate::engine::{Measure, Opposites, Strategy};
use cognate::model::format::Dtype;
use cognate::text::{Bylines, Normalisation};
use cognate::window::stream::AddPolicy;
use cognate::window::usual::Preset;
#[cfg(feature = "eval")]
use cognate_eval::View;
use cognate_pack::counts::Documents;
use cognate_pack::export::{Inflections, Library};
use cognate_pack::intake::{BadUtf8, FlawedRows};
use cognate_pack::transform::Cut;
use cognate_rows::bulk::OnError;
#[cfg(feature = "train-ranker")]
use cognate_train::ranker::data::Grouping;
#[cfg(feature = "train-ranker")]
use cognate_train::ranker::{Encoder, Goal};
#[cfg(feature = "train")]
use cognate_train::vectors::Objective;
#[cfg(feature = "train")]
use cognate_train::vectors::siamese::Others;
#[cfg(feature = "train")]
use cognate_train::weights::Loss;

use crate::http::request::fields::OpposedPolicy;

pub(super) trait Choice: Clone + Send + Sync + 'static {
    const ALL: &[(Self, &str, Option<&str>)];
}

pub(super) fn choice<T: Choice>() -> impl TypedValueParser<Value = T> {
    let possible = T::ALL.iter().map(|(_, name, help)| match help {
        Some(help) => PossibleValue::new(*name).help(*help),
        None => PossibleValue::new(*name),
    });
    PossibleValuesParser::new(possible).try_map(|given| {
        let chosen = T::ALL.iter().find(|(_, name, _)| *name == given);
        chosen.map(|(choice, ..)| choice.clone()).ok_or("not one of the choices")
    })
}

/// Rules that turn texts into words, by the name of their preset.
pub(super) fn normalisation() -> impl TypedValueParser<Value = Normalisation> {
    PossibleValuesParser::new(Normalisation::PRESETS)
        .try_map(|name| Normalisation::preset(&name).ok_or("no such preset"))
}

macro_rules! help {
    () => {
        None
    };
    ($help:literal) => {
        Some($help)
    };
}

macro_rules! choices {
    ($($(#[$condition:meta])* $type:ident { $($variant:ident = $name:literal $(: $help:literal)?,)+ })+) => {$(
        $(#[$condition])*
        impl Choice for $type {
            const ALL: &[(Self, &str, Option<&str>)] =
                &[$((Self::$variant, $name, help!($($help)?))),+];
        }
    )+};
}

choices! {
    AddPolicy {
        All = "all",
        New = "new",
        None = "none",
    }
    BadUtf8 {
        Strict = "strict": "Stop, naming the row",
        Lossy = "lossy": "Replace the bad bytes by U+FFFD",
        Skip = "skip": "Leave the row out and count it",
    }
    Bylines {
        Keep = "keep": "They are words like any other",
        Drop = "drop": "They are left out",
    }
    Cut {
        Pca = "pca": "Rotate rows to their principal axes, keep the largest",
        Truncate = "truncate": "Keep the first dimensions, for vectors that come in that order",
    }
    Preset {
        Topics = "topics": "Topics of any size among noise, such as posts by keyword or place",
        Stories = "stories": "Stories of a few posts each, such as headlines or posts with an address",
    }
    Dtype {
        F32 = "f32",
        F16 = "f16",
        I8 = "int8",
    }
    Inflections {
        All = "all": "Every form that a suffix rule leads to a listed word",
        None = "none": "Listed words alone",
    }
    Opposites {
        Count = "count": "It is; a method that does not count opposites is refused",
        WithoutNames = "without_names": "It is, unless they differ in a name alone",
        Ignore = "ignore": "It is not: the score is that of the method without opposites",
    }
    OpposedPolicy {
        Drop = "drop": "They are left out",
    }
    Strategy {
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
    #[cfg(feature = "train")]
    Loss {
        Median = "median": "Push related pairs below the batch's median distance, others above",
        Contrastive = "contrastive": "Push related pairs together, others apart",
    }
    Measure {
        Cosine = "cosine",
        Euclidean = "euclidean",
    }
    #[cfg(feature = "train")]
    Objective {
        SiameseCbow = "siamese-cbow":
            "Vectors made for being averaged: neighbouring sentences against others",
        Cbow = "cbow": "word2vec: a word from the mean of its neighbours",
        SkipGram = "skip-gram": "word2vec: a word from each of its neighbours",
    }
    #[cfg(feature = "train")]
    Others {
        Document = "document":
            "The same document, near but not next to the centre: what tells neighbours from these is \
             what sentences say, not what the document is about",
        Text = "text":
            "Other documents, as in the paper: what a document is about is enough to tell neighbours \
             from these, in novels as in an encyclopaedia",
    }
    #[cfg(feature = "eval")]
    View {
        Files = "files": "Each file; a year's figure is the mean over its files",
        Mteb = "mteb": "All pairs of a year in one list, as tables of published models have it",
    }
}
