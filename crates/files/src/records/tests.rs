//! Records come back byte for byte, whatever they are written in, with what was added to them.

use std::io::Read;
use std::path::Path;

use proptest::prelude::*;

use crate::ReadError;
use crate::input::Input;
use crate::records::{Added, Appender, Format, Options, Records};

fn records(text: &str, format: Option<Format>, headless: bool) -> Result<Records, ReadError> {
    let input = Input::from_bytes("memory", text.as_bytes().to_vec())?;
    Records::of(input, Options { format, headless })
}

/// What stands in a column, record by record.
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
        ("a.csv.zst", Some(Format::Csv)),
        ("a.txt", None),
        ("-", None),
    ] {
        assert_eq!(Format::of_path(Path::new(name)), format, "{name}");
    }
    for (text, format) in
        [(" {\"a\":1}", Format::Ndjson), ("a\tb,c\n", Format::Tsv), ("a,b", Format::Csv)]
    {
        assert_eq!(records(text, None, false).unwrap().format(), format, "{text}");
    }
}

#[test]
fn fields_are_found_by_name_and_by_number() {
    let rows = "id\ttext\n1\tone \"two\n2\t\n\n";
    let texts = [Some("one \"two".to_owned()), Some(String::new())];
    for name in ["text", "2"] {
        assert_eq!(column(&mut records(rows, None, false).unwrap(), name).unwrap(), texts);
    }
    let mut headless = records("1,a\n2,\"b, \"\"c\"\"\nd\"\n", Some(Format::Csv), true).unwrap();
    assert_eq!(headless.names(), ["1", "2"]);
    let texts = [Some("a".to_owned()), Some("b, \"c\"\nd".to_owned())];
    assert_eq!(column(&mut headless, "2").unwrap(), texts);
    let objects = "{\"text\":\"a\\u00e9\",\"n\":1}\n{\"n\":2.50,\"text\":null}\n{\"text\":true}";
    let texts = [Some("a\u{e9}".to_owned()), None, Some("true".to_owned())];
    assert_eq!(column(&mut records(objects, None, false).unwrap(), "text").unwrap(), texts);
    let numbers = [Some("1".to_owned()), Some("2.50".to_owned()), None];
    assert_eq!(column(&mut records(objects, None, false).unwrap(), "n").unwrap(), numbers);
}

#[test]
fn what_makes_no_sense_is_refused_with_its_line() {
    refused("id\ttext\n1\ta\n2\n", Format::Tsv, &["memory, line 3", "expected 2 columns, found 1"]);
    refused("id,body\n", Format::Csv, &["line 1", "`text`", "id, body"]);
    refused("id,text\n1,\"a\nb\n", Format::Csv, &["line 2", "quotation mark"]);
    refused("", Format::Csv, &["header"]);
    refused("{}\n[1]\n", Format::Ndjson, &["line 2", "expected a JSON object, found `[1]`"]);
    refused("{\"text\":\n", Format::Ndjson, &["line 1", "expected a JSON object"]);
    refused("{\"text\":[]}\n", Format::Ndjson, &["line 1", "`text`", "string"]);
    let long = format!("id,text\n1,{}\n", "x".repeat(5 << 20));
    refused(&long, Format::Csv, &["line 2", "longer than"]);
    let open = format!("id,text\n1,\"{}", "x\n".repeat(3 << 20));
    refused(&open, Format::Csv, &["longer than"]);
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
        Records::of(input, Options { format: Some(Format::Csv), headless: false }).unwrap();
    let mut ready = Vec::new();
    while let Some(raw) = read.read().unwrap().map(|record| record.raw().to_owned()) {
        ready.push((raw, read.is_ready()));
    }
    let expected = [("first", false), ("second", false), ("third", false)];
    assert_eq!(ready, expected.map(|(raw, ready)| (raw.to_owned(), ready)));
}

#[test]
fn added_fields_stand_at_the_end_of_what_came() {
    let added = [Added::Text("a \"b\",\tc"), Added::Score(0.5), Added::Truth(true), Added::Nothing];
    let names = ["event", "score", "new", "none"];
    let written = |text: &str, format| {
        let mut records = records(text, Some(format), false).unwrap();
        let appender = Appender::new(format, names);
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
        written("text\n\"x\"\"\n\"\n", Format::Csv),
        "text,event,score,new,none\n\"x\"\"\n\",\"a \"\"b\"\",\tc\",0.5,true,\n"
    );
    assert_eq!(
        written("text\nx\"\n", Format::Tsv),
        "text\tevent\tscore\tnew\tnone\nx\"\ta \"b\", c\t0.5\ttrue\t\n"
    );
}

proptest! {
    /// What is written with added fields is read again as what came, with these fields.
    #[test]
    fn records_survive_being_written_again(
        texts in prop::collection::vec("[a-z\",\n{}\\\\é ]{1,12}", 1..8),
    ) {
        for format in [Format::Ndjson, Format::Csv] {
            let mut made = String::new();
            let first = Appender::new(format, ["text"]);
            let begin = if format == Format::Csv { "0" } else { "{\"id\":0}" };
            first.header(Some("id"), &mut made);
            for text in &texts {
                first.record(begin, &[Added::Text(text)], &mut made);
            }
            let mut again = String::new();
            let second = Appender::new(format, ["copy"]);
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
