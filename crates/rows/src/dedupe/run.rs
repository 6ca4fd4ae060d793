//! The run: the records of files searched, and what is written of them.

use std::time::Instant;

use cognate::engine::Engine;

use crate::dedupe::judge::Judge;
use crate::dedupe::search::Found;
use crate::dedupe::texts::{Source, Texts};
use crate::dedupe::{DedupeError, Options, Report, output, search};

/// Looks for duplicates and writes what was found.
pub fn run(engine: &Engine, options: &Options) -> Result<Report, DedupeError> {
    let begun = Instant::now();
    output::check(options)?;
    let search = &options.search;
    let judge = Judge::new(engine, search)?;
    let mut texts = Texts { sources: Vec::new() };
    for path in options.against.iter().chain([&options.file]) {
        let column = options.text.as_deref();
        texts.sources.push(Source::file(path, options.records, column, &search.folder)?);
    }
    let mut pairs = output::Pairs::create(options)?;
    let found = search::search(judge, search, &texts, |found, known| pairs.push(found, known));
    // Where that ended the search it says which file it was.
    pairs.check()?;
    let found = found?;
    pairs.finish()?;
    if let Some(source) = texts.sources.last() {
        output::write(options, source, &found)?;
    }
    let Found { mut report, .. } = found;
    report.seconds = begun.elapsed().as_secs_f64();
    Ok(report)
}
