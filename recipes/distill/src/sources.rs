//! Reads lines of text files, with normalised white space, without repeats and excluded texts.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use cognate::model::vocabulary::hash;
use cognate::text;
use cognate::text::{Mentions, Normalisation, Tokens, Urls};
use cognate_files::Place;
use cognate_files::input::Input;
use cognate_files::progress::Progress;
use cognate_train::TrainError;

/// Maximum bytes of a line, far more than any sentence.
const LINE_BYTES: usize = 1 << 20;
/// A line is left out if it shares this many consecutive tokens with an excluded text.
const SHARED: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The line's words, separated by single spaces.
    pub text: String,
    pub tokens: usize,
}

/// Lines in the order of their files.
#[derive(Debug, Default)]
pub struct Lines {
    pub lines: Vec<Line>,
    /// Number of lines left out because they share too much with an excluded text.
    pub apart: usize,
}

/// Excluded texts, such as those of a test set.
#[derive(Debug, Default)]
pub struct ExcludedTexts {
    whole: HashSet<u64>,
    runs: HashSet<u64>,
}

/// Reads text files with one set of rules.
#[derive(Debug)]
pub struct Reader<'r> {
    rules: &'r Normalisation,
    /// The text column of tables.
    column: &'r str,
    tokens: Tokens,
    seen: HashSet<u64>,
}

impl<'r> Reader<'r> {
    /// A reader; the text column of `.tsv` files is called `column`.
    pub fn new(rules: &'r Normalisation, column: &'r str) -> Self {
        Self { rules, column, tokens: Tokens::new(), seen: HashSet::new() }
    }

    /// The lines of files that have a token and do not repeat the tokens of an earlier line of this
    /// reader.
    pub fn lines(&mut self, files: &[PathBuf], apart: &ExcludedTexts) -> Result<Lines, TrainError> {
        let mut found = Lines::default();
        for file in files {
            let column = is_table(file).then_some(self.column);
            each_line(file, column, &mut |line| {
                text::tokenise(self.rules, line, &mut self.tokens);
                let joined = joined(self.tokens.texts());
                if self.tokens.is_empty() || !self.seen.insert(hash(joined.as_bytes())) {
                    return;
                }
                if apart.shares(&joined) {
                    found.apart += 1;
                    return;
                }
                let words = line.split_whitespace().filter(|word| !is_dropped(self.rules, word));
                let text = words.collect::<Vec<_>>().join(" ");
                found.lines.push(Line { text, tokens: self.tokens.len() });
            })?;
        }
        Ok(found)
    }

    /// Reads excluded texts: every field of every line.
    pub fn apart(&mut self, files: &[PathBuf]) -> Result<ExcludedTexts, TrainError> {
        let mut apart = ExcludedTexts::default();
        for file in files {
            each_line(file, None, &mut |line| {
                for field in line.split('\t') {
                    text::tokenise(self.rules, field, &mut self.tokens);
                    apart.insert(&joined(self.tokens.texts()));
                }
            })?;
        }
        Ok(apart)
    }
}

/// Whether the rules drop a word because it is an address or a user name. Teachers must not see
/// words that the vectors do not represent.
fn is_dropped(rules: &Normalisation, word: &str) -> bool {
    let begins = |beginnings: &[&str]| beginnings.iter().any(|start| word.starts_with(start));
    (rules.urls == Urls::Drop && begins(&["http://", "https://", "www."]))
        || (rules.mentions == Mentions::Drop && begins(&["@"]))
}

impl ExcludedTexts {
    fn insert(&mut self, joined: &str) {
        self.whole.insert(hash(joined.as_bytes()));
        self.runs.extend(runs(joined));
    }

    /// Whether a text is excluded, or shares [`SHARED`] consecutive tokens with an excluded one.
    pub(super) fn shares(&self, joined: &str) -> bool {
        self.whole.contains(&hash(joined.as_bytes()))
            || (!self.runs.is_empty() && runs(joined).any(|run| self.runs.contains(&run)))
    }
}

/// The hashes of all sequences of [`SHARED`] tokens.
fn runs(joined: &str) -> impl Iterator<Item = u64> {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(joined.match_indices(' ').map(|(at, _)| at + 1))
        .chain(std::iter::once(joined.len() + 1))
        .collect();
    let run = |ends: &[usize]| hash(&joined.as_bytes()[ends[0]..ends[SHARED] - 1]);
    starts.windows(SHARED + 1).map(run).collect::<Vec<_>>().into_iter()
}

/// The tokens separated by spaces.
pub(super) fn joined<'t>(tokens: impl Iterator<Item = &'t str>) -> String {
    tokens.collect::<Vec<_>>().join(" ")
}

fn is_table(file: &Path) -> bool {
    let packed = file.extension().is_some_and(|kind| kind == "gz" || kind == "zst");
    let name = if packed { file.file_stem().map(Path::new) } else { Some(file) };
    name.and_then(Path::extension).is_some_and(|kind| kind == "tsv")
}

/// Calls a function with every line, or with the text column of every row.
fn each_line(
    file: &Path,
    column: Option<&str>,
    take: &mut dyn FnMut(&str),
) -> Result<(), TrainError> {
    let progress = Progress::bytes("reading");
    let mut input = Input::open(file)?;
    input.skip_byte_order_mark()?;
    let mut place = None;
    while let Some(line) = input.read_line_bounded(LINE_BYTES)? {
        let Ok(line) = std::str::from_utf8(line) else {
            let place = Place::Line(input.lines());
            return Err(input.malformed(place, "the text is not UTF-8").into());
        };
        match (column, place) {
            (None, _) => take(line),
            (Some(_), Some(place)) => take(line.split('\t').nth(place).unwrap_or_default()),
            (Some(column), None) => {
                place = line.split('\t').position(|name| name == column);
                if place.is_none() {
                    let problem =
                        format!("no column `{column}` in the header; --text-column names it");
                    return Err(input.malformed(Place::Line(1), problem).into());
                }
            }
        }
        progress.follow(&input);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)], apart: &str) -> Result<(Vec<String>, usize), TrainError> {
        let folder = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        for (name, content) in files.iter().chain(&[("apart", apart)]) {
            paths.push(folder.path().join(name));
            std::fs::write(paths.last().unwrap(), content).unwrap();
        }
        let rules = Normalisation::preset("plain").unwrap();
        let mut reader = Reader::new(&rules, "text");
        let apart = reader.apart(&[paths.pop().unwrap()])?;
        let found = reader.lines(&paths, &apart)?;
        Ok((found.lines.into_iter().map(|line| line.text).collect(), found.apart))
    }

    #[test]
    fn lines_are_kept_once_and_without_what_is_kept_apart() {
        let text =
            "A  b c.\n\na, B c\n1 2 3 4 5 6 7 8\n0 one two three four five six seven eight 9\n";
        let apart = "5\tA test.\tx one two three four five six seven eight\n";
        let (lines, left) =
            read(&[("text", text), ("more", "a test!\nanother test\n")], apart).unwrap();
        assert_eq!(lines, ["A b c.", "1 2 3 4 5 6 7 8", "another test"]);
        assert_eq!(left, 2);
    }

    #[test]
    fn tables_have_their_text_in_a_column() {
        let table =
            "id\ttext\tyear\n1\tfirst @one text\t2020\n2\n3\tsecond text http://t.co\t2021\n";
        assert_eq!(read(&[("a.tsv", table)], "").unwrap().0, ["first text", "second text"]);
        let refusal = read(&[("a.tsv", "id\ttweet\n1\tx\n")], "").unwrap_err().to_string();
        assert!(refusal.contains("--text-column"), "{refusal}");
    }
}
