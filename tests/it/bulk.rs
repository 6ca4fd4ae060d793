//! Questions asked of every row of files: the engine's answers, in the order of the rows, with all that
//! the rows held; and runs that go on where they were stopped.

use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use cognate::model::format::Dtype;
use cognate::{Engine, Query};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::support;
use crate::support::command::{cognate, command, stderr, stdout};

const ENVIRONMENT: [(&str, &str); 1] = [("COGNATE_MODEL", "tiny.safetensors")];

/// Pairs of words of the tiny model, different in each row.
fn pairs(count: usize) -> Vec<(String, String)> {
    let word = |at: usize| support::WORDS[at % support::WORDS.len()];
    let text = |at: usize| format!("{} {} {}", word(at), word(at / 3 + 1), word(at / 7 + 5));
    (0..count).map(|at| (text(at), text(at * 5 + 2))).collect()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tiny.safetensors"), support::tiny(Dtype::F32)).unwrap();
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    cognate(folder, &ENVIRONMENT, arguments)
}

fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    stdout(&output).to_owned()
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn engine() -> Engine {
    Engine::new(support::tiny_model()).unwrap()
}

#[test]
fn scores_are_the_engines_in_the_order_of_the_rows() {
    let folder = folder();
    let folder = folder.path();
    let pairs = pairs(20_000);
    let engine = engine();
    let query = Query::new(engine.auto());
    let expected = engine.similarity(&pairs, &query).unwrap().scores;
    let rows = |line: &dyn Fn(usize, &(String, String)) -> String| -> String {
        pairs.iter().enumerate().map(|(at, pair)| line(at, pair) + "\n").collect()
    };
    write(folder, "p.tsv", &rows(&|at, (a, b)| format!("{at}\t{a}\t{b}")));
    write(
        folder,
        "p.csv",
        &("n,one,two\n".to_owned() + &rows(&|at, (a, b)| format!("{at},\"{a}\",{b}"))),
    );
    write(
        folder,
        "p.ndjson",
        &rows(&|at, (a, b)| format!("{{\"b\":\"{b}\",\"n\":{at},\"a\":\"{a}\"}}")),
    );
    for (name, flags) in [
        ("p.tsv", &["--no-header", "--a", "2", "--b", "3"][..]),
        ("p.csv", &["--a", "one", "--b", "3"]),
        ("p.ndjson", &[]),
    ] {
        let mut first = None;
        for threads in ["1", "3"] {
            let out = format!("out-{name}");
            let asked = ["similarity", "--input", name, "-o", &out, "--threads", threads];
            succeeds(folder, &[&asked, flags].concat());
            let written = read(folder, &out);
            let source = read(folder, name);
            let header = usize::from(name == "p.csv");
            if header == 1 {
                assert!(written.starts_with("n,one,two,score\n"));
            }
            let lines = written.lines().zip(source.lines()).skip(header).zip(&expected);
            let mut count = 0;
            for ((line, row), score) in lines {
                let whole = match name {
                    "p.tsv" => format!("{row}\t{score}"),
                    "p.csv" => format!("{row},{score}"),
                    _ => format!("{},\"score\":{score}}}", row.strip_suffix('}').unwrap()),
                };
                assert_eq!(line, whole);
                count += 1;
            }
            assert_eq!(count, pairs.len());
            assert!(first.get_or_insert_with(|| written.clone()) == &written, "{threads} threads");
        }
    }
}

#[test]
fn rows_come_from_streams_folders_and_packed_files() {
    let folder = folder();
    let folder = folder.path();
    let row = "quake\tthe quake\n";
    std::fs::create_dir(folder.join("in")).unwrap();
    write(folder, "in/b.tsv", &format!("a\tb\n{row}{row}"));
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(format!("a\tb\n{row}").as_bytes()).unwrap();
    std::fs::write(folder.join("in/a.tsv.gz"), packed.finish().unwrap()).unwrap();
    write(folder, "in/note.txt", "not a row");
    let told = succeeds(folder, &["similarity", "--input", "in"]);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!((lines.len(), lines[0]), (4, "a\tb\tscore"), "one header, rows by file name");
    assert!(lines[1..].iter().all(|line| line.starts_with("quake\tthe quake\t0.")), "{told}");

    let program = Path::new(env!("CARGO_BIN_EXE_cognate"));
    let mut command = command(program, folder, &ENVIRONMENT);
    let command = command.args(["similarity", "--input", "-"]).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("a\tb\n{row}{row}{row}").as_bytes()).unwrap();
    let piped = child.wait_with_output().unwrap();
    assert_eq!(stdout(&piped), told);
    assert!(stderr(&piped).starts_with("3 rows by "), "{}", stderr(&piped));

    succeeds(folder, &["similarity", "--input", "in", "-o", "all.tsv.gz"]);
    let mut unpacked = String::new();
    let packed = std::fs::File::open(folder.join("all.tsv.gz")).unwrap();
    std::io::Read::read_to_string(&mut GzDecoder::new(packed), &mut unpacked).unwrap();
    assert_eq!(unpacked, told);
}

#[test]
fn vectors_and_ranks_are_the_engines() {
    let folder = folder();
    let folder = folder.path();
    let engine = engine();
    let texts = ["the quake hits", "new york", "city"];
    let lines: String = texts.iter().map(|text| format!("{{\"text\":\"{text}\"}}\n")).collect();
    write(folder, "t.ndjson", &lines);
    let told = succeeds(folder, &["embed", "--input", "t.ndjson", "--method", "avg-cos"]);
    let query = Query::new(engine.method("avg-cos").unwrap());
    let embedded = engine.embed(&texts, &query).unwrap();
    for (line, expected) in told.lines().zip(embedded.iter()) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let vector: Vec<f32> = serde_json::from_value(line["vector"].clone()).unwrap();
        assert_eq!(Some(&vector[..]), expected);
    }

    // More rows of one query than are read at a time, between two short lists.
    let mut rows = String::from("query\ttext\nquake\tcity\nquake\tearthquake\n");
    let many: Vec<String> = pairs(9000).into_iter().map(|(text, _)| text).collect();
    many.iter().for_each(|text| rows += &format!("the town\t{text}\n"));
    rows += "city\t!!!\ncity\tthe city\n";
    write(folder, "r.tsv", &rows);
    for method in ["avg-cos", "bm25"] {
        let told = succeeds(folder, &["rank", "--input", "r.tsv", "--method", method]);
        let cells: Vec<Vec<&str>> = told.lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(cells[0], ["query", "text", "score", "rank"]);
        let query = Query::new(engine.method(method).unwrap());
        let ranking = engine.rank("the town", &many, &query).unwrap();
        for (rank, result) in (1..).zip(&ranking.results) {
            let row = &cells[3 + result.index];
            assert_eq!(row[2..], [result.score.to_string(), rank.to_string()], "{method}");
        }
        assert_eq!(cells.len(), 1 + 2 + 9000 + 2);
        if method == "avg-cos" {
            assert_eq!(cells[9003][2..], ["", ""], "a text without a known word");
            assert_eq!(cells[9004][3], "1");
        }
    }
}

#[test]
fn a_row_without_a_score_is_left_empty_or_ends_the_run() {
    let folder = folder();
    let folder = folder.path();
    write(folder, "p.tsv", "a\tb\nquake\tthe quake\nquake\t!!!\nquake\t\n");
    write(folder, "p.ndjson", "{\"a\":\"quake\",\"b\":\"quake\"}\n{\"a\":\"quake\"}\n");
    let output = run(folder, &["similarity", "--input", "p.tsv"]);
    assert_eq!(stdout(&output).lines().skip(2).collect::<Vec<_>>(), ["quake\t!!!\t", "quake\t\t"]);
    let told = stderr(&output);
    assert!(told.contains("1 without a score: a text has no known word"), "{told}");
    assert!(told.contains("1 without a score: a text is empty"), "{told}");
    let objects = succeeds(folder, &["similarity", "--input", "p.ndjson"]);
    assert_eq!(objects.lines().nth(1), Some("{\"a\":\"quake\",\"score\":null}"));
    for (input, out, expected) in [
        ("p.tsv", "out.tsv", "p.tsv, line 3: a text has no known word; `--on-error null`"),
        ("p.ndjson", "out.ndjson", "p.ndjson, line 2: expected a field `b`"),
    ] {
        let asked = ["similarity", "--input", input, "--on-error", "fail", "-o", out];
        let failed = run(folder, &asked);
        assert_eq!(failed.status.code(), Some(1), "{}", stderr(&failed));
        assert!(stderr(&failed).contains(expected), "{expected} in {}", stderr(&failed));
        assert!(!folder.join(out).exists());
    }
}

#[test]
fn a_broken_row_among_those_of_a_query_does_not_end_its_ranking() {
    let folder = folder();
    let folder = folder.path();
    let sound = |text: &str| format!("{{\"query\":\"quake\",\"text\":\"{text}\"}}\n");
    let rows = sound("city") + "{\"text\":\"the quake\"}\n" + &sound("earthquake");
    write(folder, "r.ndjson", &rows);
    let told = succeeds(folder, &["rank", "--input", "r.ndjson", "--columns", "rank"]);
    assert_eq!(told, "{\"rank\":2}\n{\"rank\":null}\n{\"rank\":1}\n");
    let failed = run(folder, &["rank", "--input", "r.ndjson", "--on-error", "fail"]);
    let expected = "r.ndjson, line 2: expected a field `query`; `--on-error null`";
    assert!(stderr(&failed).contains(expected), "{}", stderr(&failed));
}

#[test]
fn finished_parts_are_not_made_again() {
    let folder = folder();
    let folder = folder.path();
    std::fs::create_dir(folder.join("in")).unwrap();
    for name in ["1", "2", "3"] {
        write(folder, &format!("in/{name}.tsv"), &format!("a\tb\nquake\tcity {name}\n"));
    }
    let asked = ["similarity", "--input", "in", "-o", "out/", "--json"];
    let skipped = |more: &[&str]| -> u64 {
        let told = succeeds(folder, &[&asked, more].concat());
        serde_json::from_str::<serde_json::Value>(&told).unwrap()["skipped"].as_u64().unwrap()
    };
    assert_eq!(skipped(&[]), 0);
    let first = read(folder, "out/2.tsv");
    assert!(first.starts_with("a\tb\tscore\nquake\tcity 2\t0."), "{first}");
    assert_eq!(skipped(&[]), 3);
    // A run that was killed leaves a temporary file and no mark.
    std::fs::remove_file(folder.join("out/.2.tsv.done")).unwrap();
    write(folder, "out/2.tsv", "half");
    write(folder, "out/.cognate-tmp-0123456789abcdef", "half");
    assert_eq!(skipped(&[]), 2);
    assert_eq!(read(folder, "out/2.tsv"), first);
    assert!(!folder.join("out/.cognate-tmp-0123456789abcdef").exists());
    write(folder, "in/3.tsv", "a\tb\nquake\tcity 3\nquake\tcity 4\n");
    assert_eq!(skipped(&[]), 2, "another input");
    assert_eq!(read(folder, "out/3.tsv").lines().count(), 3);
    std::fs::remove_file(folder.join("out/1.tsv")).unwrap();
    assert_eq!(skipped(&[]), 2, "a part that is gone");
    assert_eq!(skipped(&["--method", "avg-cos"]), 0, "another question");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = folder();
    let folder = folder.path();
    write(folder, "p.tsv", "a\tb\tscore\nquake\tcity\t1\n");
    write(folder, "q.tsv", "b\ta\nquake\tcity\n");
    write(folder, "s.ndjson", "{\"a\":\"x\",\"b\":\"y\",\"score\":1}\n");
    std::fs::create_dir(folder.join("empty")).unwrap();
    for (arguments, code, expected) in [
        (&["similarity", "--input", "p.tsv"][..], 2, "p.tsv: there is a field `score` already"),
        (&["similarity", "--input", "s.ndjson"], 1, "line 1: there is a field `score` already"),
        (&["similarity", "--input", "p.tsv", "q.tsv", "--prefix", "x"], 2, "header differs"),
        (&["similarity", "--input", "q.tsv", "-o", "q.tsv"], 2, "q.tsv is one of the files"),
        (&["similarity", "--input", "q.tsv", "-o", "./"], 2, "two files would be one"),
        (&["similarity", "--input", "empty"], 2, "empty: none of its files ends in"),
        (&["similarity", "--input", "q.tsv", "--a", "c"], 1, "expected a column `c`"),
        (&["similarity", "--input", "q.tsv", "--method", "bm25"], 2, "bm25 only ranks"),
        (&["similarity", "x", "y", "--input", "q.tsv"], 2, "cannot be used with"),
        (&["similarity", "x"], 2, "required"),
        (&["similarity", "x", "y", "--on-error", "null"], 2, "--input"),
        (
            &["embed", "--input", "q.tsv", "--text", "a", "--method", "wmd"],
            2,
            "has no vector of one",
        ),
        (&["rank", "--input", "q.tsv", "--query", "a"], 1, "expected a column `text`"),
    ] {
        let output = run(folder, arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{expected} in {}", stderr(&output));
    }
    assert_eq!(read(folder, "q.tsv"), "b\ta\nquake\tcity\n");
}

/// Rows of which every second cannot be read, and one has no score.
const BROKEN: &str = "id\ta\tb\n1\tquake\tthe quake\n2\tquake\n3\tquake\t!!!\n4\n";

#[test]
fn rows_that_cannot_be_read_end_the_run_or_are_left_out_and_told() {
    let folder = folder();
    let folder = folder.path();
    write(folder, "p.tsv", BROKEN);
    let asked = ["similarity", "--input", "p.tsv", "--bad-rows"];
    for stops in [asked[..3].to_vec(), [&asked[..], &["stop"]].concat()] {
        let failed = run(folder, &stops);
        assert_eq!(failed.status.code(), Some(1), "{}", stderr(&failed));
        assert!(stderr(&failed).contains("p.tsv, line 3: expected 3 columns, found 2"));
    }
    let skipped = run(folder, &[&asked[..], &["skip"]].concat());
    let told = stderr(&skipped);
    assert_eq!(skipped.status.code(), Some(0), "{told}");
    assert!(stdout(&skipped).ends_with("\n3\tquake\t!!!\t\n"), "{}", stdout(&skipped));
    let first = "2 broken rows left out; the first: p.tsv, line 3: expected 3 columns, found 2";
    assert!(told.contains(first) && told.contains("1 without a score"), "{told}");

    let kept = [&asked[..], &["bad.ndjson", "-o", "out.tsv", "--json"]].concat();
    let report: serde_json::Value = serde_json::from_str(&succeeds(folder, &kept)).unwrap();
    assert_eq!((&report["rows"], &report["bad_rows"]), (&2.into(), &2.into()), "{report}");
    assert_eq!(read(folder, "out.tsv"), stdout(&skipped));
    let bad: Vec<serde_json::Value> = read(folder, "bad.ndjson")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected = serde_json::json!({
        "file": "p.tsv", "line": 5, "reason": "expected 3 columns, found 1", "row": "4",
    });
    assert_eq!((bad.len(), &bad[1]), (2, &expected));

    for (more, expected) in [
        (&["bad.ndjson", "-o", "parts/"][..], "--bad-rows takes skip or stop"),
        (&["p.tsv"], "p.tsv: it is written as NDJSON"),
        (&["out", "-o", "out"], "out"),
    ] {
        let refused = run(folder, &[&asked[..], more].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains(expected), "{expected} in {}", stderr(&refused));
    }
    // A part that was made without the rows left out is another part.
    succeeds(folder, &[&asked[..], &["skip", "-o", "parts/"]].concat());
    assert_eq!(
        run(folder, &["similarity", "--input", "p.tsv", "-o", "parts/"]).status.code(),
        Some(1)
    );
}

/// A line above the limit of a row is one that cannot be read, as any other.
#[test]
fn a_line_that_is_too_long_is_left_out_as_other_rows() {
    let folder = folder();
    let folder = folder.path();
    let long = "x".repeat(5 << 20);
    write(folder, "p.tsv", &format!("a\tb\nquake\tcity\n{long}\ty\ncity\tquake\n{long}"));
    let asked = ["similarity", "--input", "p.tsv", "--bad-rows", "bad.ndjson", "-q"];
    let output = run(folder, &asked);
    assert_eq!(stderr(&output), "", "--quiet");
    let lines: Vec<&str> = stdout(&output).lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[1].starts_with("quake\tcity\t") && lines[2].starts_with("city\tquake\t"));
    let bad = read(folder, "bad.ndjson");
    let bad: Vec<serde_json::Value> =
        bad.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lines = bad.iter().map(|row| row["line"].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(lines, [3, 5]);
    assert!(bad[0]["row"].as_str().unwrap().len() < 2000, "the beginning is kept");
    assert_eq!(run(folder, &asked[..3]).status.code(), Some(1));
}

#[test]
fn the_name_of_the_output_says_its_form() {
    let folder = folder();
    let folder = folder.path();
    write(folder, "p.tsv", "a\tb\nquake\tthe \"quake\", \\o\nquake\t!!!\n");
    let score = |line: &str| -> serde_json::Value { serde_json::from_str(line).unwrap() };
    succeeds(folder, &["similarity", "--input", "p.tsv", "-o", "out.ndjson"]);
    let objects = read(folder, "out.ndjson");
    let objects: Vec<&str> = objects.lines().collect();
    let number = score(objects[0])["score"].to_string();
    let object =
        format!("{{\"a\":\"quake\",\"b\":\"the \\\"quake\\\", \\\\o\",\"score\":{number}}}");
    assert_eq!(objects[0], object);
    assert!(score(objects[1])["score"].is_null());
    succeeds(folder, &["similarity", "--input", "p.tsv", "-o", "out.csv"]);
    let table = format!("a,b,score\nquake,\"the \"\"quake\"\", \\o\",{number}\nquake,!!!,\n");
    assert_eq!(read(folder, "out.csv"), table);
    // Back again, by columns that are chosen, since objects need not have the same.
    let back = ["similarity", "--input", "out.ndjson", "-o", "back.csv", "--prefix", "x"];
    let refused = run(folder, &back);
    assert!(stderr(&refused).contains("--columns"), "{}", stderr(&refused));
    succeeds(folder, &[&back[..], &["--columns", "a,b,xscore"]].concat());
    assert_eq!(read(folder, "back.csv"), table.replacen("score", "xscore", 1));
    succeeds(folder, &["similarity", "--input", "p.tsv", "-o", "out.tsv.zst"]);
    let packed = std::fs::read(folder.join("out.tsv.zst")).unwrap();
    assert_eq!(packed[..4], [0x28, 0xb5, 0x2f, 0xfd]);
    succeeds(folder, &["similarity", "--input", "out.tsv.zst", "--prefix", "x", "-o", "two.tsv"]);
    assert!(read(folder, "two.tsv").starts_with(&format!(
        "a\tb\tscore\txscore\nquake\tthe \"quake\", \\o\t{number}\t{number}"
    )));
    for name in ["v.npy", "v.json", "v.parquet", "v.json.gz"] {
        let refused = run(folder, &["similarity", "--input", "p.tsv", "-o", name]);
        assert_eq!(refused.status.code(), Some(2), "{name}");
        assert!(stderr(&refused).contains(".ndjson, .tsv or .csv"), "{}", stderr(&refused));
    }
    let standard = succeeds(folder, &["similarity", "--input", "p.tsv", "-o", "-"]);
    assert!(standard.starts_with("a\tb\tscore\n") && !folder.join("-").exists());
}

#[test]
fn rows_of_a_query_that_stand_apart_are_noticed() {
    let folder = folder();
    let folder = folder.path();
    write(folder, "q.tsv", "query\ttext\nquake\tcity\ncity\tquake\nquake\tthe city\n");
    let refused = run(folder, &["rank", "--input", "q.tsv", "-o", "out.tsv"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("q.tsv, line 4: the query"), "{}", stderr(&refused));
    assert!(!folder.join("out.tsv").exists());
    write(folder, "one.tsv", "query\ttext\nquake\tcity\n");
    let refused = run(folder, &["rank", "--input", "one.tsv", "one.tsv"]);
    assert!(stderr(&refused).contains("one.tsv, line 2: the query"), "{}", stderr(&refused));
    // A row without a text does not part those around it.
    let rows = ["\"city\"", "null", "\"the quake\""]
        .map(|text| format!("{{\"query\":\"quake\",\"text\":{text}}}\n"));
    write(folder, "q.ndjson", &rows.concat());
    let told = succeeds(folder, &["rank", "--input", "q.ndjson"]);
    let ranks = told.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let ranks: Vec<Option<u64>> = ranks.map(|row| row["rank"].as_u64()).collect();
    assert_eq!(ranks, [Some(2), None, Some(1)]);
}

#[test]
fn pipes_are_read_as_files() {
    let folder = folder();
    let script = "\"$0\" similarity --input <(printf 'a\\tb\\nquake\\tquake\\n') && \
                  \"$0\" dedupe <(printf 'text\\nquake\\nquake\\n') -q && \
                  \"$0\" events <(printf 'text\\nquake\\n') 2>&1 >/dev/null";
    let mut bash = command(Path::new("bash"), folder.path(), &ENVIRONMENT);
    let output = bash.args(["-c", script, env!("CARGO_BIN_EXE_cognate")]).output().unwrap();
    let told = stdout(&output);
    assert!(
        told.starts_with("a\tb\tscore\nquake\tquake\t1\ntext,cluster,score\nquake,1,\nquake,1,1\n"),
        "{output:?}"
    );
}

#[test]
fn the_best_of_each_query_are_written() {
    let folder = folder();
    let folder = folder.path();
    let rows =
        "query,text\nquake,city\nquake,the quake\nquake,!!!\nquake,quake hits\ncity,new york\n";
    write(folder, "q.csv", rows);
    let all = succeeds(folder, &["rank", "--input", "q.csv"]);
    let best = run(folder, &["rank", "--input", "q.csv", "--top-k", "2"]);
    let expected: String = all
        .lines()
        .filter(|line| ["rank", "1", "2"].contains(&line.rsplit(',').next().unwrap()))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(expected.lines().count(), 4, "{all}");
    assert_eq!(stdout(&best), expected);
    let told = stderr(&best);
    assert!(told.starts_with("5 rows by ") && told.contains("3 of them written"), "{told}");
    assert!(told.contains("1 without a score"), "{told}");
}

#[test]
fn fewer_columns_are_written_and_cells_stand_between_any_character() {
    let folder = folder();
    let folder = folder.path();
    write(folder, "p.csv", "id;a;b\n7;quake;\"the; quake\"\n");
    write(folder, "p.ndjson", "{\"id\":7,\"a\":\"quake\",\"b\":\"the; quake\"}\n");
    let whole = succeeds(folder, &["similarity", "--input", "p.csv", "--delimiter", ";"]);
    let score = whole.trim_end().rsplit(';').next().unwrap();
    assert_eq!(whole, format!("id;a;b;score\n7;quake;\"the; quake\";{score}\n"));
    let asked = ["similarity", "--input", "p.csv", "--delimiter", ";", "--columns", "score,id,b"];
    assert_eq!(succeeds(folder, &asked), format!("score;id;b\n{score};7;\"the; quake\"\n"));
    let asked = ["similarity", "--input", "p.ndjson", "--columns", "id,score"];
    assert_eq!(succeeds(folder, &asked), format!("{{\"id\":7,\"score\":{score}}}\n"));
    for (more, code, expected) in [
        (&["--delimiter", ";", "--columns", "none"][..], 1, "expected a column `none`"),
        (&["--delimiter", ";;"], 2, "one ASCII character"),
        (&["--delimiter", ";", "--format", "tsv"], 2, "--delimiter is for CSV"),
        (&[], 1, "--delimiter"),
    ] {
        let output = run(folder, &[&["similarity", "--input", "p.csv"], more].concat());
        assert_eq!(output.status.code(), Some(code), "{more:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{expected} in {}", stderr(&output));
    }
}

#[test]
#[cfg(not(feature = "columns"))]
fn a_program_without_columns_says_how_to_get_one_that_has_them() {
    let folder = folder();
    let folder = folder.path();
    write(folder, "p.parquet", "PAR1");
    for command in [&["similarity", "--input"][..], &["dedupe"], &["events"]] {
        for (file, expected) in [
            ("p.parquet", "cargo install --locked --path . --features columns"),
            ("none.parquet", "none.parquet: No such file"),
        ] {
            let output = run(folder, &[command, &[file]].concat());
            assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
            assert!(stderr(&output).contains(expected), "{expected} in {}", stderr(&output));
        }
    }
}
