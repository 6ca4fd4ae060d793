//! `cognate export`: a model file becomes a folder that model2vec or sentence-transformers loads.
//!
//! Such a folder knows one method, the mean of the rows of a text's tokens, so it gives the vectors of
//! `avg-cos`. Everything else that a model does with a text is written into the tokenizer as far as that
//! goes, and named where it does not. Neither library is needed to write the folder.

mod entries;
mod folder;
mod left_behind;
mod rules;
mod tensors;
mod tokenizer;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use cognate::model::format::Dtype;
use cognate::model::{Model, ModelError, OpenOptions};
use serde::Serialize;
use serde_json::json;

use crate::export::entries::Entries;
use crate::export::folder::Folder;
use crate::export::rules::Rules;
use crate::export::tensors::Layout;

/// The library that a folder is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Library {
    /// model2vec, for Python and for Rust.
    Model2vec,
    /// sentence-transformers, whose layout model2vec for Python reads as well.
    SentenceTransformers,
}

impl Library {
    fn name(self) -> &'static str {
        match self {
            Self::Model2vec => "model2vec",
            Self::SentenceTransformers => "sentence-transformers",
        }
    }
}

/// Which words become entries that the model finds by taking a suffix off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inflections {
    /// Every word that a suffix rule leads to a listed word.
    All,
    None,
}

/// What to export and how.
#[derive(Debug)]
pub struct ExportOptions {
    pub model: PathBuf,
    /// The folder to write; must not exist, or be empty.
    pub output: PathBuf,
    /// The library to write for.
    pub library: Library,
    /// Element type of the rows.
    pub dtype: Dtype,
    /// Entries beside the listed words.
    pub inflections: Inflections,
    /// Whether the library is to scale the vector of a text to length 1.
    pub normalize: bool,
}

#[derive(Debug, Serialize)]
pub struct Exported {
    pub path: PathBuf,
    /// The library it was written for.
    pub library: Library,
    /// The fingerprint of the model.
    pub fingerprint: String,
    pub words: usize,
    /// Inflected forms of listed words.
    pub inflections: usize,
    pub dims: usize,
    /// Element type of the rows.
    pub dtype: Dtype,
    /// Size of all files.
    pub bytes: u64,
    /// The method whose vectors the folder gives.
    pub method: &'static str,
    /// What the model does and the folder does not.
    pub left_behind: Vec<String>,
}

impl fmt::Display for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.path.display())?;
        writeln!(
            f,
            "  for {}: {} words and {} inflected forms × {} dimensions, {}, {} bytes",
            self.library.name(),
            self.words,
            self.inflections,
            self.dims,
            self.dtype.name(),
            self.bytes
        )?;
        writeln!(f, "  gives the vectors of `{}`: the mean of the words' vectors", self.method)?;
        write!(f, "  left behind:")?;
        if self.left_behind.is_empty() {
            write!(f, " nothing")?;
        }
        self.left_behind.iter().try_for_each(|what| write!(f, "\n  - {what}"))
    }
}

pub fn export(options: &ExportOptions) -> Result<Exported, ExportError> {
    let model = Model::open(&options.model, &OpenOptions::default())?;
    let entries = Entries::of(&model, options.inflections);
    let rules = Rules::of(model.normalisation());
    let mut exported = Exported {
        path: options.output.clone(),
        library: options.library,
        fingerprint: model.fingerprint().to_owned(),
        words: model.vocabulary().len(),
        inflections: entries.inflections(),
        dims: model.vectors().dims(),
        dtype: options.dtype,
        bytes: 0,
        method: "avg-cos",
        left_behind: left_behind::list(&model, options, &rules),
    };
    let mut folder = Folder::begin(&options.output)?;
    let layout = Layout::of(options, &entries);
    let [tensors, tokens] = match options.library {
        Library::Model2vec => ["model.safetensors", "tokenizer.json"],
        Library::SentenceTransformers => {
            ["0_StaticEmbedding/model.safetensors", "0_StaticEmbedding/tokenizer.json"]
        }
    };
    folder.write(tensors, |out| tensors::write(&model, &entries, &layout, out))?;
    folder.write(tokens, |out| tokenizer::write(&model, &entries, &rules, out))?;
    folder.write_json("modules.json", &modules(options))?;
    match options.library {
        Library::Model2vec => {
            folder.write_json("config.json", &model2vec_config(options, &layout, &model))?;
        }
        Library::SentenceTransformers => {
            let name = "config_sentence_transformers.json";
            folder.write_json(name, &sentence_transformers_config(options))?;
        }
    }
    folder.write("README.md", |out| folder::write(&exported, &model, out))?;
    exported.bytes = folder.bytes();
    exported.path = folder.finish()?;
    Ok(exported)
}

/// The modules of a sentence transformer: rows by token, their mean, and its length.
fn modules(options: &ExportOptions) -> serde_json::Value {
    let path = match options.library {
        Library::Model2vec => "",
        Library::SentenceTransformers => "0_StaticEmbedding",
    };
    let module = |index: usize, path: &str, kind: &str| {
        json!({
            "idx": index,
            "name": index.to_string(),
            "path": path,
            "type": format!("sentence_transformers.models.{kind}"),
        })
    };
    let mut modules = vec![module(0, path, "StaticEmbedding")];
    if options.normalize {
        modules.push(module(1, "1_Normalize", "Normalize"));
    }
    modules.into()
}

/// `max_length` is `null`: model2vec would read the first 512 tokens of a text only.
fn model2vec_config(options: &ExportOptions, layout: &Layout, model: &Model) -> serde_json::Value {
    let mut config = json!({
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "normalize": options.normalize,
        "max_length": null,
        "hidden_dim": model.vectors().dims(),
        "embedding_dtype": layout.number_name(),
    });
    if let Some(rows) = layout.mapped_rows()
        && let Some(config) = config.as_object_mut()
    {
        config.insert("vocabulary_quantization".to_owned(), rows.into());
    }
    config
}

/// model2vec reads `normalize` and `max_length` here, too.
fn sentence_transformers_config(options: &ExportOptions) -> serde_json::Value {
    json!({
        "model_type": "SentenceTransformer",
        "__version__": {},
        "prompts": {},
        "default_prompt_name": null,
        "similarity_fn_name": "cosine",
        "normalize": options.normalize,
        "max_length": null,
    })
}

/// Why nothing was exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The model could not be read.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Options that cannot be carried out.
    #[error("{0}")]
    Options(String),
    /// A file or folder could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl ExportError {
    /// An error of the system at a path.
    fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}
