//! Records with named fields: JSON objects, or rows separated by tabs or commas.
//!
//! A record keeps the bytes it was read from, so that it can be written back unchanged with fields
//! added ([`Appender`]). What a field means is known to the caller.

mod reader;
mod table;

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

pub use reader::{Options, Records};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;
pub use table::{Added, Appender};

use crate::input::shown;
use crate::records::table::Cells;
use crate::written::is_packed;

const RECORD_BYTES: usize = 4 << 20;

/// Endings of names that promise something else than rows of text.
const NOT_WRITTEN: [&str; 12] =
    ["arrow", "bz2", "db", "feather", "html", "ipc", "json", "npy", "npz", "parquet", "xlsx", "xz"];

/// The ending of a file's name in lower case, before `.gz` or `.zst`.
fn ending(path: &Path) -> Option<String> {
    let unpacked = if is_packed(path) { path.with_extension("") } else { path.to_owned() };
    Some(unpacked.extension()?.to_str()?.to_ascii_lowercase())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Ndjson,
    /// Rows split at tabs, without any quoting.
    Tsv,
    /// Rows split at this ASCII character, with quoting as in RFC 4180.
    Csv(u8),
    /// A text a line, tabs and all, in one column.
    Lines,
}

impl Format {
    pub const NAMES: [&'static str; 3] = ["ndjson", "tsv", "csv"];
    pub const CSV: Self = Self::Csv(b',');

    pub fn of_path(path: &Path) -> Option<Self> {
        match ending(path)?.as_str() {
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            "tsv" | "tab" => Some(Self::Tsv),
            "csv" => Some(Self::CSV),
            _ => None,
        }
    }

    /// The format that the name of an output asks for; `None` leaves records as they were read.
    pub fn of_output(path: &Path) -> Result<Option<Self>, String> {
        let other = |ending: &String| NOT_WRITTEN.contains(&ending.as_str());
        match ending(path).filter(other) {
            Some(ending) => Err(format!(
                "{}: rows are not written as .{ending}; name it .ndjson, .tsv or .csv, with .gz or .zst \
                 behind it or without",
                path.display()
            )),
            None => Ok(Self::of_path(path)),
        }
    }

    /// Refuses the name of an output that is always written in this format and says another.
    pub fn only(self, path: &Path) -> Result<(), String> {
        let read = Self::of_output(path)?.filter(|asked| *asked != self);
        let name = if self == Self::Ndjson { "NDJSON" } else { "TSV" };
        let refused =
            format!("{}: it is written as {name}, whatever its name says", path.display());
        read.map_or(Ok(()), |_| Err(refused))
    }

    fn of_line(line: &[u8]) -> Self {
        match line {
            line if line.trim_ascii_start().starts_with(b"{") => Self::Ndjson,
            line if line.contains(&b'\t') => Self::Tsv,
            _ => Self::CSV,
        }
    }

    /// The byte between the fields of a row; `None` for objects.
    fn delimiter(self) -> Option<u8> {
        match self {
            Self::Ndjson => None,
            Self::Tsv | Self::Lines => Some(b'\t'),
            Self::Csv(delimiter) => Some(delimiter),
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "ndjson" => Ok(Self::Ndjson),
            "tsv" => Ok(Self::Tsv),
            "csv" => Ok(Self::CSV),
            _ => Err(format!("expected one of {}", Self::NAMES.join(", "))),
        }
    }
}

/// A field that is read from every record, looked up once with [`Records::column`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    name: String,
    at: Option<usize>,
}

impl Column {
    pub fn name(&self) -> &str {
        &self.name
    }
}

pub struct Record<'r> {
    raw: &'r str,
    fields: Fields<'r>,
}

enum Fields<'r> {
    Object(Object<'r>),
    Cells(&'r Cells),
}

impl<'r> Record<'r> {
    pub fn raw(&self) -> &'r str {
        self.raw
    }

    /// The value of a column as text. A string, number or boolean of an object is formatted as in a
    /// table; `None` if the field is missing or `null`; a list or an object is an error.
    pub fn field(&self, column: &Column) -> Result<Option<Cow<'_, str>>, String> {
        match &self.fields {
            Fields::Cells(cells) => Ok(column.at.and_then(|at| cells.get(at)).map(Cow::Borrowed)),
            Fields::Object(object) => object.text(&column.name),
        }
    }

    pub fn needed(&self, column: &Column) -> Result<Cow<'_, str>, String> {
        self.field(column)?.ok_or_else(|| format!("expected a field `{}`", column.name))
    }

    pub fn has(&self, name: &str) -> bool {
        match &self.fields {
            Fields::Cells(cells) => cells.named(name).is_some(),
            Fields::Object(object) => object.has(name),
        }
    }
}

/// The fields of an object; each value is parsed only when it is read.
struct Object<'r>(Vec<(Cow<'r, str>, &'r RawValue)>);

/// A string that is borrowed unless it contains escapes.
#[derive(Deserialize)]
struct Name<'r>(#[serde(borrow)] Cow<'r, str>);

pub fn json_object<'r, T: Deserialize<'r>>(line: &'r str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|error| match error.classify() {
        // serde_json's message would quote the value found, of any length.
        Category::Data => format!("expected a JSON object, found {}", shown(line.as_bytes())),
        _ => format!("expected a JSON object: {error}"),
    })
}

impl<'r> Object<'r> {
    /// The last field with this name, as other JSON readers choose.
    fn value(&self, name: &str) -> Option<&'r str> {
        let found = self.0.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.get())
    }

    fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_ref())
    }

    /// A string, number or boolean as a table would show it; an error for a list or an object.
    fn text(&self, name: &str) -> Result<Option<Cow<'r, str>>, String> {
        let Some(value) = self.value(name) else { return Ok(None) };
        match value.as_bytes().first() {
            Some(b'"') => match serde_json::from_str(value) {
                Ok(Name(text)) => Ok(Some(text)),
                Err(error) => Err(format!("`{name}`: {error}")),
            },
            Some(b'n') => Ok(None),
            Some(b'[' | b'{') => Err(format!("`{name}`: expected a string or a number")),
            _ => Ok(Some(value.into())),
        }
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectFields)
    }
}

struct ObjectFields;

impl<'de> Visitor<'de> for ObjectFields {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            fields.push((name, map.next_value()?));
        }
        Ok(Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::ReadError;
    use crate::input::Input;

    fn records(text: &str, format: Option<Format>, headless: bool) -> Result<Records, ReadError> {
        let input = Input::from_bytes("memory", text.as_bytes().to_vec())?;
        Records::new(input, Options { format, headless })
    }

    fn column(records: &mut Records, name: &str) -> Result<Vec<Option<String>>, ReadError> {
        let column = records.column(name)?;
        let mut found = Vec::new();
        while let Some(record) = records.read()? {
            let field = record.field(&column).map(|field| field.map(|field| field.into_owned()));
            found.push(field.map_err(|problem| records.wrong(problem))?);
        }
        Ok(found)
    }

    #[track_caller]
    fn refused(text: &str, format: Format, parts: &[&str]) {
        let read = records(text, Some(format), false);
        let message = match read.and_then(|mut read| column(&mut read, "text")) {
            Ok(found) => panic!("{found:?}"),
            Err(error) => error.to_string(),
        };
        for part in parts {
            assert!(message.contains(part), "`{part}` is missing in: {message}");
        }
    }

    #[test]
    fn a_format_is_told_by_name_or_first_line() {
        for (name, format) in [
            ("a.ndjson", Some(Format::Ndjson)),
            ("a.JSONL", Some(Format::Ndjson)),
            ("a.tsv.gz", Some(Format::Tsv)),
            ("a.csv.zst", Some(Format::CSV)),
            ("a.txt", None),
            ("-", None),
        ] {
            assert_eq!(Format::of_path(Path::new(name)), format, "{name}");
        }
        for (text, format) in
            [(" {\"a\":1}", Format::Ndjson), ("a\tb,c\n", Format::Tsv), ("a,b", Format::CSV)]
        {
            assert_eq!(records(text, None, false).unwrap().format(), format, "{text}");
        }
    }

    #[test]
    fn a_tab_behind_the_first_line_of_texts_is_part_of_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, "one\ntwo\tthree\n\n").unwrap();
        let mut read = Records::open(&path, Options::default()).unwrap();
        let texts = ["one", "two\tthree", ""].map(|text| Some(text.to_owned()));
        assert_eq!(column(&mut read, "text").unwrap(), texts);
        let (mut appender, mut out) = (Appender::new(read.format(), ["n"]), String::new());
        appender.record("two\tthree", &[Added::Count(1)], &mut out);
        assert_eq!(out, "two three\t1\n");
    }

    #[test]
    fn fields_are_found_by_name_and_by_number() {
        let rows = "id\ttext\n1\tone \"two\n2\t\n\n";
        let texts = [Some("one \"two".to_owned()), Some(String::new())];
        for name in ["text", "2"] {
            assert_eq!(column(&mut records(rows, None, false).unwrap(), name).unwrap(), texts);
        }
        let mut headless =
            records("1,a\n2,\"b, \"\"c\"\"\nd\"\n", Some(Format::CSV), true).unwrap();
        assert_eq!(headless.names(), ["1", "2"]);
        let texts = [Some("a".to_owned()), Some("b, \"c\"\nd".to_owned())];
        assert_eq!(column(&mut headless, "2").unwrap(), texts);
        let objects =
            "{\"text\":\"a\\u00e9\",\"n\":1}\n{\"n\":2.50,\"text\":null}\n{\"text\":true}";
        let texts = [Some("a\u{e9}".to_owned()), None, Some("true".to_owned())];
        assert_eq!(column(&mut records(objects, None, false).unwrap(), "text").unwrap(), texts);
        let numbers = [Some("1".to_owned()), Some("2.50".to_owned()), None];
        assert_eq!(column(&mut records(objects, None, false).unwrap(), "n").unwrap(), numbers);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_line() {
        refused(
            "id\ttext\n1\ta\n2\n",
            Format::Tsv,
            &["memory, line 3", "expected 2 columns, found 1"],
        );
        refused("id,body\n", Format::CSV, &["line 1", "`text`", "id, body"]);
        refused("id,text\n1,\"a\nb\n", Format::CSV, &["line 2", "quotation mark"]);
        refused("", Format::CSV, &["header"]);
        refused("{}\n[1]\n", Format::Ndjson, &["line 2", "expected a JSON object, found `[1]`"]);
        refused("{\"text\":\n", Format::Ndjson, &["line 1", "expected a JSON object"]);
        refused("{\"text\":[]}\n", Format::Ndjson, &["line 1", "`text`", "string"]);
        let long = format!("id,text\n1,{}\n", "x".repeat(5 << 20));
        refused(&long, Format::CSV, &["line 2", "longer than"]);
        let open = format!("id,text\n1,\"{}", "x\n".repeat(3 << 20));
        refused(&open, Format::CSV, &["line 2", "row is longer than 4194304", "not be closed"]);
    }

    #[test]
    fn records_that_cannot_be_read_are_passed_over() {
        let sound = |text: &[u8], format| {
            let input = Input::from_bytes("memory", text.to_vec()).unwrap();
            let mut read = Records::new(input, Options { format: Some(format), headless: false });
            let read = read.as_mut().unwrap();
            let (mut good, mut bad) = (Vec::new(), Vec::new());
            loop {
                let found = read.read().map(|found| found.map(|record| record.raw().to_owned()));
                match found {
                    Ok(Some(raw)) => good.push(raw),
                    Ok(None) => return (good, bad),
                    Err(error) => {
                        assert!(read.is_passable(), "{error}");
                        bad.push((read.line(), read.raw().to_owned()));
                    }
                }
            }
        };
        let told = |places: &[(u64, &str)]| -> Vec<(u64, String)> {
            places.iter().map(|(line, raw)| (*line, (*raw).to_owned())).collect()
        };
        let tsv = b"id\ttext\n1\ta\n2\n3\t\xff\n4\td\n";
        let bad = [(3, "2"), (4, "3\t\u{fffd}")];
        assert_eq!(sound(tsv, Format::Tsv), (vec!["1\ta".into(), "4\td".into()], told(&bad)));
        let csv = b"id,text\n1,\"a\n\xff\n2,b\n3,\"c\n";
        assert_eq!(
            sound(csv, Format::CSV),
            (vec!["2,b".into()], told(&[(3, "1,\"a\u{fffd}"), (5, "3,\"c")]))
        );
        let objects = b"{\"text\":1}\n{\"text\":\n[]\n";
        let bad = told(&[(2, "{\"text\":"), (3, "[]")]);
        assert_eq!(sound(objects, Format::Ndjson), (vec!["{\"text\":1}".into()], bad));
        let long = format!("text\n{}\nshort", "x".repeat(5 << 20));
        let mut read = records(&long, Some(Format::CSV), false).unwrap();
        assert!(read.read().is_err());
        assert!(read.is_passable() && read.raw().len() == 1000);
        assert_eq!(read.read().unwrap().unwrap().raw(), "short");
        assert_eq!(read.line(), 3);
    }

    #[test]
    fn cells_stand_between_any_character() {
        let text = "id;text\n1;\"a;b\"\n";
        let mut read = records(text, Some(Format::Csv(b';')), false).unwrap();
        assert_eq!(column(&mut read, "text").unwrap(), [Some("a;b".to_owned())]);
        let mut out = String::new();
        let mut appender = Appender::new(read.format(), ["note"]);
        appender.header(read.header(), &mut out);
        appender.record("1;\"a;b\"", &[Added::Text("c;d, e")], &mut out);
        assert_eq!(out, "id;text;note\n1;\"a;b\";\"c;d, e\"\n");
        refused(text, Format::CSV, &["id;text", "--delimiter"]);
    }

    #[test]
    fn fewer_fields_are_written_in_the_order_asked_for() {
        let chosen = |text: &str, format, fields: [&str; 3]| {
            let mut records = records(text, Some(format), false).unwrap();
            let mut appender = Appender::new(format, ["score"]);
            appender.choose(&fields.map(str::to_owned), &records).unwrap();
            let mut out = String::new();
            appender.header(records.header(), &mut out);
            while let Some(record) = records.read().unwrap() {
                appender.record(record.raw(), &[Added::Score(0.5)], &mut out);
            }
            out
        };
        assert_eq!(
            chosen("id,a,b\n1,\"x\n, y\",z\n2,,\n", Format::CSV, ["score", "a", "1"]),
            "score,a,id\n0.5,\"x\n, y\",1\n0.5,,2\n"
        );
        assert_eq!(
            chosen("id\ta\n1\tx\n", Format::Tsv, ["a", "score", "id"]),
            "a\tscore\tid\nx\t0.5\t1\n"
        );
        assert_eq!(
            chosen("{\"a\":[1, 2],\"id\":1}\n", Format::Ndjson, ["id", "score", "none"]),
            "{\"id\":1,\"score\":0.5,\"none\":null}\n"
        );
        let records = records("id\n1\n", Some(Format::Tsv), false).unwrap();
        let mut appender = Appender::new(Format::Tsv, ["score"]);
        assert!(appender.choose(&["text".to_owned()], &records).is_err());
    }

    #[test]
    fn a_stream_is_read_as_it_comes() {
        struct Pieces(Vec<&'static [u8]>);
        impl Read for Pieces {
            fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
                let Some(piece) = self.0.first_mut() else { return Ok(0) };
                let read = piece.read(out)?;
                self.0.retain(|piece| !piece.is_empty());
                Ok(read)
            }
        }
        let pieces = Pieces(vec![b"te", b"xt\nf", b"irst\nsec", b"ond\nthird"]);
        let input = Input::from_stream("stream", Box::new(pieces)).unwrap();
        assert_eq!((input.bytes_left(), input.packing()), (None, None));
        let mut read =
            Records::new(input, Options { format: Some(Format::CSV), headless: false }).unwrap();
        let mut ready = Vec::new();
        while let Some(raw) = read.read().unwrap().map(|record| record.raw().to_owned()) {
            ready.push((raw, read.is_ready()));
        }
        let expected = [("first", false), ("second", false), ("third", false)];
        assert_eq!(ready, expected.map(|(raw, ready)| (raw.to_owned(), ready)));
    }

    #[test]
    fn added_fields_stand_at_the_end_of_what_came() {
        let added =
            [Added::Text("a \"b\",\tc"), Added::Score(0.5), Added::Truth(true), Added::Nothing];
        let names = ["event", "score", "new", "none"];
        let written = |text: &str, format| {
            let mut records = records(text, Some(format), false).unwrap();
            let mut appender = Appender::new(format, names);
            let mut out = String::new();
            appender.header(records.header(), &mut out);
            while let Some(record) = records.read().unwrap() {
                appender.record(record.raw(), &added, &mut out);
            }
            out
        };
        assert_eq!(
            written("{ }\n{\"text\" : \"x\" } \n", Format::Ndjson),
            "{\"event\":\"a \\\"b\\\",\\tc\",\"score\":0.5,\"new\":true,\"none\":null}\n\
             {\"text\" : \"x\",\"event\":\"a \\\"b\\\",\\tc\",\"score\":0.5,\"new\":true,\"none\":null}\n"
        );
        assert_eq!(
            written("text\n\"x\"\"\n\"\n", Format::CSV),
            "text,event,score,new,none\n\"x\"\"\n\",\"a \"\"b\"\",\tc\",0.5,true,\n"
        );
        assert_eq!(
            written("text\nx\"\n", Format::Tsv),
            "text\tevent\tscore\tnew\tnone\nx\"\ta \"b\", c\t0.5\ttrue\t\n"
        );
    }

    proptest! {
        /// Records written with added fields can be read again, with the old and the new fields.
        #[test]
        fn records_survive_being_written_again(
            texts in prop::collection::vec("[a-z\",\n{}\\\\é ]{1,12}", 1..8),
        ) {
            for format in [Format::Ndjson, Format::CSV] {
                let mut made = String::new();
                let mut first = Appender::new(format, ["text"]);
                let begin = if format == Format::CSV { "0" } else { "{\"id\":0}" };
                first.header(Some("id"), &mut made);
                for text in &texts {
                    first.record(begin, &[Added::Text(text)], &mut made);
                }
                let mut again = String::new();
                let mut second = Appender::new(format, ["copy"]);
                let mut read = records(&made, Some(format), false).unwrap();
                second.header(read.header(), &mut again);
                let column_of = read.column("text").unwrap();
                while let Some(record) = read.read().unwrap() {
                    let text = record.needed(&column_of).unwrap().into_owned();
                    second.record(record.raw(), &[Added::Text(&text)], &mut again);
                }
                for name in ["text", "copy"] {
                    let found = column(&mut records(&again, Some(format), false).unwrap(), name);
                    let expected: Vec<_> = texts.iter().cloned().map(Some).collect();
                    prop_assert_eq!(found.unwrap(), expected);
                }
            }
        }
    }
}
