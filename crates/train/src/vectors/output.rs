//! Trained vectors as a model file ready to serve, and as word2vec text.

use std::io;
use std::io::{BufWriter, Write};
use std::path::Path;

use cognate::model::disk::LocalDisk;
use cognate::model::format::{AUTO_METHOD, Dtype};
use cognate::model::vocabulary::VocabularyTables;
use cognate::model::writer::{Draft, Table, Target, Written};
use cognate::model::{Counts, Frequency, Model, Unknown, disk};

use crate::run::{TRAINED_VECTORS, carry_weights, json};
use crate::vectors::corpus::Corpus;
use crate::vectors::{Objective, VectorsOptions};
use crate::{TrainError, run};

#[derive(Debug)]
pub struct Output<'o> {
    pub options: &'o VectorsOptions,
    pub base: Option<&'o Model>,
    pub corpus: &'o Corpus,
    /// The words in the order of their rows.
    pub words: &'o [String],
    pub rows: &'o [f32],
    pub dims: usize,
    /// Mean loss of the last hundredth of the run.
    pub loss: Option<f64>,
}

/// Settings of the section.
#[derive(Debug, serde::Serialize)]
struct Settings<'s> {
    objective: Objective,
    from: Option<&'s str>,
    text_digest: &'s str,
    tokens: u64,
    sentences: usize,
    epochs: u32,
    rate: f32,
    optimiser: &'static str,
    negatives: usize,
    least: u64,
    seed: u64,
    /// Whether the same command gives the same bits again.
    repeatable: bool,
    /// Number of threads, where the bits depend on it.
    threads: Option<usize>,
    loss: Option<f64>,
}

impl Output<'_> {
    /// Writes the text file, if one is wanted, and then the model, so that a model that is there
    /// says that all is.
    pub fn write(&self) -> Result<Written, TrainError> {
        if let Some(path) = &self.options.text {
            self.write_text(path)
                .map_err(|source| TrainError::Write { path: path.clone(), source })?;
        }
        let tables = VocabularyTables::build(self.words.iter().map(String::as_str));
        let counts = self.counts();
        let mut draft = Draft::default();
        self.describe(&mut draft)?;
        let shape = [self.words.len(), self.dims];
        draft.tables.push(Table::of("vectors", Dtype::F32, &shape, self.rows));
        draft.push_vocabulary(&tables);
        draft.push_counts(&counts);
        draft.set_section(TRAINED_VECTORS, self.settings()?, Vec::new());
        if let Some(base) = self.base {
            carry_weights(base, &mut draft);
        }
        Ok(draft.write(&self.options.run.output)?)
    }

    fn describe(&self, draft: &mut Draft<'_>) -> Result<(), TrainError> {
        let rules = self.base.map_or(&self.options.normalisation, Model::normalisation);
        // A rule that needs tables of its own does not outlive the vectors they were made for.
        let unknown = self.base.map_or(Unknown::Skip, |base| run::without_pieces(base.unknown()));
        let frequency = match (self.base, self.options.objective) {
            (Some(base), _) => base.frequency(),
            // Words that say little end up short, so means need no other weights.
            (None, Objective::SiameseCbow) => Frequency::InNorm,
            (None, _) => Frequency::None,
        };
        let mut set = |key: &str, value: String| draft.metadata.insert(key.to_owned(), value);
        set("dim", self.dims.to_string());
        set("normalisation", json(rules)?);
        set("unknown", json(&unknown)?);
        set("frequency", frequency.name().to_owned());
        set("created_by", run::created_by());
        set("source_digest", self.corpus.digest.clone());
        let licence = self.options.licence.as_ref();
        if let Some(licence) = licence.or(self.base.and_then(|base| base.metadata().get("licence")))
        {
            set("licence", licence.clone());
        }
        let named = self.base.and_then(|base| base.metadata().get(AUTO_METHOD).cloned());
        let made_for = (self.options.objective == Objective::SiameseCbow).then_some("avg-cos");
        if let Some(method) = named.or(made_for.map(str::to_owned)) {
            set(AUTO_METHOD, method);
        }
        Ok(())
    }

    fn settings(&self) -> Result<String, TrainError> {
        let schedule = &self.options.schedule;
        let apart = self.options.objective == Objective::SiameseCbow || schedule.threads == 1;
        json(&Settings {
            objective: self.options.objective,
            from: self.base.map(Model::fingerprint),
            text_digest: &self.corpus.digest,
            tokens: self.corpus.tokens,
            sentences: self.corpus.sentences(),
            epochs: schedule.epochs,
            rate: schedule.rate,
            optimiser: if schedule.adagrad { "adagrad" } else { "sgd" },
            negatives: self.options.negatives,
            least: self.options.least,
            seed: self.options.seed,
            repeatable: !schedule.hogwild,
            threads: if apart { None } else { Some(schedule.threads) },
            loss: self.loss,
        })
    }

    /// What the text says of the words, on top of what the model said that was the start.
    fn counts(&self) -> Counts {
        let words = self.words.len();
        let (mut occurrences, mut documents) = (vec![0_u64; words], vec![0_u32; words]);
        for (at, &word) in self.corpus.numbers.iter().enumerate() {
            occurrences[word as usize] = self.corpus.counts[at];
            documents[word as usize] = self.corpus.lines_with[at];
        }
        let mut tokens = self.corpus.tokens;
        let Some(before) = self.base.map(Model::vocabulary) else {
            let mut counts = Counts::of_documents(documents, self.corpus.lines);
            (counts.occurrences, counts.tokens) = (Some(occurrences), Some(tokens));
            return counts;
        };
        for (sum, count) in occurrences.iter_mut().zip(before.counts.unwrap_or_default()) {
            *sum = sum.saturating_add(*count);
        }
        tokens = tokens.saturating_add(before.corpus.tokens.unwrap_or(0));
        match (before.document_frequencies, before.corpus.documents) {
            (Some(of_base), Some(total)) => {
                for (sum, count) in documents.iter_mut().zip(of_base) {
                    *sum = sum.saturating_add(*count);
                }
                let total = total.saturating_add(self.corpus.lines);
                let mut counts = Counts::of_documents(documents, total);
                (counts.occurrences, counts.tokens) = (Some(occurrences), Some(tokens));
                counts
            }
            _ => {
                let smallest = occurrences.iter().copied().filter(|&count| count > 0).min();
                let unseen = smallest.unwrap_or(1) as f64 / 2.0;
                Counts::of_occurrences(occurrences, tokens, unseen)
            }
        }
    }

    /// word2vec's text format: a line with the number of words and of dimensions, then a word and
    /// its numbers a line.
    fn write_text(&self, path: &Path) -> io::Result<()> {
        let target = Target::of(path)?;
        let mut size = Counted(0);
        self.lines(&mut size)?;
        disk::replace(&LocalDisk, &target, size.0, |file| {
            let mut out = BufWriter::new(file);
            self.lines(&mut out)?;
            out.flush()
        })
    }

    fn lines(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{} {}", self.words.len(), self.dims)?;
        for (word, row) in self.words.iter().zip(self.rows.chunks_exact(self.dims)) {
            out.write_all(word.as_bytes())?;
            for value in row {
                write!(out, " {value}")?;
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}

/// Counts the bytes that would be written.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
