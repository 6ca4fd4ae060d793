//! The entries of the exported tokenizer: what stands for unknown words, the listed words in their
//! order, and words that the model finds by taking a suffix off.

use std::collections::HashSet;

use cognate::model::phrase::{Found, Word};
use cognate::model::unknown::Fallback;
use cognate::model::{Model, Phrase, Unknown, WordId};

use crate::export::Inflections;

/// Entries beside the listed words.
pub(super) struct Entries {
    /// The entry for unknown words, no word of the model. Its id is 0, and its row is all zeros.
    pub(super) unknown: String,
    words: usize,
    inflected: Vec<(String, WordId)>,
}

impl Entries {
    /// The entries of a model.
    pub(super) fn of(model: &Model, inflections: Inflections) -> Self {
        let vocabulary = model.vocabulary();
        let mut unknown = "[UNK]".to_owned();
        while vocabulary.lookup(&unknown).is_some() {
            unknown.insert(1, '-');
        }
        let inflected = match (model.unknown(), inflections) {
            (Unknown::Fallback(rules), Inflections::All) => inflected(model, rules),
            _ => Vec::new(),
        };
        Self { unknown, words: vocabulary.len(), inflected }
    }

    /// How many there are, the unknown one included.
    pub(super) fn len(&self) -> usize {
        self.words.saturating_add(self.inflected.len()).saturating_add(1)
    }

    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Inflected forms of listed words.
    pub(super) fn inflections(&self) -> usize {
        self.inflected.len()
    }

    /// The inflected forms, in the order of the words that they come from.
    pub(super) fn inflected(&self) -> impl Iterator<Item = &str> {
        self.inflected.iter().map(|(form, _)| form.as_str())
    }

    /// The word of each entry in the order of the ids; none for the unknown one.
    pub(super) fn word_ids(&self) -> impl Iterator<Item = Option<WordId>> {
        let listed = (0..).take(self.words).map(Some);
        let inflected = self.inflected.iter().map(|(_, word)| Some(*word));
        std::iter::once(None).chain(listed).chain(inflected)
    }
}

/// Every word that a suffix rule leads to a listed word. There are finitely many, because a rule is
/// applied once: a listed word, its end changed back.
///
/// Whether a form is found, and as which word, is asked of the look-up itself, so that an entry never
/// says anything else than the model.
fn inflected(model: &Model, rules: &Fallback) -> Vec<(String, WordId)> {
    let vocabulary = model.vocabulary();
    let mut phrase = Phrase::new(model);
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for (word, text) in (0..).zip(vocabulary.words()) {
        for (suffix, end) in &rules.suffixes {
            let Some(stem) = text.strip_suffix(end.as_str()) else { continue };
            if stem.chars().take(rules.min_stem).count() < rules.min_stem {
                continue;
            }
            let form = format!("{stem}{suffix}");
            if vocabulary.lookup(&form).is_some() || seen.contains(&form) {
                continue;
            }
            phrase.read(&form);
            let by_rule = |only: &Word| {
                only.id == Some(word) && matches!(only.found, Found::Stem | Found::Shortened)
            };
            let whole = phrase.tokens().texts().eq([form.as_str()]);
            if whole && phrase.words().len() == 1 && phrase.words().iter().all(by_rule) {
                seen.insert(form.clone());
                found.push((form, word));
            }
        }
    }
    found
}
