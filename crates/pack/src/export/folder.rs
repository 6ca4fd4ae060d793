//! The folder that is exported, and its files. Knows nothing of what is in them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::{fs, io};

use cognate::model::Model;
use cognate::model::disk::TEMPORARY_PREFIX;
use cognate::model::whole_folder::WholeFolder;
use cognate::model::writer::directory_of;

use crate::export::{ExportError, Exported, Library};

/// A folder being written. Dropped before [`Folder::finish`], it leaves nothing behind.
pub(super) struct Folder {
    target: PathBuf,
    whole: WholeFolder,
    bytes: u64,
}

impl Folder {
    /// A folder to become `target`, which must not exist or be empty.
    pub(super) fn begin(target: &Path) -> Result<Self, ExportError> {
        let refuse = |what: &str| {
            Err(ExportError::Options(format!("-o {}: expected {what}", target.display())))
        };
        match fs::read_dir(target) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return refuse("a folder that is new or empty");
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return refuse("a folder, found a file");
            }
            Err(error) => return Err(ExportError::io(target)(error)),
        }
        if target.file_name().is_none() {
            return refuse("a folder with a name");
        }
        let whole = WholeFolder::begin(target, TEMPORARY_PREFIX, 0o777);
        let whole = whole.map_err(ExportError::io(target))?;
        Ok(Self { target: target.to_owned(), whole, bytes: 0 })
    }

    /// Writes one file, given by its path within the folder.
    pub(super) fn write(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), ExportError> {
        let path = self.whole.path().join(name);
        let write = || {
            fs::create_dir_all(directory_of(&path))?;
            let mut out = BufWriter::new(File::create_new(&path)?);
            fill(&mut out)?;
            let file = out.into_inner()?;
            file.sync_all()?;
            file.metadata().map(|metadata| metadata.len())
        };
        let shown = self.target.join(name);
        self.bytes = self.bytes.saturating_add(write().map_err(ExportError::io(&shown))?);
        Ok(())
    }

    /// Writes one JSON file.
    pub(super) fn write_json(
        &mut self,
        name: &str,
        value: &serde_json::Value,
    ) -> Result<(), ExportError> {
        self.write(name, |out| writeln!(out, "{value:#}"))
    }

    /// Size of the files written.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Moves the folder to its place.
    pub(super) fn finish(self) -> Result<PathBuf, ExportError> {
        self.whole.finish().map_err(ExportError::io(&self.target))?;
        Ok(self.target)
    }
}

pub(super) fn write(exported: &Exported, model: &Model, out: &mut dyn Write) -> io::Result<()> {
    let library = exported.library.name();
    writeln!(out, "---\nlibrary_name: {library}\nlicense: other\ntags:")?;
    for tag in ["model2vec", "sentence-transformers", "sentence-similarity", "static-embeddings"] {
        writeln!(out, "- {tag}")?;
    }
    writeln!(out, "---\n\n# Static word vectors\n")?;
    writeln!(
        out,
        "Exported by cognate {} from a model with the fingerprint `{}`: {} words and {} inflected \
         forms of them, {} dimensions, {}. The vector of a text is the mean of its words' vectors \
         (cognate's method `{}`); compare by cosine.\n",
        env!("CARGO_PKG_VERSION"),
        exported.fingerprint,
        exported.words,
        exported.inflections,
        exported.dims,
        exported.dtype.name(),
        exported.method,
    )?;
    writeln!(out, "```python")?;
    match exported.library {
        Library::Model2vec => {
            writeln!(out, "from model2vec import StaticModel\n")?;
            writeln!(out, "model = StaticModel.from_pretrained(\"FOLDER\")")?;
        }
        Library::SentenceTransformers => {
            writeln!(out, "from sentence_transformers import SentenceTransformer\n")?;
            writeln!(out, "model = SentenceTransformer(\"FOLDER\")")?;
        }
    }
    writeln!(out, "vectors = model.encode([\"Quake hits city\", \"Earthquake shakes town\"])")?;
    writeln!(out, "```\n\n## Left behind\n")?;
    writeln!(out, "What the model does in cognate and this folder does not:\n")?;
    for what in &exported.left_behind {
        writeln!(out, "- {what}")?;
    }
    writeln!(out, "\n## Licence\n")?;
    let unsaid = "The model does not say under which terms its vectors may be used.";
    let licence = model.metadata().get("licence").map_or(unsaid, String::as_str);
    writeln!(out, "{licence}")
}
