//! `tokenizer.json` of a model2vec folder: the entries that are words or pieces of words, and the rule
//! by which others are cut into them.

use std::collections::HashMap;
use std::fmt::Display;

use cognate::model::unigram;
use cognate::model::unigram::Scale;
use serde::de::IgnoredAny;
use tokenizers::models::unigram::Unigram;
use tokenizers::{ModelWrapper, Tokenizer};

use crate::readers::model2vec::folder::whole;
use crate::readers::positioned::Source;
use crate::readers::{Budget, ReadError, Subword};

/// The largest in use has half a million entries in 20 MB.
const MOST_TOKENIZER_BYTES: u64 = 256 << 20;

#[derive(Debug)]
pub(super) struct Entry {
    /// Which row it has.
    pub(super) id: u32,
    /// Its name in the vocabulary.
    pub(super) name: String,
    /// Its score, where entries have scores.
    pub(super) score: Option<f64>,
}

/// The entries of a tokenizer, special tokens and the one for unknown text left out.
pub(super) struct Entries {
    /// In the order of their ids.
    pub(super) entries: Vec<Entry>,
    /// How words that are not listed are cut.
    pub(super) subword: Option<Subword>,
}

impl Entries {
    /// Reads and checks a tokenizer.
    pub(super) fn read(source: &Source, budget: Budget) -> Result<Self, ReadError> {
        let tokenizer = parse(source)?;
        let special = tokenizer.get_added_tokens_decoder();
        let special: Vec<_> =
            special.iter().filter(|(_, token)| token.special).map(|(&id, _)| id).collect();
        let read = match tokenizer.get_model() {
            ModelWrapper::WordPiece(model) => {
                let prefix = model.continuing_subword_prefix.clone();
                let subword = Some(Subword::WordPiece { prefix });
                Self { entries: listed(&tokenizer, &special, &model.unk_token), subword }
            }
            ModelWrapper::WordLevel(model) => {
                Self { entries: listed(&tokenizer, &special, &model.unk_token), subword: None }
            }
            ModelWrapper::Unigram(model) => {
                if model.byte_fallback() {
                    return Err(source.unsupported(
                        "a Unigram tokenizer with byte_fallback: its entries for bytes are no text",
                    ));
                }
                if !marks_words(&tokenizer) {
                    return Err(source.unsupported(
                        "a Unigram tokenizer without Metaspace: its entries do not say where words \
                         begin",
                    ));
                }
                if let Some((entry, _)) = model.iter().find(|(entry, _)| spans_words(entry)) {
                    return Err(source.unsupported(format!(
                        "a Unigram tokenizer with entries over several words ({entry:?}): words are \
                         cut one by one here"
                    )));
                }
                scored(model, &special)
            }
            ModelWrapper::BPE(_) => {
                return Err(source.unsupported(
                    "a BPE tokenizer: its entries are byte sequences, not words; distil the model \
                     again with a WordPiece tokenizer or pack the vectors of a word list",
                ));
            }
        };
        read.check(source, budget)
    }

    fn check(self, source: &Source, budget: Budget) -> Result<Self, ReadError> {
        let entries = &self.entries;
        if entries.len() as u64 > budget.words {
            let problem = format!("{} words, at most {} are taken", entries.len(), budget.words);
            return Err(source.unsupported(problem));
        }
        if let Some(entry) = entries.iter().find(|entry| entry.name.len() > budget.word_bytes) {
            let (id, most) = (entry.id, budget.word_bytes);
            return Err(source.malformed(0, format!("token {id} is longer than {most} bytes")));
        }
        if let Some(entry) =
            entries.iter().find(|entry| entry.score.is_some_and(|s| !s.is_finite()))
        {
            return Err(source.malformed(0, format!("token {} has no finite score", entry.id)));
        }
        if entries.is_empty() {
            return Err(
                source.unsupported("a tokenizer without any entry that is no special token")
            );
        }
        Ok(self)
    }
}

/// The library panics on JSON that breaks off inside some parts and on some faulty normalisers. A
/// panic must not be reachable from a file, so the syntax is checked first and the rest is caught.
fn parse(source: &Source) -> Result<Tokenizer, ReadError> {
    let bytes = whole(source, MOST_TOKENIZER_BYTES)?;
    let refuse =
        |why: &dyn Display| source.malformed(0, format!("expected a tokenizer, found: {why}"));
    serde_json::from_slice::<IgnoredAny>(&bytes).map_err(|error| refuse(&error))?;
    std::panic::catch_unwind(move || Tokenizer::from_bytes(bytes))
        .map_err(|_| refuse(&"parts that the tokenizers library gives up on"))?
        .map_err(|error| refuse(&error))
}

/// Every entry under its own name.
fn listed(tokenizer: &Tokenizer, special: &[u32], unknown: &str) -> Vec<Entry> {
    let named = tokenizer.get_vocab(true).into_iter();
    let mut entries: Vec<_> = named
        .filter(|(name, id)| !special.contains(id) && name != unknown)
        .map(|(name, id)| Entry { id, name, score: None })
        .collect();
    entries.sort_unstable_by_key(|entry| entry.id);
    entries
}

/// Whether spaces become the mark that words begin with: by the pre-tokenizer Metaspace, or by a
/// normaliser that writes the mark.
fn marks_words(tokenizer: &Tokenizer) -> bool {
    let splits = serde_json::to_string(&tokenizer.get_pre_tokenizer()).unwrap_or_default();
    let normalises = serde_json::to_string(&tokenizer.get_normalizer()).unwrap_or_default();
    splits.contains("\"Metaspace\"") || normalises.contains(unigram::WORD_MARK)
}

/// Whether the mark stands in an entry behind something else.
fn spans_words(entry: &str) -> bool {
    entry.trim_start_matches(unigram::WORD_MARK).contains(unigram::WORD_MARK)
}

/// Every entry with its score. One that begins a word has that word's name if the word is cut into
/// nothing but this entry.
fn scored(model: &Unigram, special: &[u32]) -> Entries {
    let ids: HashMap<&str, (u32, f64)> = (0..)
        .zip(model.iter())
        .map(|(id, (entry, score))| (entry.as_str(), (id, *score)))
        .collect();
    let longest = ids.keys().map(|entry| entry.len()).max().unwrap_or(0);
    let scale = Scale { unknown: model.min_score - unigram::UNKNOWN_PENALTY, longest };
    let unknown = serde_json::to_value(model).ok().and_then(|model| model["unk_id"].as_u64());
    let mut cut = Vec::new();
    let mut entries = Vec::new();
    for (id, (entry, score)) in (0..).zip(model.iter()) {
        if special.contains(&id) || unknown == Some(u64::from(id)) || entry.is_empty() {
            continue;
        }
        cut.clear();
        if let Some(word) = entry.strip_prefix(unigram::WORD_MARK) {
            unigram::pieces(word, scale, |piece| ids.get(piece).copied(), &mut cut);
        }
        let name = unigram::name(entry, cut == [id]).into_owned();
        entries.push(Entry { id, name, score: Some(*score) });
    }
    let longest = u32::try_from(longest).unwrap_or(u32::MAX);
    let subword = Some(Subword::Unigram { unknown_score: scale.unknown, longest });
    Entries { entries, subword }
}
