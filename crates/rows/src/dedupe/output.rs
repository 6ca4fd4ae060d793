//! Writes the results: the records with their duplicates marked, or only the records without
//! duplicates; and all matches. Records are numbered from 1, without the header.

use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};

use cognate::model::writer::clash;
use cognate_files::progress::Progress;
use cognate_files::records::{Added, Format};

use crate::dedupe::block::Match;
use crate::dedupe::search::SearchResult;
use crate::dedupe::texts::{Source, TEXT};
use crate::dedupe::{DedupeError, Options};
use crate::growing::{Destination, Growing};
use crate::{STANDARD, appender};

/// Bytes of records written at a time.
const BUFFER: usize = 1 << 16;

/// Refuses outputs that would overwrite another file of the run.
pub(super) fn check(options: &Options) -> Result<(), DedupeError> {
    let (output, pairs) = (options.output.as_deref(), options.pairs.as_deref());
    let named = [("-o", output), ("--pairs", pairs), ("--bad-rows", options.bad_rows.path())];
    let written: Vec<(&str, &Path)> =
        named.iter().filter_map(|(flag, path)| Some((*flag, (*path)?))).collect();
    let names = [
        output.map(|path| Format::of_output(path).map(drop)),
        pairs.map(|path| Format::Tsv.only(path)),
    ];
    if let Some(Err(problem)) = names.into_iter().flatten().find(Result::is_err) {
        return Err(DedupeError::Options(problem));
    }
    if pairs.is_some_and(|path| path.as_os_str() == STANDARD) {
        let problem = "--pairs: expected the name of a file, found `-`";
        return Err(DedupeError::Options(problem.to_owned()));
    }
    let read = options.against.iter().chain([&options.file]).map(PathBuf::as_path);
    match clash(&written, read) {
        Some(problem) => Err(DedupeError::Options(problem)),
        None => Ok(()),
    }
}

/// The file of all matches: the numbers of both records, their score, and their shared words.
pub(super) struct Pairs {
    out: Option<(PathBuf, Growing)>,
    explain: bool,
    failure: Option<DedupeError>,
}

impl Pairs {
    pub(super) fn create(options: &Options) -> Result<Self, DedupeError> {
        let (explain, across) = (options.search.explain, options.against.is_some());
        let mut pairs = Self { out: None, explain, failure: None };
        if let Some(path) = &options.pairs {
            let mut out = Growing::create(path).map_err(failed(path))?;
            let names = if across { "known\trecord\tscore" } else { "first\tsecond\tscore" };
            let shared = if explain { "\tshared" } else { "" };
            writeln!(out, "{names}{shared}").map_err(failed(path))?;
            pairs.out = Some((path.clone(), out));
        }
        Ok(pairs)
    }

    /// Writes a match; `known` is the number of texts in the other file. An error is stored for
    /// [`check`](Self::check).
    pub(super) fn push(&mut self, found: &Match, known: u32) -> io::Result<()> {
        self.write(found, known).map_err(|source| {
            let kind = source.kind();
            self.failure = self.out.as_ref().map(|(path, _)| failed(path)(source));
            kind.into()
        })
    }

    pub(super) fn check(&mut self) -> Result<(), DedupeError> {
        self.failure.take().map_or(Ok(()), Err)
    }

    fn write(&mut self, found: &Match, known: u32) -> io::Result<()> {
        let Some((_, out)) = &mut self.out else { return Ok(()) };
        let (one, other) = (u64::from(found.earlier) + 1, u64::from(found.later - known) + 1);
        write!(out, "{one}\t{other}\t{}", found.score)?;
        if self.explain {
            write!(out, "\t{}", found.shared)?;
        }
        out.write_all(b"\n")
    }

    pub(super) fn finish(self) -> Result<(), DedupeError> {
        match self.out {
            Some((path, out)) => out.finish().map(drop).map_err(failed(&path)),
            None => Ok(()),
        }
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> DedupeError {
    let path = path.to_owned();
    move |source| DedupeError::Write { path: path.clone(), source }
}

/// Writes the records, and returns the header of a single column that may have been meant as a text.
pub(super) fn write(
    options: &Options,
    source: &Source<'_>,
    found: &SearchResult<'_>,
) -> Result<Option<String>, DedupeError> {
    let SearchResult { judge, firsts, clusters, .. } = found;
    let explain = options.search.explain;
    let Some((mut records, column)) = source.records()? else { return Ok(None) };
    let name = options.output.clone().unwrap_or_else(|| PathBuf::from("standard output"));
    let failed = failed(&name);
    let mut out = Destination::create(options.output.as_deref()).map_err(&failed)?;
    let across = judge.known.is_some();
    let mut names = vec![if across { "duplicate_of" } else { "cluster" }, "score"];
    names.extend(explain.then_some("shared"));
    let names: Vec<String> = names.iter().map(|name| options.prefix.clone() + name).collect();
    // Records that are left as they came have nothing added.
    let added: &[String] = if options.drop { &[] } else { &names };
    let output = options.output.as_deref();
    let mut appender = appender(&records, added, &options.columns, output)?;
    let mut text = String::new();
    appender.header(records.header(), &mut text);
    if let Some(name) = names.iter().find(|name| !options.drop && records.names().contains(name)) {
        return Err(taken(name));
    }
    let alone = options.text.is_none() && matches!(records.names(), [name] if name != TEXT);
    let header = records.header().filter(|_| alone).map(str::to_owned);
    let progress = Progress::bytes("writing");
    let (mut id, mut bad) = (judge.known.unwrap_or_default(), source.bad_again());
    loop {
        records.follow(&progress);
        let read = bad.next(&mut records, |record| {
            let own = record.field(&column)?.filter(|_| explain);
            let has = |name: &&String| !options.drop && record.has(name);
            Ok((own.unwrap_or_default().into_owned(), names.iter().find(has)))
        })?;
        let Some((own, has)) = read else { break };
        if let Some(name) = has {
            return Err(taken(name));
        }
        let raw = records.raw();
        let first = firsts.get(id as usize).copied().unwrap_or(id);
        let duplicate = clusters.duplicate(id, first);
        let duplicate = duplicate.map_err(|error| options.search.room(error))?;
        if options.drop {
            if duplicate.is_none() {
                appender.record(raw, &[], &mut text);
            }
        } else {
            let shared = match &duplicate {
                Some(duplicate) if explain => match &duplicate.shared {
                    Some(shared) => shared.clone(),
                    // A text with the same tokens shares all its words.
                    None => judge.shared(&own, &own),
                },
                _ => String::new(),
            };
            let number = |of: u32| Added::Count(u64::from(of) + 1);
            let added = match &duplicate {
                Some(found) => [number(found.of), Added::Score(found.score), Added::Text(&shared)],
                None if across => [Added::Nothing; 3],
                None => [number(id), Added::Nothing, Added::Nothing],
            };
            appender.record(raw, added.get(..names.len()).unwrap_or(&added), &mut text);
        }
        id += 1;
        if text.len() >= BUFFER {
            if !out.put(text.as_bytes()).map_err(&failed)? {
                return Ok(header);
            }
            text.clear();
        }
    }
    out.put(text.as_bytes()).map_err(&failed)?;
    out.finish().map_err(&failed)?;
    Ok(header)
}

fn taken(name: &str) -> DedupeError {
    let problem = format!(
        "the records have a field `{name}` already; --prefix puts something before the names of added ones"
    );
    DedupeError::Options(problem)
}
