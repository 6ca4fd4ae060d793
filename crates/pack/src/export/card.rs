//! `README.md` of the exported folder: what it is, how it is loaded, and what stayed behind.

use std::io;
use std::io::Write;

use cognate::model::Model;

use crate::export::{Exported, Library};

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
