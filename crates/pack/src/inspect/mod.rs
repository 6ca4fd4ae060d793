//! `cognate inspect`: what is inside a model file, and what a text becomes under it.
//!
//! Everything shown is read by the same functions that serving uses. Scores are not its part.

mod terminal;
use std::path::Path;

use cognate::methods::Auto;
use cognate::model::format::{AUTO_METHOD, Dtype};
use cognate::model::phrase::Found;
use cognate::model::{Frequency, Model, ModelError, OpenOptions, Phrase, WordId};
use cognate_kernels::vector;
use cognate_kernels::vector::Row;
use serde::Serialize;

#[derive(Debug)]
pub struct InspectOptions {
    /// How the file is opened.
    pub open: OpenOptions,
    /// Texts to look up.
    pub texts: Vec<String>,
    /// Neighbours shown a word.
    pub neighbours: usize,
}

/// What is inside a model file.
#[derive(Debug, Serialize)]
pub struct Inspection {
    pub file: String,
    pub bytes: u64,
    pub fingerprint: String,
    pub words: usize,
    pub dims: usize,
    /// Element type of the vectors.
    pub dtype: Dtype,
    /// Whether vectors carry their word's weight.
    pub frequency: Frequency,
    pub licence: Option<String>,
    /// What the file names as `auto`.
    pub auto_method: Option<String>,
    /// The method that `auto` stands for, named in the file or not.
    pub auto: &'static str,
    /// Why it is this one.
    pub auto_because: &'static str,
    /// Tokens of the counted corpus.
    pub corpus_tokens: Option<u64>,
    /// Documents of the counted corpus.
    pub corpus_documents: Option<u64>,
    /// Words with a count above zero.
    pub counted_words: usize,
    /// Whether words have an idf.
    pub has_idf: bool,
    /// Rules that turn texts into words.
    pub normalisation: cognate::text::Normalisation,
    /// What becomes of words that are not listed.
    pub unknown: cognate::model::Unknown,
    /// What trained methods added.
    pub sections: Vec<SectionView>,
    /// Every table in the file.
    pub tables: Vec<TableView>,
    /// Who wrote the file.
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
    /// As it is looked up.
    pub token: String,
    /// Bytes of the text it comes from.
    pub span: [u32; 2],
    /// The words it became; none if it is unknown.
    pub words: Vec<WordView>,
}

#[derive(Debug, Serialize)]
pub struct WordView {
    /// The word, or nothing where the vector was made for this text.
    pub word: Option<String>,
    /// How it was found.
    pub found: Found,
    /// The pieces that its vector was made from, where it was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<String>,
    pub id: Option<u32>,
    /// Occurrences in the counted corpus.
    pub count: Option<u64>,
    pub idf: Option<f32>,
    /// The length of its vector.
    pub norm: f32,
    /// Words of the most similar vectors.
    pub neighbours: Vec<Neighbour>,
}

/// Opens a model and looks at it.
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
    let auto = Auto::of(&model);
    Ok(Inspection {
        file: path.display().to_string(),
        bytes: model.bytes(),
        fingerprint: model.fingerprint().to_owned(),
        words: vocabulary.len(),
        dims: model.vectors().dims(),
        dtype: model.dtype(),
        frequency: model.frequency(),
        licence: text("licence"),
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
            let words = phrase.words().iter().filter(|word| word.token as usize == position);
            TokenView {
                token: token.to_owned(),
                span: [place.span.start, place.span.end],
                words: words
                    .map(|word| {
                        let vocabulary = model.vocabulary();
                        let row = phrase.row(word);
                        let counts = vocabulary.counts;
                        WordView {
                            word: word.id.map(|id| vocabulary.word(id).to_owned()),
                            found: word.found,
                            pieces: phrase.pieces(word).into_iter().map(str::to_owned).collect(),
                            id: word.id,
                            count: word.id.and_then(|id| counts?.get(id as usize).copied()),
                            idf: phrase.idf(word),
                            norm: cognate_kernels::vector::norm(row),
                            neighbours: nearest(model, &norms, row, word.id, options.neighbours),
                        }
                    })
                    .collect(),
            }
        });
        TextView { text: text.clone(), tokens: tokens.collect() }
    };
    options.texts.iter().map(view).collect()
}

/// A word and how alike its vector is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Neighbour {
    pub word: String,
    /// The cosine of the two vectors.
    pub cosine: f32,
}

/// The length of every row.
pub(crate) fn norms(model: &Model) -> Vec<f32> {
    let vectors = model.vectors();
    let ids = 0..vectors.len() as WordId;
    ids.map(|id| vectors.row(id).map_or(0.0, vector::norm)).collect()
}

/// The `most` words nearest to `row` by cosine, best first, without the word itself.
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
