//! What the document says of bodies, where the types that read them say less: lengths, patterns,
//! names of methods. Nothing is read by these types; a test holds them to the ones that are.

use utoipa::PartialSchema;
use utoipa::ToSchema;
use utoipa::openapi::ObjectBuilder;
use utoipa::openapi::RefOr;
use utoipa::openapi::Schema;
use utoipa::openapi::Type;

use crate::http::request::encoding::Encoding;
use crate::http::request::query::Oov;
use crate::methods::Info;
use crate::methods::Kind;
use crate::methods::Method;

/// A text: not empty, at most 8192 characters (setting `text_chars`) and 512 tokens (setting
/// `tokens_per_text`).
#[derive(ToSchema)]
#[schema(min_length = 1, max_length = 8192, pattern = r"\S")]
#[allow(dead_code)]
pub struct TextSchema(String);

/// Names of methods, as an enumeration.
macro_rules! method_names {
    ($name:ident, $doc:literal, $wanted:expr) => {
        #[doc = $doc]
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let wanted: fn(&Info) -> bool = $wanted;
                let infos = Method::ALL.iter().map(|method| method.info());
                let names = infos.filter(|info| wanted(info)).map(|info| info.name);
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .enum_values(Some(std::iter::once("auto").chain(names)))
                    .description(Some($doc))
                    .into()
            }
        }

        impl ToSchema for $name {}
    };
}

method_names!(
    PairMethod,
    "A method that scores pairs. `auto` is the model's choice; case and `_` for `-` do not matter.",
    |info| info.kind == Kind::Similarity
);
method_names!(
    VectorMethod,
    "A method that has a vector of one text. `auto` is the model's choice.",
    |info| info.embeds
);
method_names!(
    ExplainMethod,
    "A method whose score of two texts can be explained: any but those that score whole lists. \
     `auto` is the model's choice; case and `_` for `-` do not matter.",
    |_| true
);
method_names!(
    RankMethod,
    "Any method. `auto` is the model's choice; case and `_` for `-` do not matter.",
    |_| true
);

/// What two vectors are compared by: the cosine of their angle, or 1 / (1 + their distance).
#[derive(ToSchema, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code)]
pub enum MeasureName {
    /// The cosine of their angle.
    Cosine,
    /// 1 / (1 + distance), so that larger is always more alike.
    Euclidean,
}

/// The score from which a pair counts as related.
#[derive(ToSchema)]
#[allow(dead_code)]
#[schema(title = "Threshold")]
#[serde(untagged)]
pub enum ThresholdSchema {
    /// This one.
    Number(ScoreSchema),
    /// The threshold that was calibrated for the model, the method and the measure.
    Word(Calibrated),
}

/// A score.
#[derive(ToSchema)]
#[schema(minimum = -1e6, maximum = 1e6)]
#[allow(dead_code)]
pub struct ScoreSchema(f64);

/// The word that may stand in place of a threshold.
#[derive(ToSchema, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code)]
pub enum Calibrated {
    /// The threshold that `cognate eval calibrate` found.
    Calibrated,
}

/// The body of `POST /similarity`.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code)]
pub enum SimilarityBody {
    /// Many pairs.
    Many(PairsBody),
    /// One pair.
    One(PairBody),
}

/// Many pairs.
#[derive(ToSchema)]
#[schema(title = "Pairs")]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
pub struct PairsBody {
    /// Pairs of texts.
    #[schema(min_items = 1, max_items = 10000)]
    pairs: Vec<PairSchema>,
    /// A model's name; without one the first.
    model: Option<String>,
    method: Option<PairMethod>,
    measure: Option<MeasureName>,
    oov: Option<Oov>,
    /// Cut a text with too many tokens rather than refuse it.
    truncate: Option<bool>,
    threshold: Option<ThresholdSchema>,
}

/// Two texts.
#[derive(ToSchema)]
#[schema(title = "TwoTexts", min_items = 2, max_items = 2)]
#[allow(dead_code)]
pub struct PairSchema(Vec<TextSchema>);

/// One pair.
#[derive(ToSchema)]
#[schema(title = "Pair")]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
pub struct PairBody {
    /// The first text.
    a: TextSchema,
    /// The second text.
    b: TextSchema,
    /// A model's name; without one the first.
    model: Option<String>,
    method: Option<PairMethod>,
    measure: Option<MeasureName>,
    oov: Option<Oov>,
    /// Cut a text with too many tokens rather than refuse it.
    truncate: Option<bool>,
    threshold: Option<ThresholdSchema>,
}

/// The body of `POST /explain`.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
pub struct ExplainBody {
    /// The first text; for a method that only ranks, the query.
    a: TextSchema,
    /// The second text; for a method that only ranks, the post.
    b: TextSchema,
    /// A model's name; without one the first.
    model: Option<String>,
    method: Option<ExplainMethod>,
    measure: Option<MeasureName>,
    oov: Option<Oov>,
    /// Cut a text with too many tokens rather than refuse it.
    truncate: Option<bool>,
}

/// The body of `POST /embed`.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
pub struct EmbedBody {
    texts: TextsSchema,
    /// A model's name; without one the first.
    model: Option<String>,
    method: Option<VectorMethod>,
    /// Give every vector length 1.
    normalize: Option<bool>,
    encoding: Option<Encoding>,
    oov: Option<Oov>,
    /// Cut a text with too many tokens rather than refuse it.
    truncate: Option<bool>,
}

/// One text or many.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code)]
pub enum TextsSchema {
    /// One.
    One(TextSchema),
    /// Many.
    Many(TextListSchema),
}

/// Texts.
#[derive(ToSchema)]
#[schema(min_items = 1, max_items = 10000)]
#[allow(dead_code)]
pub struct TextListSchema(Vec<TextSchema>);

/// The body of `POST /rank`.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
pub struct RankBody {
    /// What the candidates are compared with.
    query: TextSchema,
    /// The candidates.
    #[schema(min_items = 1, max_items = 10000)]
    candidates: Vec<CandidateSchema>,
    /// A model's name; without one the first.
    model: Option<String>,
    method: Option<RankMethod>,
    measure: Option<MeasureName>,
    /// Most results wanted.
    #[schema(minimum = 1, maximum = 100000)]
    top_k: Option<u32>,
    /// The least score wanted.
    min_score: Option<ScoreSchema>,
    /// Repeat each result's text.
    return_text: Option<bool>,
    oov: Option<Oov>,
    /// Cut a text with too many tokens rather than refuse it.
    truncate: Option<bool>,
}

/// A text to be ranked, with or without a name of its own.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code)]
pub enum CandidateSchema {
    /// A text.
    Text(TextSchema),
    /// A text and its name.
    Named(NamedCandidateSchema),
}

/// A text and its name.
#[derive(ToSchema)]
#[schema(title = "NamedCandidate")]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
pub struct NamedCandidateSchema {
    id: Option<IdSchema>,
    text: TextSchema,
}

/// A name that is given back as it came.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code)]
pub enum IdSchema {
    /// A string.
    Text(String),
    /// A whole number.
    Number(i64),
}

/// A vector as it is sent.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code)]
pub enum Vector {
    /// With `encoding` `float`.
    Numbers(Vec<f32>),
    /// With `encoding` `base64`: 32-bit floats, little end first.
    Base64(String),
}

/// A word that a vector was found for.
#[derive(ToSchema)]
#[allow(dead_code)]
pub struct WordSchema {
    /// The token it comes from, as it was looked up.
    token: String,
    /// Bytes of the text that the token comes from: first and end.
    span: Vec<u32>,
    /// The vocabulary's word; `null` where the vector was made for this text.
    word: Option<String>,
    /// How it was found.
    #[schema(value_type = String)]
    found: (),
    /// Its idf, where the model has one.
    idf: Option<f32>,
    /// The length of its vector.
    norm: f32,
    /// What it adds to the score, where the score comes apart.
    share: Option<f32>,
}

/// A token that no word was found for.
#[derive(ToSchema)]
#[allow(dead_code)]
pub struct UnknownSchema {
    /// The token, as it was looked up.
    token: String,
    /// What it adds to the score, for methods that read tokens.
    share: Option<f32>,
}
