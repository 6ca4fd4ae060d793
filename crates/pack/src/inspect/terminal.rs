//! An inspection as a person reads it.

use std::fmt;

use cognate::model::Unknown;
use cognate::model::phrase::Found;
use cognate::model::unknown::Fallback;
use cognate::text::Normalisation;
use indicatif::HumanCount;
use serde_json::Value;

use crate::inspect::{Inspection, TextView, WordView};

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.bytes as f64 / 1e6;
        writeln!(f, "{}", self.file)?;
        writeln!(f, "  fingerprint    {}", self.fingerprint)?;
        writeln!(
            f,
            "  vectors        {} words × {} dimensions, {}, {megabytes:.1} MB",
            HumanCount(self.words as u64),
            self.dims,
            self.dtype.name(),
        )?;
        match self.corpus_tokens {
            Some(tokens) => {
                let words = HumanCount(self.counted_words as u64);
                write!(f, "  counts         {words} words in {} tokens", HumanCount(tokens))?;
                match self.corpus_documents {
                    Some(documents) => writeln!(f, ", {} documents", HumanCount(documents))?,
                    None => writeln!(f)?,
                }
            }
            None => writeln!(f, "  counts         none")?,
        }
        writeln!(f, "  frequency      {}", self.frequency.name())?;
        let preset = Normalisation::PRESETS
            .iter()
            .find(|name| Normalisation::preset(name).as_ref() == Some(&self.normalisation));
        match preset {
            Some(name) => writeln!(f, "  normalisation  {name}")?,
            None => writeln!(f, "  normalisation  {}", one_line(&self.normalisation))?,
        }
        writeln!(f, "  unknown words  {}", of_unknown(&self.unknown))?;
        writeln!(f, "  auto           {}: {}", self.auto, self.auto_because)?;
        writeln!(f, "  licence        {}", self.licence.as_deref().unwrap_or("not stated"))?;
        writeln!(f, "  created by     {}", self.created_by.as_deref().unwrap_or("not stated"))?;
        for section in &self.sections {
            writeln!(f, "  section        {}{}", section.name, in_short(&section.settings))?;
        }
        let tables =
            self.tables.iter().map(|t| format!("{} {} {:?}", t.name, t.dtype.name(), t.shape));
        writeln!(f, "  tables         {}", tables.collect::<Vec<_>>().join(", "))?;
        self.texts.iter().try_for_each(|text| write!(f, "\n{text}"))
    }
}

impl fmt::Display for TextView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.text)?;
        for token in &self.tokens {
            if token.words.is_empty() {
                writeln!(f, "  {:<16} unknown", token.token)?;
            }
            for word in &token.words {
                writeln!(f, "  {:<16} {word}", token.token)?;
            }
        }
        if self.tokens.is_empty() {
            writeln!(f, "  (no tokens)")?;
        }
        Ok(())
    }
}

impl fmt::Display for WordView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.word.as_deref().unwrap_or("");
        let how = match self.found {
            Found::Listed => "known".to_owned(),
            Found::Shortened => format!("known as {name}, shortened"),
            Found::Stem => format!("known by its stem {name}"),
            Found::Part => format!("known in part: {name}"),
            Found::NGrams => "vector from its n-grams".to_owned(),
            Found::Pieces => format!("vector from its pieces {}", self.pieces.join(" ")),
            Found::Hash => "vector from its hash".to_owned(),
        };
        write!(f, "{how:<28} length {:.3}", self.norm)?;
        if let Some(idf) = self.idf {
            write!(f, "  idf {idf:.2}")?;
        }
        if !self.neighbours.is_empty() {
            let near = self.neighbours.iter().map(|n| format!("{} {:.2}", n.word, n.cosine));
            write!(f, "  near: {}", near.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}

/// What becomes of words that are not listed, in words.
fn of_unknown(unknown: &Unknown) -> String {
    let Fallback { suffixes, parts, piece_norm, hash_norm, .. } = match unknown {
        Unknown::Skip => return "left out".to_owned(),
        Unknown::Subword => return "a vector from parts of the word".to_owned(),
        Unknown::Fallback(rules) => rules,
    };
    let tried = [
        (!suffixes.is_empty(), "the stem"),
        (*parts, "parts around an apostrophe"),
        (piece_norm.is_some(), "pieces"),
        (hash_norm.is_some(), "a vector from the hash"),
    ];
    let tried = tried.iter().filter(|(is, _)| *is).map(|(_, what)| *what);
    tried.collect::<Vec<_>>().join(", then ")
}

/// A section's settings on one line: of what holds more, the names alone. `--json` has everything.
fn in_short(settings: &Value) -> String {
    let Some(fields) = settings.as_object() else { return String::new() };
    let nested = |value: &Value| value.is_object() || value.is_array();
    let plain = fields.iter().filter(|(_, value)| !nested(value));
    let mut told: Vec<String> = plain.map(|(name, value)| format!("{name} {value}")).collect();
    for (name, value) in fields.iter().filter(|(_, value)| nested(value)) {
        let inner = value.as_object().map(|inner| inner.keys().cloned().collect::<Vec<_>>());
        told.push(match inner {
            // Of a list of alike entries, as thresholds are, the names of the entries say enough.
            Some(_) if fields.values().all(Value::is_object) => name.clone(),
            Some(names) => format!("{name} ({})", names.join(", ")),
            None => format!("{name} (…)"),
        });
    }
    format!(": {}", told.join(", "))
}

/// Settings as JSON on one line.
fn one_line(settings: &impl serde::Serialize) -> String {
    serde_json::to_string(settings).unwrap_or_default()
}
