//! A sentence-transformers folder: the settings of the encoder (sizes, pooling, maximum text
//! length) and its tensors.
//!
//! Every number is checked against a limit before it is used.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use candle_core::safetensors::Load;
use candle_core::{DType, Device, Tensor};
use cognate_files::ReadError;
use cognate_files::input::Input;
use cognate_train::TrainError;
use safetensors::SafeTensors;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Maximum size of a settings file.
const SETTINGS_BYTES: usize = 1 << 20;
/// Limits for a configuration, far above every published sentence encoder.
const MAX_HIDDEN: usize = 8192;
const MAX_INNER: usize = 65_536;
const MAX_LAYERS: usize = 128;
const MAX_POSITIONS: usize = 65_536;
const MAX_ENTRIES: usize = 1 << 22;
/// Minimum number of tokens that an encoder must accept: special tokens and some of the text.
const FEWEST_TOKENS: usize = 8;
/// The position of the first token of an MPNet encoder: positions up to the padding index are
/// unused.
const MPNET_FIRST: usize = 2;
/// Number of buckets of relative distances; all published MPNet models have this one.
pub(super) const MPNET_BUCKETS: usize = 32;

/// The supported architectures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Absolute positions and segment embeddings.
    Bert,
    /// Absolute positions, and an attention bias by relative distance that all layers share.
    Mpnet,
}

/// How the vectors of tokens are combined into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    Mean,
    /// The vector of the first token.
    First,
    /// The maximum of each column.
    Max,
}

/// The sizes of an encoder, and how its output is processed.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    pub kind: Kind,
    pub hidden: usize,
    /// Width of the inner layer.
    pub inner: usize,
    pub layers: usize,
    pub heads: usize,
    pub positions: usize,
    pub first_position: usize,
    /// Number of tokens in the table.
    pub entries: usize,
    /// Number of segments in BERT's table.
    pub segments: usize,
    /// Added to a variance before its root is taken.
    pub epsilon: f64,
    pub pooling: Pooling,
    /// Maximum tokens of a text; longer texts are truncated.
    pub longest: usize,
    /// Whether texts are lower-cased before tokenisation.
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

/// The default number of segments.
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
            ("hidden_size", self.hidden_size, MAX_HIDDEN),
            ("intermediate_size", self.intermediate_size, MAX_INNER),
            ("num_hidden_layers", self.num_hidden_layers, MAX_LAYERS),
            ("num_attention_heads", self.num_attention_heads, self.hidden_size.min(MAX_HIDDEN)),
            ("max_position_embeddings", self.max_position_embeddings, MAX_POSITIONS),
            ("vocab_size", self.vocab_size, MAX_ENTRIES),
            ("type_vocab_size", self.type_vocab_size, MAX_HIDDEN),
        ] {
            if number == 0 || number > most {
                return Err(format!("{name}: expected a number from 1 to {most}, found {number}"));
            }
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            let (hidden, heads) = (self.hidden_size, self.num_attention_heads);
            return Err(format!("hidden_size {hidden} is not a multiple of {heads} heads"));
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

/// The folder of the pooling module; all modules must be known ones.
fn list(path: &Path) -> Result<Option<PathBuf>, TrainError> {
    let modules: Vec<Module> = json(path)?;
    let mut pooling = None;
    for module in modules {
        match module.kind.rsplit('.').next() {
            Some("Transformer") if module.path.is_empty() => {}
            Some("Transformer") => {
                let problem = format!(
                    "the encoder is in the folder `{}`; expected it next to this file",
                    module.path
                );
                return Err(wrong(path, problem));
            }
            Some("Pooling") => {
                let inside = Path::new(&module.path);
                let plain = |part| matches!(part, std::path::Component::Normal(_));
                if !inside.components().all(plain) {
                    let problem =
                        format!("the pooling module is outside the folder: `{}`", module.path);
                    return Err(wrong(path, problem));
                }
                pooling = Some(inside.to_owned());
            }
            // Every vector is scaled to length 1 in any case.
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

/// Reads a file of at most `most` bytes.
pub(super) fn small(path: &Path, most: usize) -> Result<Vec<u8>, TrainError> {
    let mut input = Input::open(path)?;
    let bytes = input.peek(most.saturating_add(1))?;
    if bytes.len() > most {
        return Err(wrong(path, format!("more than {most} bytes")));
    }
    Ok(bytes.to_vec())
}

/// The error for a malformed file of the folder.
pub(super) fn wrong(path: &Path, problem: impl Into<String>) -> TrainError {
    TrainError::Data { file: path.display().to_string(), problem: problem.into() }
}

/// Maximum size of the file of tensors.
const MAX_BYTES: u64 = 8 << 30;
/// Prefixes of tensor names that some programs write.
const PREFIXES: [&str; 3] = ["", "bert.", "mpnet."];
/// A tensor that every encoder has.
const ALWAYS: &str = "embeddings.word_embeddings.weight";

pub(super) fn read_tensors(folder: &Path) -> Result<Vec<u8>, TrainError> {
    let path = folder.join("model.safetensors");
    let pickle = folder.join("pytorch_model.bin");
    if !path.exists() && pickle.exists() {
        let problem = "a pickle, which is a program and not read; convert it with \
                       `SentenceTransformer(FOLDER).save(OTHER, safe_serialization=True)`";
        return Err(wrong(&pickle, problem));
    }
    let failed = |source| ReadError::Io { path: path.clone(), source };
    let metadata = path.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(wrong(&path, "not a regular file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(&path).map_err(failed)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(wrong(&path, format!("more than {MAX_BYTES} bytes")));
    }
    Ok(bytes)
}

/// Tensors by the names that BERT and MPNet give them.
pub(super) trait TensorSource {
    /// A tensor with this shape, in single precision.
    fn take(&self, name: &str, shape: &[usize]) -> Result<Tensor, TrainError>;
}

/// The tensors of a safetensors file.
pub(super) struct Tensors<'b> {
    file: &'b Path,
    found: SafeTensors<'b>,
    prefix: &'static str,
    device: &'b Device,
}

impl<'b> Tensors<'b> {
    /// The tensors in `bytes`, which were read from `file`.
    pub(super) fn of(
        bytes: &'b [u8],
        file: &'b Path,
        device: &'b Device,
    ) -> Result<Self, TrainError> {
        let found = SafeTensors::deserialize(bytes)
            .map_err(|error| wrong(file, format!("not a safetensors file: {error}")))?;
        let begins = |prefix: &&str| found.tensor(&format!("{prefix}{ALWAYS}")).is_ok();
        let prefix = PREFIXES.into_iter().find(begins).unwrap_or_default();
        Ok(Self { file, found, prefix, device })
    }
}

impl TensorSource for Tensors<'_> {
    fn take(&self, name: &str, shape: &[usize]) -> Result<Tensor, TrainError> {
        let name = format!("{}{name}", self.prefix);
        let view = self
            .found
            .tensor(&name)
            .map_err(|_| wrong(self.file, format!("no tensor `{name}`")))?;
        if view.shape() != shape {
            let found = view.shape();
            let problem = format!("tensor `{name}`: expected shape {shape:?}, found {found:?}");
            return Err(wrong(self.file, problem));
        }
        let known = [
            safetensors::Dtype::F32,
            safetensors::Dtype::F16,
            safetensors::Dtype::BF16,
            safetensors::Dtype::F64,
        ];
        if !known.contains(&view.dtype()) {
            let found = view.dtype();
            let problem =
                format!("tensor `{name}`: expected floating-point numbers, found {found}");
            return Err(wrong(self.file, problem));
        }
        let tensor = view.load(self.device)?.to_dtype(DType::F32)?;
        // The sum of squares is finite only if every number is.
        if !tensor.sqr()?.sum_all()?.to_vec0::<f32>()?.is_finite() {
            return Err(wrong(
                self.file,
                format!("tensor `{name}` has a value that is not a number"),
            ));
        }
        Ok(tensor)
    }
}
