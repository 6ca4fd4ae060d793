//! `cognate inspect`: shows the contents of a model file, and how it looks up a text.
//!
//! Everything shown is read by the functions that serving uses. Scores are not shown.

use std::path::Path;
use std::{fmt, io};

use cognate::methods::Auto;
use cognate::model::format::{AUTO_METHOD, Dtype};
use cognate::model::phrase::Found;
use cognate::model::unknown::Fallback;
use cognate::model::unlisted::SUBWORD_SECTION;
use cognate::model::writer::{Draft, Table};
use cognate::model::{Frequency, Model, ModelError, OpenOptions, Phrase, Unknown, WordId};
use cognate::text::Normalisation;
use cognate_kernels::vector;
use cognate_kernels::vector::Row;
use indicatif::HumanCount;
use serde::Serialize;
use serde_json::Value;

use crate::readers::Subword;
use crate::transform::Matrix;
use crate::{PackError, PackOptions, Result};

#[derive(Debug)]
pub struct InspectOptions {
    pub open: OpenOptions,
    pub texts: Vec<String>,
    pub neighbours: usize,
}

#[derive(Debug, Serialize)]
pub struct Inspection {
    pub file: String,
    pub bytes: u64,
    pub fingerprint: String,
    pub words: usize,
    pub dims: usize,
    pub dtype: Dtype,
    pub frequency: Frequency,
    pub licence: Option<String>,
    pub languages: Vec<String>,
    pub auto_method: Option<String>,
    pub auto: &'static str,
    pub auto_because: &'static str,
    pub corpus_tokens: Option<u64>,
    pub corpus_documents: Option<u64>,
    pub counted_words: usize,
    pub has_idf: bool,
    pub normalisation: cognate::text::Normalisation,
    pub unknown: cognate::model::Unknown,
    pub sections: Vec<SectionView>,
    pub tables: Vec<TableView>,
    pub created_by: Option<String>,
    pub texts: Vec<TextView>,
}

#[derive(Debug, Serialize)]
pub struct SectionView {
    pub name: String,
    pub settings: serde_json::Value,
}

#[derive(Debug, Serialize)]
pub struct TableView {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<u64>,
}

#[derive(Debug, Serialize)]
pub struct TextView {
    pub text: String,
    pub tokens: Vec<TokenView>,
}

#[derive(Debug, Serialize)]
pub struct TokenView {
    pub token: String,
    pub span: [u32; 2],
    /// The words found for it; empty if it is unknown.
    pub words: Vec<WordView>,
}

#[derive(Debug, Serialize)]
pub struct WordView {
    /// The word; `None` if the vector was composed for this text.
    pub word: Option<String>,
    pub found: Found,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<String>,
    pub id: Option<u32>,
    pub count: Option<u64>,
    pub idf: Option<f32>,
    pub norm: f32,
    pub neighbours: Vec<Neighbour>,
}

pub fn inspect(path: &Path, options: &InspectOptions) -> Result<Inspection, ModelError> {
    let model = Model::open(path, &options.open)?;
    let vocabulary = model.vocabulary();
    let text = |key: &str| model.metadata().get(key).cloned();
    let counts = vocabulary.counts.unwrap_or_default();
    let sections = model.sections().into_iter().map(|name| SectionView {
        name: name.to_owned(),
        settings: model
            .section(name)
            .and_then(|section| serde_json::from_str(section.settings).ok())
            .unwrap_or(serde_json::Value::Null),
    });
    let tables = model.tensors().map(|(tensor, _)| TableView {
        name: tensor.name.clone(),
        dtype: tensor.dtype,
        shape: tensor.shape.clone(),
    });
    let auto = Auto::from_model(&model);
    Ok(Inspection {
        file: path.display().to_string(),
        bytes: model.bytes(),
        fingerprint: model.fingerprint().to_owned(),
        words: vocabulary.len(),
        dims: model.dims(),
        dtype: model.dtype(),
        frequency: model.frequency(),
        licence: text("licence"),
        languages: model.languages().map(str::to_owned).collect(),
        auto_method: text(AUTO_METHOD),
        auto: auto.method.name(),
        auto_because: auto.because,
        corpus_tokens: vocabulary.corpus.tokens,
        corpus_documents: vocabulary.corpus.documents,
        counted_words: counts.iter().filter(|&&count| count > 0).count(),
        has_idf: vocabulary.idf.is_some(),
        normalisation: model.normalisation().clone(),
        unknown: model.unknown().clone(),
        sections: sections.collect(),
        tables: tables.collect(),
        created_by: text("created_by"),
        texts: look_up(&model, options),
    })
}

fn look_up(model: &Model, options: &InspectOptions) -> Vec<TextView> {
    let norms = if options.texts.is_empty() { Vec::new() } else { norms(model) };
    let mut phrase = Phrase::new(model);
    let view = |text: &String| {
        phrase.read(text);
        let tokens = phrase.tokens().iter().enumerate().map(|(position, (token, place))| {
            let words = phrase.origins().zip(phrase.words());
            let words = words.filter(|(origin, _)| origin.token as usize == position);
            TokenView {
                token: token.to_owned(),
                span: [place.span.start, place.span.end],
                words: words
                    .map(|(origin, &word)| {
                        let vocabulary = model.vocabulary();
                        let (row, id) = (phrase.row(word), phrase.id(word));
                        let counts = vocabulary.counts;
                        WordView {
                            word: id.map(|id| vocabulary.word(id).to_owned()),
                            found: origin.found,
                            pieces: phrase.pieces(origin).into_iter().map(str::to_owned).collect(),
                            id,
                            count: id.and_then(|id| counts?.get(id as usize).copied()),
                            idf: phrase.idf(word),
                            norm: cognate_kernels::vector::norm(row),
                            neighbours: nearest(model, &norms, row, id, options.neighbours),
                        }
                    })
                    .collect(),
            }
        });
        TextView { text: text.clone(), tokens: tokens.collect() }
    };
    options.texts.iter().map(view).collect()
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Neighbour {
    pub word: String,
    pub cosine: f32,
}

pub(crate) fn norms(model: &Model) -> Vec<f32> {
    let vectors = model.vectors();
    let ids = 0..vectors.len() as WordId;
    ids.map(|id| vectors.row(id).map_or(0.0, vector::norm)).collect()
}

/// Returns the `most` words nearest to `row` by cosine, best first, without the row's own word.
pub(crate) fn nearest(
    model: &Model,
    norms: &[f32],
    row: Row<'_>,
    own: Option<WordId>,
    most: usize,
) -> Vec<Neighbour> {
    let vectors = model.vectors();
    let length = vector::norm(row);
    let mut best: Vec<(f32, WordId)> = Vec::with_capacity(most.min(norms.len()) + 1);
    for (id, &norm) in norms.iter().enumerate() {
        let id = id as WordId;
        let Some(other) = vectors.row(id).filter(|_| Some(id) != own && norm > 0.0 && most > 0)
        else {
            continue;
        };
        let cosine = (vector::dot(row, other) / (length * norm)).clamp(-1.0, 1.0);
        if cosine.is_nan() || best.len() == most && best.last().is_some_and(|last| cosine <= last.0)
        {
            continue;
        }
        let place = best.partition_point(|kept| kept.0 >= cosine);
        best.insert(place, (cosine, id));
        best.truncate(most);
    }
    let vocabulary = model.vocabulary();
    let named = |(cosine, id)| Neighbour { word: vocabulary.word(id).to_owned(), cosine };
    best.into_iter().map(named).collect()
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.bytes as f64 / 1e6;
        writeln!(f, "{}", self.file)?;
        writeln!(f, "  fingerprint    {}", self.fingerprint)?;
        writeln!(
            f,
            "  vectors        {} words × {} dimensions, {}, {megabytes:.1} MB",
            HumanCount(self.words as u64),
            self.dims,
            self.dtype.name(),
        )?;
        match self.corpus_tokens {
            Some(tokens) => {
                let words = HumanCount(self.counted_words as u64);
                write!(f, "  counts         {words} words in {} tokens", HumanCount(tokens))?;
                match self.corpus_documents {
                    Some(documents) => writeln!(f, ", {} documents", HumanCount(documents))?,
                    None => writeln!(f)?,
                }
            }
            None => writeln!(f, "  counts         none")?,
        }
        writeln!(f, "  frequency      {}", self.frequency.name())?;
        let preset = Normalisation::PRESETS
            .iter()
            .find(|name| Normalisation::preset(name).as_ref() == Some(&self.normalisation));
        match preset {
            Some(name) => writeln!(f, "  normalisation  {name}")?,
            None => writeln!(f, "  normalisation  {}", one_line(&self.normalisation))?,
        }
        writeln!(f, "  unknown words  {}", of_unknown(&self.unknown))?;
        writeln!(f, "  auto           {}: {}", self.auto, self.auto_because)?;
        if !self.languages.is_empty() {
            writeln!(f, "  languages      {}", self.languages.join(" "))?;
        }
        writeln!(f, "  licence        {}", self.licence.as_deref().unwrap_or("not stated"))?;
        writeln!(f, "  created by     {}", self.created_by.as_deref().unwrap_or("not stated"))?;
        for section in &self.sections {
            writeln!(f, "  section        {}{}", section.name, in_short(&section.settings))?;
        }
        let tables =
            self.tables.iter().map(|t| format!("{} {} {:?}", t.name, t.dtype.name(), t.shape));
        writeln!(f, "  tables         {}", tables.collect::<Vec<_>>().join(", "))?;
        self.texts.iter().try_for_each(|text| write!(f, "\n{text}"))
    }
}

impl fmt::Display for TextView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.text)?;
        for token in &self.tokens {
            if token.words.is_empty() {
                writeln!(f, "  {:<16} unknown", token.token)?;
            }
            for word in &token.words {
                writeln!(f, "  {:<16} {word}", token.token)?;
            }
        }
        if self.tokens.is_empty() {
            writeln!(f, "  (no tokens)")?;
        }
        Ok(())
    }
}

impl fmt::Display for WordView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.word.as_deref().unwrap_or("");
        let how = match self.found {
            Found::Listed => "known".to_owned(),
            Found::Shortened => format!("known as {name}, shortened"),
            Found::Stem => format!("known by its stem {name}"),
            Found::Part => format!("known in part: {name}"),
            Found::NGrams => "vector from its n-grams".to_owned(),
            Found::Pieces => format!("vector from its pieces {}", self.pieces.join(" ")),
            Found::Hash => "vector from its hash".to_owned(),
        };
        write!(f, "{how:<28} length {:.3}", self.norm)?;
        if let Some(idf) = self.idf {
            write!(f, "  idf {idf:.2}")?;
        }
        if !self.neighbours.is_empty() {
            let near = self.neighbours.iter().map(|n| format!("{} {:.2}", n.word, n.cosine));
            write!(f, "  near: {}", near.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}

/// Describes the rule for words that are not listed.
fn of_unknown(unknown: &Unknown) -> String {
    let Fallback { suffixes, parts, piece_norm, hash_norm, .. } = match unknown {
        Unknown::Skip => return "left out".to_owned(),
        Unknown::Subword => return "a vector from parts of the word".to_owned(),
        Unknown::Fallback(rules) => rules,
    };
    let tried = [
        (!suffixes.is_empty(), "the stem"),
        (*parts, "parts around an apostrophe"),
        (piece_norm.is_some(), "pieces"),
        (hash_norm.is_some(), "a vector from the hash"),
    ];
    let tried = tried.iter().filter(|(is, _)| *is).map(|(_, what)| *what);
    tried.collect::<Vec<_>>().join(", then ")
}

/// A section's settings on one line; of nested settings only the names. `--json` shows everything.
fn in_short(settings: &Value) -> String {
    let Some(fields) = settings.as_object() else { return String::new() };
    let nested = |value: &Value| value.is_object() || value.is_array();
    let plain = fields.iter().filter(|(_, value)| !nested(value));
    let mut parts: Vec<String> = plain.map(|(name, value)| format!("{name} {value}")).collect();
    for (name, value) in fields.iter().filter(|(_, value)| nested(value)) {
        let inner = value.as_object().map(|inner| inner.keys().cloned().collect::<Vec<_>>());
        parts.push(match inner {
            // For a map of similar entries, such as thresholds, the names are enough.
            Some(_) if fields.values().all(Value::is_object) => name.clone(),
            Some(names) => format!("{name} ({})", names.join(", ")),
            None => format!("{name} (…)"),
        });
    }
    format!(": {}", parts.join(", "))
}

fn one_line(settings: &impl serde::Serialize) -> String {
    serde_json::to_string(settings).unwrap_or_default()
}

/// Fills in the metadata, except for sizes. `digest` is that of the source.
pub(crate) fn describe(
    draft: &mut Draft<'_>,
    options: &PackOptions,
    unknown: &Unknown,
    dims: usize,
    digest: String,
) -> Result<()> {
    let json = |what: &str, text: serde_json::Result<String>| {
        text.map_err(|error| PackError::Options(format!("{what}: {error}")))
    };
    let mut set = |key: &str, value: String| draft.metadata.insert(key.to_owned(), value);
    set("dim", dims.to_string());
    set("normalisation", json("normalisation", serde_json::to_string(&options.normalisation))?);
    set("unknown", json("unknown", serde_json::to_string(unknown))?);
    set("frequency", options.frequency.name().to_owned());
    set("created_by", concat!("cognate ", env!("CARGO_PKG_VERSION")).to_owned());
    set("source_digest", digest);
    if let Some(licence) = &options.licence {
        set("licence", licence.clone());
    }
    if let Some(method) = &options.auto_method {
        set(AUTO_METHOD, method.clone());
    }
    Ok(())
}

pub(crate) fn push_subword<'a>(
    draft: &mut Draft<'a>,
    rule: Subword,
    buckets: &'a Matrix<'_>,
    scores: &'a [f64],
    kept: Option<&'a [u32]>,
) -> io::Result<()> {
    let (settings, tables) = match rule {
        Subword::NGrams { .. } => {
            let mut tables = buckets.tables("buckets", "scales");
            tables.extend(kept.map(|kept| Table::new("kept", Dtype::U32, &[kept.len()], kept)));
            (rule, tables)
        }
        Subword::WordPiece { .. } => (rule, Vec::new()),
        Subword::Unigram { .. } => {
            (rule, vec![Table::new("scores", Dtype::U64, &[scores.len()], scores)])
        }
    };
    draft.set_section(SUBWORD_SECTION, serde_json::to_string(&settings)?, tables);
    Ok(())
}

struct Sign {
    preset: &'static str,
    listed: [&'static str; 2],
    lacking: Option<&'static str>,
}

/// The first sign that applies is used, so the most specific signs come first.
const SIGNS: [Sign; 5] = [
    Sign { preset: "glove-twitter", listed: ["<user>", "<hashtag>"], lacking: None },
    Sign { preset: "bert", listed: ["[UNK]", "[CLS]"], lacking: None },
    Sign { preset: "word2vec-news", listed: ["##", "The"], lacking: None },
    Sign { preset: "glove-6b", listed: ["'s", "n't"], lacking: Some("The") },
    Sign { preset: "fasttext", listed: ["the", "The"], lacking: None },
];

/// Warnings before a model is used, a sentence each. Rules that differ from the default are taken
/// as chosen with care.
pub fn hints(model: &Model) -> Vec<String> {
    let listed = |word: &str| model.vocabulary().lookup(word).is_some();
    let mut hints = Vec::new();
    if Normalisation::preset("plain").as_ref() == Some(model.normalisation()) {
        let found = SIGNS
            .iter()
            .find(|sign| sign.listed.into_iter().all(listed) && !sign.lacking.is_some_and(listed));
        if let Some(Sign { preset, listed: [one, other], .. }) = found {
            hints.push(format!(
                "the words `{one}` and `{other}` suggest --normalisation {preset}; the default, \
                 plain, cuts texts otherwise and does not find such words"
            ));
        }
    }
    if model.dims() == 1 {
        hints.push(
            "one number a word is no vector; a table of counts goes with --counts".to_owned(),
        );
    }
    hints
}
