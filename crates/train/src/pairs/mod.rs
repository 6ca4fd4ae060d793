//! `cognate pairs`: makes labelled pairs of texts from unlabelled text, after De Boom, Van Canneyt,
//! Demeester and Dhoedt ("Representation learning for very short texts using weighted word
//! embedding aggregation", 2016, section 4).
//!
//! Running text gives related pairs from one paragraph; tweets give related pairs that share
//! hashtags or an event within minutes. In both cases there are as many non-related pairs as
//! related ones, and the same seed gives the same bytes. What the pairs are used for is not known
//! here.

mod passages;
mod pool;
mod tweets;

use std::io;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use cognate::model::disk;
use cognate::model::disk::LocalDisk;
use cognate::model::writer::{Target, clash, directory_of};
use cognate_files::records::Format;
use cognate_files::written::Written;
pub use passages::{Lengths, TextMade, TextOptions, from_text};
use serde::Serialize;
pub use tweets::{Columns, Filter, Rejections, Texts, TweetOptions, TweetsMade, from_tweets};

use crate::{Result, TrainError};

/// Maximum bytes of a written text. `cognate eval pairs` and the service accept as many characters.
const TEXT_BYTES: usize = 8192;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Related,
    NonRelated,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Rows {
    pub path: PathBuf,
    pub rows: u64,
    pub related: u64,
    pub non_related: u64,
    pub words: u64,
    pub bytes: u64,
}

impl std::fmt::Display for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.path.display())?;
        let (rows, related, non_related) = (self.rows, self.related, self.non_related);
        writeln!(f, "  {rows} rows: {related} related, {non_related} non-related")?;
        let mean = self.words as f64 / (2.0 * rows.max(1) as f64);
        writeln!(f, "  {} words, {mean:.1} a text; {} bytes", self.words, self.bytes)
    }
}

struct Output {
    written: Rows,
    target: Target,
    sink: Written,
}

impl Output {
    fn create(path: &Path, inputs: &[PathBuf]) -> Result<Self> {
        Format::Tsv.only(path).map_err(TrainError::Options)?;
        if let Some(problem) = clash(&[("-o", path)], inputs.iter().map(PathBuf::as_path)) {
            return Err(TrainError::Options(problem));
        }
        let target = Target::follow(path).map_err(failed(path))?;
        let file = disk::nameless(directory_of(&target.path)).map_err(failed(path))?;
        let sink = Written::new(file, path);
        let written = Rows { path: path.to_owned(), ..Rows::default() };
        let mut output = Self { written, target, sink };
        output.write("label\ttext1\ttext2\n")?;
        Ok(output)
    }

    fn push(&mut self, label: Label, texts: [&str; 2]) -> Result<()> {
        let (label, count) = match label {
            Label::Related => ("1\t", &mut self.written.related),
            Label::NonRelated => ("0\t", &mut self.written.non_related),
        };
        *count += 1;
        self.written.rows += 1;
        let words: usize = texts.map(|text| text.split_whitespace().count()).iter().sum();
        self.written.words += words as u64;
        let [one, other] = texts;
        for part in [label, one, "\t", other, "\n"] {
            self.write(part)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Rows> {
        let Self { mut written, target, sink } = self;
        let failed = failed(&written.path);
        let moved = sink.into_file().and_then(|mut rows| {
            let bytes = rows.stream_position()?;
            rows.rewind()?;
            disk::replace(&LocalDisk, &target, bytes, |file| io::copy(&mut rows, file))
        });
        written.bytes = moved.map_err(failed)?;
        Ok(written)
    }

    fn write(&mut self, part: &str) -> Result<()> {
        self.sink.write_all(part.as_bytes()).map_err(failed(&self.written.path))
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> TrainError {
    let path = path.to_owned();
    move |source| TrainError::Write { path: path.clone(), source }
}
