//! `tokenizer.json` of the exported folder, in the form of the tokenizers library: the model's rules as
//! its components, and every entry with its id.

use std::io;
use std::io::Write;

use cognate::model::Model;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::export::entries::Entries;
use crate::export::rules::Rules;

#[derive(Serialize)]
struct Tokenizer<'t> {
    version: &'static str,
    truncation: (),
    padding: (),
    /// None: text that looks like the entry for unknown words is a text.
    added_tokens: [(); 0],
    normalizer: Sequence<'t>,
    pre_tokenizer: Sequence<'t>,
    post_processor: (),
    decoder: (),
    model: WordLevel<'t>,
}

/// Components one after another.
#[derive(Serialize)]
#[serde(tag = "type")]
enum Sequence<'t> {
    /// The form of normalizers.
    #[serde(rename = "Sequence")]
    Normalizers { normalizers: &'t [serde_json::Value] },
    #[serde(rename = "Sequence")]
    PreTokenizers { pretokenizers: &'t [serde_json::Value] },
}

/// A model that knows whole words.
#[derive(Serialize)]
struct WordLevel<'t> {
    r#type: &'static str,
    vocab: Vocabulary<'t>,
    unk_token: &'t str,
}

/// Entry to id, written as it is gone through.
struct Vocabulary<'t> {
    model: &'t Model,
    entries: &'t Entries,
}

impl Serialize for Vocabulary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let vocabulary = self.model.vocabulary();
        let names = std::iter::once(self.entries.unknown.as_str())
            .chain(vocabulary.words())
            .chain(self.entries.inflected());
        let mut map = serializer.serialize_map(Some(self.entries.len()))?;
        for (id, name) in names.enumerate() {
            map.serialize_entry(name, &id)?;
        }
        map.end()
    }
}

pub(super) fn write(
    model: &Model,
    entries: &Entries,
    rules: &Rules,
    out: &mut dyn Write,
) -> io::Result<()> {
    let tokenizer = Tokenizer {
        version: "1.0",
        truncation: (),
        padding: (),
        added_tokens: [],
        normalizer: Sequence::Normalizers { normalizers: &rules.normalizers },
        pre_tokenizer: Sequence::PreTokenizers { pretokenizers: &rules.pre_tokenizers },
        post_processor: (),
        decoder: (),
        model: WordLevel {
            r#type: "WordLevel",
            vocab: Vocabulary { model, entries },
            unk_token: &entries.unknown,
        },
    };
    Ok(serde_json::to_writer(out, &tokenizer)?)
}
