//! The exported folder, its README and its tensors. The tokenizer's rules are not known here.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::{fs, io};

use cognate::model::disk::TEMPORARY_PREFIX;
use cognate::model::format::Dtype;
use cognate::model::vectors::Quantiser;
use cognate::model::whole_folder::WholeFolder;
use cognate::model::writer::directory_of;
use cognate::model::{Model, WordId};
use serde_json::json;

use crate::export::rules::Entries;
use crate::export::{ExportOptions, Exported, Library};
use crate::{PackError, Result};

/// A folder that is being written. If dropped before [`Folder::finish`], it is removed.
pub(super) struct Folder {
    target: PathBuf,
    whole: WholeFolder,
    bytes: u64,
}

impl Folder {
    pub(super) fn begin(target: &Path) -> Result<Self> {
        let refuse = |what: &str| {
            Err(PackError::Options(format!("-o {}: expected {what}", target.display())))
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
            Err(error) => return Err(PackError::writing(target)(error)),
        }
        if target.file_name().is_none() {
            return refuse("a folder with a name");
        }
        let whole = WholeFolder::begin(target, TEMPORARY_PREFIX, 0o777);
        let whole = whole.map_err(PackError::writing(target))?;
        Ok(Self { target: target.to_owned(), whole, bytes: 0 })
    }

    pub(super) fn write(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
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
        self.bytes = self.bytes.saturating_add(write().map_err(PackError::writing(&shown))?);
        Ok(())
    }

    pub(super) fn write_json(&mut self, name: &str, value: &serde_json::Value) -> Result<()> {
        self.write(name, |out| writeln!(out, "{value:#}"))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn finish(self) -> Result<PathBuf> {
        self.whole.finish().map_err(PackError::writing(&self.target))?;
        Ok(self.target)
    }
}

/// The card beside a model, `NAME.md` for `NAME.safetensors`: its sections, with the words of their
/// links alone, which would lead nowhere from the exported folder. `None` if there is no card.
pub(super) fn read_card(model: &Path) -> Result<Option<String>> {
    let path = model.with_extension("md");
    let card = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| PackError::Options(format!("{}: {error}", path.display())))?,
    };
    let mut rest =
        card.split_once("\n").filter(|_| card.starts_with("# ")).map_or(&*card, |(_, rest)| rest);
    let mut plain = String::new();
    while let Some((words, link)) = rest.split_once("](") {
        let (lead, words) = words.rsplit_once('[').unwrap_or((words, ""));
        plain.extend([lead, words]);
        rest = link.split_once(')').map_or("", |(_, rest)| rest);
    }
    Ok(Some(plain + rest))
}

/// Writes the card of an exported folder, with that of the model in it.
pub(super) fn write_card(
    exported: &Exported,
    model: &Model,
    card: Option<&str>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let library = exported.library.name();
    writeln!(out, "---\nlibrary_name: {library}\nlicense: other")?;
    let mut languages = model.languages().peekable();
    if languages.peek().is_some() {
        writeln!(out, "language:")?;
    }
    languages.try_for_each(|language| writeln!(out, "- {language}"))?;
    writeln!(out, "tags:")?;
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
    if let Some(card) = card {
        return write!(out, "{card}");
    }
    writeln!(out, "\n## Licence\n")?;
    let unsaid = "The model does not say under which terms its vectors may be used.";
    let licence = model.metadata().get("licence").map_or(unsaid, String::as_str);
    writeln!(out, "{licence}")
}

/// The header is padded to a multiple of this, so that the numbers can be used in place.
const ALIGNMENT: usize = 8;

pub(super) struct Layout {
    dtype: Dtype,
    rows: usize,
    entries: usize,
    mapped: bool,
    name: &'static str,
}

impl Layout {
    pub(super) fn new(options: &ExportOptions, entries: &Entries) -> Self {
        let alone = options.library == Library::SentenceTransformers && options.dtype != Dtype::I8;
        let mapped = entries.inflections() > 0 && !alone;
        let rows = if mapped { entries.word_count().saturating_add(1) } else { entries.len() };
        let name = if alone { "embedding.weight" } else { "embeddings" };
        Self { dtype: options.dtype, rows, entries: entries.len(), mapped, name }
    }

    pub(super) fn number_name(&self) -> &'static str {
        match self.dtype {
            Dtype::F16 => "float16",
            Dtype::I8 => "int8",
            _ => "float32",
        }
    }

    pub(super) fn mapped_rows(&self) -> Option<usize> {
        self.mapped.then_some(self.rows)
    }

    fn header(&self, dims: usize) -> String {
        let mut end = 0_u64;
        let mut tensors = serde_json::Map::new();
        let mut add = |name: &str, dtype: &str, bytes: u64, shape: &[usize]| {
            let size = shape.iter().fold(bytes, |size, &n| size.saturating_mul(n as u64));
            let begin = end;
            end = end.saturating_add(size);
            let tensor = json!({ "dtype": dtype, "shape": shape, "data_offsets": [begin, end] });
            tensors.insert(name.to_owned(), tensor);
        };
        add(self.name, self.dtype.name(), self.dtype.bytes(), &[self.rows, dims]);
        if self.dtype == Dtype::I8 {
            add("weights", "F32", 4, &[self.entries]);
        }
        if self.mapped {
            add("mapping", "I32", 4, &[self.entries]);
        }
        let mut header = serde_json::Value::Object(tensors).to_string();
        let padding = header.len().next_multiple_of(ALIGNMENT) - header.len();
        header.extend(std::iter::repeat_n(' ', padding));
        header
    }
}

pub(super) fn write_tensors(
    model: &Model,
    entries: &Entries,
    layout: &Layout,
    out: &mut dyn Write,
) -> io::Result<()> {
    let vectors = model.vectors();
    let header = layout.header(vectors.dims());
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    let mut quantiser = Quantiser::new(layout.dtype);
    let mut row = vec![0.0; vectors.dims()];
    for word in entries.word_ids().take(layout.rows) {
        row.fill(0.0);
        if let Some(found) = word.and_then(|word| vectors.row(word)) {
            found.copy_to(&mut row);
        }
        quantiser.write(&row, out)?;
    }
    let row_of = |place: usize, word: Option<WordId>| match layout.mapped {
        true => word.map_or(0, |word| word as usize + 1),
        false => place,
    };
    if layout.dtype == Dtype::I8 {
        for (place, word) in entries.word_ids().enumerate() {
            let scale = quantiser.scales.get(row_of(place, word)).copied().unwrap_or(1.0);
            out.write_all(&scale.to_le_bytes())?;
        }
    }
    if layout.mapped {
        for (place, word) in entries.word_ids().enumerate() {
            // A model file has fewer words than fit into an i32.
            out.write_all(&(row_of(place, word) as i32).to_le_bytes())?;
        }
    }
    Ok(())
}
