//! What is measured on: real sentence pairs and vectors where the shared data is present, else the
//! pairs of `benches/data` and the default model's own vocabulary.

use std::collections::BTreeMap;
use std::path::Path;

use cognate::engine::Engine;
use cognate::model::format::Dtype;
use cognate::model::vocabulary::VocabularyTables;
use cognate::model::writer::{Draft, Table};
use cognate::model::{Model, OpenOptions, Verify};
use cognate::text::Normalisation;
use half::f16;

use crate::support;

/// Number of pairs in a measurement.
pub const PAIRS: usize = 10_000;

/// Words and rows of f32, most frequent first.
pub struct Vectors {
    pub words: Vec<String>,
    pub rows: Vec<f32>,
    pub dims: usize,
}

/// Sentence pairs.
pub fn pairs() -> Vec<(String, String)> {
    let table = support::shared_data().map(|folder| folder.join("sts")).map(|folder| {
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .expect("the folder of sentence pairs is readable")
            .map(|entry| entry.expect("its entries too").path())
            .collect();
        files.sort();
        let read = |path: &_| std::fs::read_to_string(path).expect("pairs are text");
        files.iter().map(read).collect::<String>()
    });
    let table = table.unwrap_or_else(|| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/data/pairs.tsv");
        std::fs::read_to_string(path).expect("the committed pairs are there")
    });
    let pair = |line: &str| {
        let mut cells = line.split('\t').skip(1).map(str::to_owned);
        cells.next().zip(cells.next())
    };
    let pairs: Vec<_> = table.lines().filter_map(pair).collect();
    pairs.iter().cycle().take(PAIRS).cloned().collect()
}

/// Returns GloVe's vectors of 100 dimensions, or the default model's vectors.
pub fn vectors() -> Vectors {
    let Some(folder) = support::shared_data() else {
        return of_default_model();
    };
    let bytes = std::fs::read(folder.join("vectors/glove.6B.100d.safetensors")).expect("vectors");
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("safetensors");
    let tensor = file.tensor("vectors").expect("the tensor");
    let halves = tensor.data().as_chunks::<2>().0;
    let rows = halves.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32()).collect();
    let words = std::fs::read_to_string(folder.join("vectors/vocab.txt")).expect("its words");
    Vectors { words: words.lines().map(str::to_owned).collect(), rows, dims: 100 }
}

fn of_default_model() -> Vectors {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/default.safetensors");
    let model = Model::open(&path, &OpenOptions::default()).expect("the model opens");
    let dims = model.dims();
    let mut rows = vec![0.0; model.vectors().len() * dims];
    for (id, row) in rows.chunks_mut(dims).enumerate() {
        model.vectors().row(id as u32).expect("a row a word").copy_to(row);
    }
    Vectors { words: model.vocabulary().words().map(str::to_owned).collect(), rows, dims }
}

impl Vectors {
    /// Vectors of three times as many dimensions, each third made of the row by its own signs and
    /// rotation: for figures that depend on sizes alone.
    pub fn thrice(&self) -> Self {
        let dims = 3 * self.dims;
        let mut rows = Vec::with_capacity(3 * self.rows.len());
        for row in self.rows.chunks_exact(self.dims) {
            for third in 0..3 {
                let turned = |d: usize| {
                    let sign = if (d * (third + 1)).is_multiple_of(third + 2) { 1.0 } else { -1.0 };
                    sign * row[(d + 37 * third) % self.dims]
                };
                rows.extend((0..self.dims).map(turned));
            }
        }
        Self { words: self.words.clone(), rows, dims }
    }

    /// An engine over these vectors, in rows of this type, mapped from a file.
    pub fn engine(&self, folder: &Path, dtype: Dtype) -> Engine {
        let path = folder.join(format!("{}-{}.safetensors", self.dims, dtype.name()));
        self.write(&path, dtype);
        let options = OpenOptions { verify: Verify::Structure, ..OpenOptions::default() };
        Engine::open(&path, &options).expect("the model was just written")
    }

    fn write(&self, path: &Path, dtype: Dtype) {
        let words = self.words.len();
        let tables = VocabularyTables::build(self.words.iter().map(String::as_str));
        let rules = Normalisation::preset("plain").expect("it is a preset");
        let metadata = [
            ("dim", self.dims.to_string()),
            ("normalisation", serde_json::to_string(&rules).expect("rules have a JSON form")),
            ("unknown", r#"{"policy":"skip"}"#.to_owned()),
            ("frequency", "none".to_owned()),
            ("licence", "none needed".to_owned()),
        ];
        let metadata: BTreeMap<_, _> =
            metadata.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let shape = [words, self.dims];
        let halves: Vec<f16> = match dtype {
            Dtype::F16 => self.rows.iter().map(|&value| f16::from_f32(value)).collect(),
            _ => Vec::new(),
        };
        let (bytes, scales) = match dtype {
            Dtype::I8 => quantised(&self.rows, self.dims),
            _ => Default::default(),
        };
        let mut draft = Draft { metadata, ..Draft::default() };
        draft.tables.push(match dtype {
            Dtype::F16 => Table::new("vectors", dtype, &shape, &halves),
            Dtype::I8 => Table::new("vectors", dtype, &shape, &bytes),
            _ => Table::new("vectors", Dtype::F32, &shape, &self.rows),
        });
        if dtype == Dtype::I8 {
            draft.tables.push(Table::new("scales", Dtype::F32, &[words], &scales));
        }
        draft.push_vocabulary(&tables);
        draft.write(path).expect("there is room for a model");
    }
}

fn quantised(rows: &[f32], dims: usize) -> (Vec<i8>, Vec<f32>) {
    let mut bytes = Vec::with_capacity(rows.len());
    let mut scales = Vec::new();
    for row in rows.chunks_exact(dims) {
        let most = row.iter().fold(0.0, |most: f32, value| most.max(value.abs()));
        let scale = if most > 0.0 { most / 127.0 } else { 1.0 };
        bytes.extend(row.iter().map(|value| (value / scale).round() as i8));
        scales.push(scale);
    }
    (bytes, scales)
}
