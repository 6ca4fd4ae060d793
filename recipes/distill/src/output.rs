//! Writes distilled vectors as a model file.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use cognate::methods::means::learned_idf;
use cognate::model::format::{AUTO_METHOD, Dtype, LANGUAGES};
use cognate::model::pieces::{PIECES_SECTION, put_pieces};
use cognate::model::unknown::Fallback;
use cognate::model::vectors::Quantiser;
use cognate::model::vocabulary::VocabularyTables;
use cognate::model::writer::{Draft, Source, Table, Written};
use cognate::model::{Counts, Frequency, Model, Unknown};
use cognate::text::Normalisation;
use cognate_train::TrainError;
use cognate_train::run::{TRAINED_VECTORS, carry_section, created_by, json};
use serde::Serialize;

use crate::pieces::Fitted;
use crate::start::{Start, rarer_half};
use crate::texts::KINDS;
use crate::trainer::Point;
use crate::{DistillOptions, TeacherInfo};

pub(super) struct Output<'o> {
    pub(super) options: &'o DistillOptions,
    /// The base model, if there is one.
    pub(super) base: Option<&'o Model>,
    pub(super) rules: &'o Normalisation,
    pub(super) start: &'o Start,
    /// The vectors of the written words.
    pub(super) rows: &'o [f32],
    /// Pieces for words that are not listed.
    pub(super) pieces: Option<&'o Fitted>,
    pub(super) dims: usize,
    pub(super) teachers: &'o [TeacherInfo],
    pub(super) texts: [usize; KINDS],
    /// BLAKE3 of texts and words.
    pub(super) digest: &'o str,
    /// The last point of the loss curve.
    pub(super) last: Option<Point>,
}

/// The settings that the model's section records.
#[derive(Serialize)]
struct Settings<'s> {
    objective: &'static str,
    from: Option<&'s str>,
    teachers: &'s [TeacherInfo],
    text_digest: &'s str,
    texts: [usize; KINDS],
    families: usize,
    epochs: u32,
    batch: usize,
    rate: f32,
    divergence: f32,
    seed: u64,
    loss: Option<Point>,
    version: &'static str,
}

impl Output<'_> {
    pub(super) fn write(&self) -> Result<Written, TrainError> {
        let count = self.rows.len() / self.dims;
        let dtype = self.options.dtype.unwrap_or_else(|| self.stored());
        let vectors = Stored::of(self.rows, self.dims, dtype)?;
        let tables = VocabularyTables::build(self.start.words[..count].iter().map(String::as_str));
        let counts = self.counts(count);
        let fitted = self.pieces.filter(|fitted| !fitted.pieces.is_empty());
        let rows = match fitted {
            Some(fitted) => Stored::of(&fitted.rows, self.dims, dtype)?,
            None => Stored::default(),
        };
        let strings = fitted.map(|fitted| fitted.pieces.iter().map(String::as_str));
        let strings = strings.map(VocabularyTables::build);
        let mut draft = Draft { metadata: self.metadata()?, tables: Vec::new() };
        draft.tables.extend(vectors.tables("vectors"));
        draft.push_vocabulary(&tables);
        draft.push_counts(&counts);
        draft.set_section(TRAINED_VECTORS, self.settings()?, Vec::new());
        if let Some(base) = self.base {
            carry_section(base, learned_idf::SECTION, &mut draft);
            if self.pieces.is_none() {
                carry_section(base, PIECES_SECTION, &mut draft);
            }
        }
        if let Some(strings) = &strings {
            put_pieces(&mut draft, strings, rows.tables("rows"), Some(self.digest.to_owned()))
                .map_err(|error| TrainError::Options(format!("pieces: {error}")))?;
        }
        Ok(draft.write(&self.options.run.output)?)
    }

    /// The element type of the base model, or F32.
    fn stored(&self) -> Dtype {
        let tables = self.base.and_then(|base| base.tensors().next());
        tables.map_or(Dtype::F32, |(vectors, _)| vectors.dtype)
    }

    fn metadata(&self) -> Result<BTreeMap<String, String>, TrainError> {
        let mut metadata = BTreeMap::new();
        if let Some(base) = self.base {
            metadata = Draft::from_model(base).metadata;
            metadata.retain(|key, _| !key.starts_with("section."));
        }
        let mut set = |key: &str, value: String| metadata.insert(key.to_owned(), value);
        set("created_by", created_by());
        set("source_digest", self.digest.to_owned());
        let DistillOptions { licence, auto_method, .. } = self.options;
        for (key, value) in [("licence", licence), (AUTO_METHOD, auto_method)] {
            if let Some(value) = value {
                set(key, value.clone());
            }
        }
        if !self.options.languages.is_empty() {
            let names = self.options.languages.iter().filter_map(|folder| folder.file_name());
            let names: Vec<_> = names.map(OsStr::to_string_lossy).collect();
            set(LANGUAGES, names.join(" "));
        }
        if let Some(unknown) = self.unknown() {
            set("unknown", json(&unknown)?);
        }
        if self.base.is_none() {
            set("dim", self.dims.to_string());
            set("normalisation", json(self.rules)?);
            set("frequency", Frequency::InNorm.name().to_owned());
            if auto_method.is_none() {
                set(AUTO_METHOD, "avg-cos".to_owned());
            }
        }
        Ok(metadata)
    }

    /// The rule for words that are not listed, if it differs from the base model's.
    fn unknown(&self) -> Option<Unknown> {
        let length = rarer_half(self.rows, self.dims);
        let has_pieces = self.pieces.is_some_and(|fitted| !fitted.pieces.is_empty());
        let piece_norm = has_pieces.then_some(length);
        match self.base.map(Model::unknown) {
            Some(Unknown::Fallback(rules)) if has_pieces => {
                Some(Unknown::Fallback(Fallback { piece_norm, ..rules.clone() }))
            }
            // The vectors of n-grams were not trained along, so they no longer fit.
            Some(Unknown::Subword) => Some(Unknown::Skip),
            Some(_) if !has_pieces => None,
            _ => Some(Unknown::Fallback(Fallback { piece_norm, ..Fallback::english(length) })),
        }
    }

    /// Word counts: without a base model those of the list, or of the texts; with one those of the
    /// model, and for new words those of the texts.
    fn counts(&self, count: usize) -> Counts {
        let occurrences = self.start.counts[..count].to_vec();
        let Some(before) = self.base.map(Model::vocabulary) else {
            let smallest = occurrences.iter().copied().filter(|&count| count > 0).min();
            let unseen = smallest.unwrap_or(1) as f64 / 2.0;
            return Counts::of_occurrences(occurrences, self.start.tokens, unseen);
        };
        let listed = before.len().min(count);
        let unseen = before.corpus.idf_unknown.unwrap_or(0.0);
        let idf = before.idf.map(|idf| {
            let mut idf = idf[..listed].to_vec();
            // Document frequencies cannot be derived from word counts.
            let total = before.corpus.tokens.filter(|_| before.document_frequencies.is_none());
            idf.extend(occurrences[listed..].iter().map(|&count| match total {
                Some(total) => (total as f64 / count.max(1) as f64).ln().max(0.0) as f32,
                None => unseen,
            }));
            idf
        });
        Counts {
            documents: before.document_frequencies.map(|documents| {
                let mut documents = documents[..listed].to_vec();
                documents.resize(count, 0);
                documents
            }),
            idf: idf.unwrap_or_default(),
            occurrences: before.counts.map(|_| occurrences),
            tokens: before.corpus.tokens,
            document_total: before.corpus.documents,
            idf_unknown: unseen,
            skipped_lines: 0,
        }
    }

    fn settings(&self) -> Result<String, TrainError> {
        let schedule = &self.options.schedule;
        json(&Settings {
            objective: "distill",
            from: self.base.map(Model::fingerprint),
            teachers: self.teachers,
            text_digest: self.digest,
            texts: self.texts,
            families: self.options.families,
            epochs: schedule.epochs,
            batch: schedule.batch,
            rate: schedule.pace.rate,
            divergence: schedule.pace.divergence,
            seed: schedule.seed,
            loss: self.last,
            version: env!("CARGO_PKG_VERSION"),
        })
    }
}

/// Rows in the form of a model file.
#[derive(Default)]
struct Stored {
    dtype: Option<Dtype>,
    dims: usize,
    bytes: Vec<u8>,
    scales: Vec<f32>,
}

impl Stored {
    fn of(rows: &[f32], dims: usize, dtype: Dtype) -> Result<Self, TrainError> {
        let (mut quantiser, mut bytes) = (Quantiser::new(dtype), Vec::new());
        for row in rows.chunks_exact(dims) {
            quantiser
                .write(row, &mut bytes)
                .map_err(|error| TrainError::Options(format!("--dtype: {error}")))?;
        }
        Ok(Self { dtype: Some(dtype), dims, bytes, scales: quantiser.scales })
    }

    /// The tables of the rows; the first one gets this name.
    fn tables(&self, name: &str) -> Vec<Table<'_>> {
        let Some(dtype) = self.dtype else { return Vec::new() };
        let count = self.bytes.len() / (self.dims * dtype.bytes() as usize);
        let mut tables = vec![Table {
            name: name.to_owned(),
            dtype,
            shape: vec![count as u64, self.dims as u64],
            source: Source::Bytes(self.bytes.as_slice().into()),
        }];
        if dtype == Dtype::I8 {
            tables.push(Table::new("scales", Dtype::F32, &[count], &self.scales));
        }
        tables
    }
}
