//! `cognate export`: converts a model file into a folder that model2vec or sentence-transformers
//! can load.
//!
//! Such a folder supports a single method, the mean of the rows of a text's tokens, so it gives the
//! vectors of `avg-cos`. What else a model does with a text is expressed in the tokenizer if
//! possible, and otherwise listed as left behind. Neither library is needed to write the folder.

mod folder;
mod rules;

use std::fmt;
use std::path::PathBuf;

use cognate::model::format::Dtype;
use cognate::model::unknown::Fallback;
use cognate::model::{Frequency, Model, OpenOptions, Unknown};
use serde::Serialize;
use serde_json::json;

use crate::Result;
use crate::export::folder::{Folder, Layout};
use crate::export::rules::{Entries, Rules};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Library {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inflections {
    /// Every word that a suffix rule maps to a listed word.
    All,
    None,
}

#[derive(Debug)]
pub struct ExportOptions {
    pub model: PathBuf,
    pub output: PathBuf,
    pub library: Library,
    pub dtype: Dtype,
    pub inflections: Inflections,
    pub normalize: bool,
}

#[derive(Debug, Serialize)]
pub struct Exported {
    pub path: PathBuf,
    pub library: Library,
    pub fingerprint: String,
    pub words: usize,
    pub inflections: usize,
    pub dims: usize,
    pub dtype: Dtype,
    pub bytes: u64,
    pub method: &'static str,
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

pub fn export(options: &ExportOptions) -> Result<Exported> {
    let model = Model::open(&options.model, &OpenOptions::default())?;
    let entries = Entries::new(&model, options.inflections);
    let rules = Rules::new(model.normalisation());
    let mut exported = Exported {
        path: options.output.clone(),
        library: options.library,
        fingerprint: model.fingerprint().to_owned(),
        words: model.vocabulary().len(),
        inflections: entries.inflections(),
        dims: model.dims(),
        dtype: options.dtype,
        bytes: 0,
        method: "avg-cos",
        left_behind: list_left_behind(&model, options, &rules),
    };
    let mut folder = Folder::begin(&options.output)?;
    let layout = Layout::new(options, &entries);
    let [tensors, tokens] = match options.library {
        Library::Model2vec => ["model.safetensors", "tokenizer.json"],
        Library::SentenceTransformers => {
            ["0_StaticEmbedding/model.safetensors", "0_StaticEmbedding/tokenizer.json"]
        }
    };
    folder.write(tensors, |out| folder::write_tensors(&model, &entries, &layout, out))?;
    folder.write(tokens, |out| rules::write_tokenizer(&model, &entries, &rules, out))?;
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
    let card = folder::read_card(&options.model)?;
    folder.write("README.md", |out| folder::write_card(&exported, &model, card.as_deref(), out))?;
    exported.bytes = folder.bytes();
    exported.path = folder.finish()?;
    Ok(exported)
}

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

/// `max_length` is `null`: with a number, model2vec would ignore later tokens of a text.
fn model2vec_config(options: &ExportOptions, layout: &Layout, model: &Model) -> serde_json::Value {
    let mut config = json!({
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "normalize": options.normalize,
        "max_length": null,
        "hidden_dim": model.dims(),
        "embedding_dtype": layout.number_name(),
    });
    if let Some(rows) = layout.mapped_rows()
        && let Some(config) = config.as_object_mut()
    {
        config.insert("vocabulary_quantization".to_owned(), rows.into());
    }
    config
}

/// model2vec reads `normalize` and `max_length` from this file, too.
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

/// Sections that belong to word look-up, not to a method.
const NO_METHODS: [&str; 2] = ["pieces", "subword"];

fn list_left_behind(model: &Model, options: &ExportOptions, rules: &Rules) -> Vec<String> {
    let mut list = Vec::new();
    methods(model, &mut list);
    unlisted(model, options, &mut list);
    list.extend(rules.left_behind.iter().map(|what| (*what).to_owned()));
    if options.library == Library::SentenceTransformers {
        list.push(
            "a text's unknown words count in its mean, as vectors of zeros: its direction stays, its \
             length shrinks"
                .to_owned(),
        );
    }
    list
}

fn methods(model: &Model, list: &mut Vec<String>) {
    match model.metadata().get("auto_method").filter(|name| *name != "avg-cos") {
        Some(name) => list.push(format!(
            "every method but `avg-cos`, also `{name}`, which `auto` stands for: a folder of this \
             kind knows the mean alone"
        )),
        None => list.push("every method but `avg-cos`".to_owned()),
    }
    if model.frequency() == Frequency::None && model.vocabulary().idf.is_some() {
        list.push("the counts and idf of words: in the mean every word weighs the same".to_owned());
    }
    let sections: Vec<_> =
        model.sections().into_iter().filter(|name| !NO_METHODS.contains(name)).collect();
    if !sections.is_empty() {
        list.push(format!("the sections {}", sections.join(", ")));
    }
}

fn unlisted(model: &Model, options: &ExportOptions, list: &mut Vec<String>) {
    match model.unknown() {
        Unknown::Skip => {}
        Unknown::Subword => list.push(
            "words that are not listed are unknown; the model makes their vectors from parts of them"
                .to_owned(),
        ),
        Unknown::Fallback(rules) => fallback(rules, options, list),
    }
}

fn fallback(rules: &Fallback, options: &ExportOptions, list: &mut Vec<String>) {
    if options.inflections == Inflections::None && !rules.suffixes.is_empty() {
        list.push(
            "inflected forms that are not listed (`quakes` where only `quake` is) are unknown; \
             --inflections all makes entries of them"
                .to_owned(),
        );
    }
    if rules.parts {
        list.push(
            "words with an apostrophe that are not listed are unknown; the model takes their parts"
                .to_owned(),
        );
    }
    if rules.piece_norm.is_some() {
        list.push(
            "other words that are not listed are unknown; the model makes their vectors from pieces \
             of them"
                .to_owned(),
        );
    }
    if rules.hash_norm.is_some() {
        list.push(
            "numbers and names that are not listed are unknown; the model gives each a vector made \
             from its hash"
                .to_owned(),
        );
    }
}
