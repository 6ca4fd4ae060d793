//! A model of the words, rows and sections that a test names.

use cognate::model::Model;
use cognate::model::format::Dtype;
use cognate::model::vocabulary::VocabularyTables;
use cognate::model::writer::{Draft, Table};

/// A section: name, settings, and rows of as many dimensions as the vectors.
pub type Section<'a> = (&'a str, &'a str, &'a [f32]);

/// A model of these words, a row of `rows` each; other words are left out.
pub fn model(words: &[&str], rows: &[f32], sections: &[Section<'_>]) -> Model {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.safetensors");
    let dims = rows.len() / words.len();
    let tables = VocabularyTables::build(words.iter().copied());
    let mut metadata = crate::metadata();
    metadata.insert("dim".to_owned(), dims.to_string());
    metadata.insert("unknown".to_owned(), "{\"policy\":\"skip\"}".to_owned());
    let mut draft = Draft { metadata, ..Draft::default() };
    draft.tables.push(Table::new("vectors", Dtype::F32, &[words.len(), dims], rows));
    draft.push_vocabulary(&tables);
    for &(name, settings, rows) in sections {
        let shape = [rows.len() / dims, dims];
        let rows = (!rows.is_empty()).then(|| Table::new("rows", Dtype::F32, &shape, rows));
        draft.set_section(name, settings.to_owned(), rows.into_iter().collect());
    }
    draft.write(&path).unwrap();
    Model::from_bytes(&std::fs::read(path).unwrap(), &crate::full()).unwrap()
}
