//! What a sentence-transformers folder says of its encoder: sizes, pooling, longest text.
//!
//! Every number is checked against a bound before anything is made of it. The tensors are read by
//! [`tensors`](super::tensors).

use std::path::{Path, PathBuf};

use cognate_files::input::Input;
use cognate_train::TrainError;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Largest file of settings.
const SETTINGS_BYTES: usize = 1 << 20;
/// Bounds of what a configuration may ask for, far above every published sentence encoder.
const MOST_HIDDEN: usize = 8192;
const MOST_INNER: usize = 65_536;
const MOST_LAYERS: usize = 128;
const MOST_POSITIONS: usize = 65_536;
const MOST_ENTRIES: usize = 1 << 22;
/// Fewest tokens that a text may have: room for the marks around it and some of its own.
const FEWEST_TOKENS: usize = 8;
/// The position of the first token of an MPNet encoder: places up to its padding index are left.
const MPNET_FIRST: usize = 2;
/// Buckets of relative distances of MPNet, of which there is one published choice.
pub(super) const MPNET_BUCKETS: usize = 32;

/// The architectures that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Absolute positions and a type of segment.
    Bert,
    /// Absolute positions, and a bias by relative distance that all layers share.
    Mpnet,
}

/// How the vectors of a text's tokens become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    Mean,
    /// That of the first token.
    First,
    /// The largest number of each column.
    Max,
}

/// The sizes of an encoder and what comes after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    pub kind: Kind,
    pub hidden: usize,
    /// Numbers a token between the two products of a layer.
    pub inner: usize,
    pub layers: usize,
    pub heads: usize,
    /// Rows of the table of positions.
    pub positions: usize,
    /// The position of the first token.
    pub first_position: usize,
    /// Rows of the table of tokens.
    pub entries: usize,
    /// Rows of BERT's table of types of segments.
    pub segments: usize,
    /// What is added to a variance before its root is taken.
    pub epsilon: f64,
    /// How tokens become one vector.
    pub pooling: Pooling,
    /// Tokens of the longest text; the rest is cut off.
    pub longest: usize,
    /// Whether texts are lower-cased before the tokenizer sees them.
    pub lower_case: bool,
}

#[derive(Deserialize)]
struct Config {
    model_type: String,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    max_position_embeddings: usize,
    vocab_size: usize,
    layer_norm_eps: f64,
    hidden_act: String,
    #[serde(default = "two")]
    type_vocab_size: usize,
    #[serde(default)]
    position_embedding_type: Option<String>,
    #[serde(default)]
    relative_attention_num_buckets: Option<usize>,
}

/// An entry of `modules.json`.
#[derive(Deserialize)]
struct Module {
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

/// `config.json` of the pooling module.
#[derive(Deserialize)]
struct PoolingConfig {
    #[serde(default)]
    pooling_mode_cls_token: bool,
    #[serde(default)]
    pooling_mode_mean_tokens: bool,
    #[serde(default)]
    pooling_mode_max_tokens: bool,
    #[serde(default)]
    pooling_mode_mean_sqrt_len_tokens: bool,
    #[serde(default)]
    pooling_mode_weightedmean_tokens: bool,
    #[serde(default)]
    pooling_mode_lasttoken: bool,
}

#[derive(Default, Deserialize)]
struct Lengths {
    #[serde(default)]
    max_seq_length: Option<usize>,
    #[serde(default)]
    do_lower_case: bool,
}

impl Shape {
    /// Reads the settings of a folder.
    pub fn read(folder: &Path) -> Result<Self, TrainError> {
        let modules = folder.join("modules.json");
        let pooling = match list(&modules)? {
            Some(pooling) => read_pooling(&folder.join(pooling).join("config.json"))?,
            None => return Err(wrong(&modules, "no pooling module is listed")),
        };
        let path = folder.join("config.json");
        let config: Config = json(&path)?;
        let lengths = folder.join("sentence_bert_config.json");
        let lengths =
            if lengths.exists() { json::<Lengths>(&lengths)? } else { Lengths::default() };
        config.shape(pooling, &lengths).map_err(|problem| wrong(&path, problem))
    }
}

/// Types of segments where the configuration says nothing of them.
fn two() -> usize {
    2
}

impl Config {
    fn shape(&self, pooling: Pooling, lengths: &Lengths) -> Result<Shape, String> {
        let kind = match self.model_type.as_str() {
            "bert" => Kind::Bert,
            "mpnet" => Kind::Mpnet,
            other => {
                return Err(format!("model_type: expected bert or mpnet, found `{other}`"));
            }
        };
        for (name, number, most) in [
            ("hidden_size", self.hidden_size, MOST_HIDDEN),
            ("intermediate_size", self.intermediate_size, MOST_INNER),
            ("num_hidden_layers", self.num_hidden_layers, MOST_LAYERS),
            ("num_attention_heads", self.num_attention_heads, self.hidden_size.min(MOST_HIDDEN)),
            ("max_position_embeddings", self.max_position_embeddings, MOST_POSITIONS),
            ("vocab_size", self.vocab_size, MOST_ENTRIES),
            ("type_vocab_size", self.type_vocab_size, MOST_HIDDEN),
        ] {
            if number == 0 || number > most {
                return Err(format!("{name}: expected a number from 1 to {most}, found {number}"));
            }
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            let (hidden, heads) = (self.hidden_size, self.num_attention_heads);
            return Err(format!("hidden_size {hidden} is no multiple of {heads} heads"));
        }
        if !(self.layer_norm_eps > 0.0 && self.layer_norm_eps < 1.0) {
            let found = self.layer_norm_eps;
            return Err(format!("layer_norm_eps: expected a small number above 0, found {found}"));
        }
        if self.hidden_act != "gelu" {
            return Err(format!("hidden_act: expected gelu, found `{}`", self.hidden_act));
        }
        if let Some(other) =
            self.position_embedding_type.as_deref().filter(|name| *name != "absolute")
        {
            return Err(format!("position_embedding_type: expected absolute, found `{other}`"));
        }
        let buckets = self.relative_attention_num_buckets.unwrap_or(MPNET_BUCKETS);
        if kind == Kind::Mpnet && buckets != MPNET_BUCKETS {
            return Err(format!(
                "relative_attention_num_buckets: expected {MPNET_BUCKETS}, found {buckets}"
            ));
        }
        let first_position = if kind == Kind::Mpnet { MPNET_FIRST } else { 0 };
        let room = self.max_position_embeddings.saturating_sub(first_position);
        let longest = lengths.max_seq_length.unwrap_or(room).min(room);
        if longest < FEWEST_TOKENS {
            return Err(format!(
                "texts of at most {longest} tokens; expected at least {FEWEST_TOKENS}"
            ));
        }
        Ok(Shape {
            kind,
            hidden: self.hidden_size,
            inner: self.intermediate_size,
            layers: self.num_hidden_layers,
            heads: self.num_attention_heads,
            positions: self.max_position_embeddings,
            first_position,
            entries: self.vocab_size,
            segments: self.type_vocab_size,
            epsilon: self.layer_norm_eps,
            pooling,
            longest,
            lower_case: lengths.do_lower_case,
        })
    }
}

/// The folder of the pooling module; every module must be one that is known.
fn list(path: &Path) -> Result<Option<PathBuf>, TrainError> {
    let modules: Vec<Module> = json(path)?;
    let mut pooling = None;
    for module in modules {
        match module.kind.rsplit('.').next() {
            Some("Transformer") if module.path.is_empty() => {}
            Some("Transformer") => {
                let problem = format!(
                    "the encoder lies in the folder `{}`; expected it beside this file",
                    module.path
                );
                return Err(wrong(path, problem));
            }
            Some("Pooling") => {
                let inside = Path::new(&module.path);
                let plain = |part| matches!(part, std::path::Component::Normal(_));
                if !inside.components().all(plain) {
                    let problem = format!("the pooling module lies outside: `{}`", module.path);
                    return Err(wrong(path, problem));
                }
                pooling = Some(inside.to_owned());
            }
            // Only directions count here, so every vector is brought to length 1 in any case.
            Some("Normalize") => {}
            _ => {
                let problem = format!(
                    "a module of type `{}`; Transformer, Pooling and Normalize are known",
                    module.kind
                );
                return Err(wrong(path, problem));
            }
        }
    }
    Ok(pooling)
}

fn read_pooling(path: &Path) -> Result<Pooling, TrainError> {
    let config: PoolingConfig = json(path)?;
    let unknown = config.pooling_mode_mean_sqrt_len_tokens
        || config.pooling_mode_weightedmean_tokens
        || config.pooling_mode_lasttoken;
    let known = [
        (config.pooling_mode_mean_tokens, Pooling::Mean),
        (config.pooling_mode_cls_token, Pooling::First),
        (config.pooling_mode_max_tokens, Pooling::Max),
    ];
    let mut chosen = known.into_iter().filter(|(chosen, _)| *chosen);
    match (chosen.next(), chosen.next(), unknown) {
        (Some((_, pooling)), None, false) => Ok(pooling),
        _ => Err(wrong(path, "expected one of mean, cls and max pooling, and no other")),
    }
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T, TrainError> {
    let bytes = small(path, SETTINGS_BYTES)?;
    serde_json::from_slice(&bytes).map_err(|error| wrong(path, error.to_string()))
}

/// A file that must not be larger than `most` bytes.
pub(super) fn small(path: &Path, most: usize) -> Result<Vec<u8>, TrainError> {
    let mut input = Input::open(path)?;
    let bytes = input.peek(most.saturating_add(1))?;
    if bytes.len() > most {
        return Err(wrong(path, format!("more than {most} bytes")));
    }
    Ok(bytes.to_vec())
}

/// The error that a file of the folder makes no sense.
pub(super) fn wrong(path: &Path, problem: impl Into<String>) -> TrainError {
    TrainError::Data { file: path.display().to_string(), problem: problem.into() }
}
