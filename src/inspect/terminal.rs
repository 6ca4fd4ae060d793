//! An inspection as a person reads it.

use std::fmt;

use indicatif::HumanCount;

use crate::inspect::Inspection;
use crate::inspect::TextView;
use crate::inspect::WordView;
use crate::model::phrase::Found;
use crate::text::Normalisation;

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
        writeln!(f, "  unknown words  {}", one_line(&self.unknown))?;
        writeln!(f, "  auto           {}: {}", self.auto, self.auto_because)?;
        writeln!(f, "  licence        {}", self.licence.as_deref().unwrap_or("not stated"))?;
        writeln!(f, "  created by     {}", self.created_by.as_deref().unwrap_or("not stated"))?;
        for section in &self.sections {
            writeln!(f, "  section        {} {}", section.name, section.settings)?;
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

/// Settings as JSON on one line.
fn one_line(settings: &impl serde::Serialize) -> String {
    serde_json::to_string(settings).unwrap_or_default()
}
