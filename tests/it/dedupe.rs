//! Near-duplicates: what stands for what, whatever the threads and the memory, and that next to
//! nothing is missed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::Ordering;

use cognate::{Engine, Query};
use cognate_files::records::Options as Records;
use cognate_kernels::random::Random;
use cognate_rows::OnBadRow;
use cognate_rows::dedupe;
use cognate_rows::dedupe::steps::drawn;
use cognate_rows::dedupe::{
    Block, Blocks, Buckets, Centres, DedupeError, Judge, Member, Options, Report, Search,
    WordCounts,
};

use crate::support::command::{cognate, command, stderr, stdout};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.safetensors");

const ROWS: &str = "id\ttext\n\
    a\tStrong earthquake shakes Los Angeles this morning\n\
    b\tCat naps on a sofa\n\
    c\tSTRONG earthquake shakes Los Angeles, this morning!\n\
    d\tA strong earthquake shook Los Angeles this morning\n\
    e\t!!!\n\
    f\tFootball results of the weekend\n\
    g\tCat naps on the sofa\n";

fn run(folder: &Path, arguments: &[&str]) -> Output {
    cognate(folder, &[("COGNATE_MODEL", MODEL)], &[&["dedupe"], arguments].concat())
}

fn written(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    stdout(&output).to_owned()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rows.tsv"), ROWS).unwrap();
    folder
}

#[test]
fn a_record_names_the_one_that_stands_for_it() {
    let folder = folder();
    let folder = folder.path();
    let told = written(folder, &["rows.tsv", "--explain"]);
    let lines: Vec<Vec<&str>> = told.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines[0], ["id", "text", "cluster", "score", "shared"]);
    let clusters: Vec<&str> = lines[1..].iter().map(|cells| cells[2]).collect();
    assert_eq!(clusters, ["1", "2", "1", "1", "5", "6", "2"], "{told}");
    assert_eq!(lines[3][3..], ["1", "strong earthquake shakes los angeles this morning"]);
    assert_eq!(lines[4][4], "strong earthquake los angeles this morning");
    let score: f32 = lines[4][3].parse().unwrap();
    let engine = Engine::open(MODEL.as_ref(), &Default::default()).unwrap();
    let query = Query::new(engine.auto());
    let expected = engine.similarity(&[(lines[1][1], lines[4][1])], &query).unwrap().scores[0];
    assert_eq!(score, expected, "the score is the method's own");
    assert_eq!(lines[1][3..], ["", ""]);

    let kept = written(folder, &["rows.tsv", "--drop"]);
    let ids: Vec<&str> = kept.lines().map(|line| &line[..1]).collect();
    assert_eq!(ids, ["i", "a", "b", "e", "f"]);
    let strict = written(folder, &["rows.tsv", "--threshold", "1", "--drop"]);
    assert_eq!(strict.lines().count(), 7, "only what has the same words: {strict}");
}

#[test]
fn a_file_is_held_against_another() {
    let folder = folder();
    let folder = folder.path();
    let new = "{\"text\":\"cat naps on a sofa\",\"n\":1}\n{\"text\":\"An election is held\"}\n\
               {\"text\":\"An election is held!\"}\n{\"text\":null}\n";
    std::fs::write(folder.join("new.ndjson"), new).unwrap();
    std::fs::write(
        folder.join("known.ndjson"),
        "{\"text\":\"x y z\"}\n{\"text\":\"The cat naps on a sofa\"}\n{\"text\":\"x y z!\"}\n",
    )
    .unwrap();
    let arguments = ["new.ndjson", "--against", "known.ndjson", "--pairs", "pairs.tsv"];
    let output = run(folder, &arguments);
    let told = stdout(&output);
    let counts = "1 duplicate 1 of the 3 records known";
    assert!(stderr(&output).contains(counts), "a copy within the other file: {}", stderr(&output));
    let lines: Vec<serde_json::Value> =
        told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["duplicate_of"], 2);
    assert_eq!((&lines[0]["n"], &lines[0]["text"]), (&1.into(), &"cat naps on a sofa".into()));
    assert!(lines[1..].iter().all(|line| line["duplicate_of"].is_null()), "{told}");
    let pairs = std::fs::read_to_string(folder.join("pairs.tsv")).unwrap();
    let pairs: Vec<&str> = pairs.lines().collect();
    assert_eq!(pairs.len(), 2, "{pairs:?}");
    assert!(pairs[0] == "known\trecord\tscore" && pairs[1].starts_with("2\t1\t0.9"), "{pairs:?}");
}

#[test]
fn a_text_a_line_loses_no_first_one() {
    let folder = folder();
    let folder = folder.path();
    let titles = "quake hits city\ncup final, tonight\nquake hits city\n";
    std::fs::write(folder.join("titles.txt"), titles).unwrap();
    let clusters = "quake hits city\t1\t\ncup final, tonight\t2\t\nquake hits city\t1\t1\n";
    assert_eq!(written(folder, &["titles.txt"]), clusters);
    assert_eq!(written(folder, &["titles.txt", "--text", "text"]), clusters);
    std::fs::write(folder.join("titles"), "quake hits city\nquake hits city\n").unwrap();
    let told = "`quake hits city` is the header; --no-header reads it as a text";
    assert!(stderr(&run(folder, &["titles"])).contains(told));
    assert!(!stderr(&run(folder, &["titles", "--text", "1"])).contains("header"));
    assert!(!stderr(&run(folder, &["titles", "--no-header"])).contains("header"));
    for (rows, told) in [
        ("text,text\na,b\n", "several columns are called `text`"),
        ("[{\"text\":\"a\"},\n{\"text\":\"b\"}]\n", "a JSON array"),
        ("[\n{\"text\":\"a\"}\n]\n", "a JSON array"),
    ] {
        std::fs::write(folder.join("rows"), rows).unwrap();
        let refused = run(folder, &["rows"]);
        assert!(stderr(&refused).contains(told), "{}", stderr(&refused));
    }
    for (more, told) in [(["--pairs", "-"], "--pairs"), (["--pairs", "p.csv"], "written as TSV")] {
        let refused = run(folder, &[&["titles.txt"], &more[..]].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains(told), "{}", stderr(&refused));
    }
}

#[test]
fn records_that_cannot_be_read_are_left_out_and_have_no_number() {
    let folder = folder();
    let folder = folder.path();
    let broken = ROWS.replace("b\t", "broken\nb\t").replace("f\t", "f\tf\t");
    std::fs::write(folder.join("broken.tsv"), broken).unwrap();
    let stopped = run(folder, &["broken.tsv"]);
    assert_eq!(stopped.status.code(), Some(1));
    assert!(stderr(&stopped).contains("broken.tsv, line 3"), "{}", stderr(&stopped));
    let asked = ["broken.tsv", "--bad-rows", "bad.ndjson", "--columns", "cluster,id"];
    let output = run(folder, &asked);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "cluster\tid\n1\ta\n2\tb\n1\tc\n1\td\n5\te\n2\tg\n");
    assert!(stderr(&output).contains("2 broken rows left out"), "{}", stderr(&output));
    let bad = std::fs::read_to_string(folder.join("bad.ndjson")).unwrap();
    assert!(bad.lines().count() == 2 && bad.contains("\"line\":8"), "{bad}");
    let kept = written(folder, &["broken.tsv", "--bad-rows", "skip", "--drop", "--columns", "id"]);
    assert_eq!(kept, "id\na\nb\ne\n");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("taken.tsv"), "text\tcluster\na\tb\n").unwrap();
    std::fs::write(folder.join("other.csv"), "title,body\na,b\n").unwrap();
    for (arguments, code, expected) in [
        (&["rows.tsv", "-o", "rows.tsv"][..], 2, "-o: rows.tsv is one of the files that are read"),
        (&["rows.tsv", "--method", "tf-idf"], 2, "`jaccard`, not by tf-idf"),
        (&["rows.tsv", "--method", "bm25"], 2, "bm25 only ranks"),
        (&["rows.tsv", "--threshold", "1.5"], 2, "above 0, at most 1"),
        (&["rows.tsv", "--memory", "1M"], 2, "at least 16M"),
        (&["taken.tsv"], 2, "a field `cluster` already"),
        (&["other.csv"], 1, "expected a column `text`; the columns are title, body"),
        (&["none.tsv"], 1, "none.tsv"),
    ] {
        let output = run(folder, arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{expected} in {}", stderr(&output));
    }
    let fine = written(folder, &["taken.tsv", "--prefix", "d_"]);
    assert!(fine.starts_with("text\tcluster\td_cluster\td_score\n"), "{fine}");
    assert_eq!(std::fs::read_to_string(folder.join("rows.tsv")).unwrap(), ROWS);
}

/// A file that may not grow is a full disk to whoever writes it.
#[test]
fn a_full_disk_is_said_with_its_place_and_its_own_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("many.tsv"), ROWS.repeat(400)).unwrap();
    std::fs::create_dir(folder.join("room")).unwrap();
    let program = env!("CARGO_BIN_EXE_cognate");
    for (arguments, named) in [
        ("- --temp room < many.tsv", "cannot sort on disk in room: File too large"),
        ("many.tsv -o out.tsv", "cannot write out.tsv: File too large"),
        ("many.tsv > /dev/full", "cannot write standard output: No space left"),
    ] {
        let script = format!("ulimit -f 1; exec '{program}' dedupe --text text {arguments}");
        let output = command(Path::new("bash"), folder, &[("COGNATE_MODEL", MODEL)])
            .args(["-c", &script])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(74), "{arguments}: {}", stderr(&output));
        assert!(stderr(&output).contains(named), "{}", stderr(&output));
    }
}

/// Texts that come in families, as those of a stream do: a word exchanged, left out or moved.
fn families(count: usize) -> Vec<String> {
    let words: Vec<&str> = "storm hits coast town evacuated river floods bridge fire forest smoke \
        market stocks fall rise bank loan vote election senate court judge trial team wins cup final \
        goal player injured concert album singer tour film award actor phone launch chip update bug \
        virus vaccine hospital doctor school strike union wage train delay crash flight airport"
        .split_whitespace()
        .collect();
    let mut random = Random::seeded(11);
    let mut texts: Vec<String> = Vec::new();
    while texts.len() < count {
        let mut text: Vec<&str> = (0..8).map(|_| words[random.below(words.len())]).collect();
        for _ in 0..1 + random.below(3) {
            texts.push(text.join(" "));
            match random.below(3) {
                0 => {
                    let at = random.below(text.len());
                    text[at] = words[random.below(words.len())];
                }
                1 => text.swap(0, 5),
                _ => drop(text.pop()),
            }
        }
    }
    random.shuffle(&mut texts);
    texts.truncate(count);
    texts
}

fn options(folder: &Path, engine: &Engine) -> Options {
    Options {
        file: folder.join("texts.tsv"),
        against: None,
        records: Records { headless: true, ..Records::default() },
        bad_rows: OnBadRow::Stop,
        text: None,
        search: Search {
            explain: true,
            memory: 1 << 26,
            folder: folder.to_owned(),
            ..Search::new(Query::new(engine.auto()), 0.8)
        },
        output: Some(folder.join("out.tsv")),
        prefix: String::new(),
        columns: Vec::new(),
        drop: false,
        pairs: Some(folder.join("pairs.tsv")),
    }
}

fn with(options: Options, change: impl FnOnce(&mut Search)) -> Options {
    let mut options = options;
    change(&mut options.search);
    options
}

fn on_threads(threads: usize, engine: &Engine, options: &Options) -> Report {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| dedupe::run(engine, options)).unwrap()
}

#[test]
fn threads_and_memory_change_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("texts.tsv"), families(700).join("\n")).unwrap();
    let engine = Engine::open(MODEL.as_ref(), &Default::default()).unwrap();
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let mut known = None;
    for (threads, memory) in [(1, 1 << 26), (3, 1 << 26), (2, 1 << 16)] {
        let report = on_threads(
            threads,
            &engine,
            &with(options(folder, &engine), |search| search.memory = memory),
        );
        assert_eq!(report.runs > 3, memory == 1 << 16, "{report:?}");
        assert!(report.duplicates > 100, "{report:?}");
        let written = [read("out.tsv"), read("pairs.tsv")];
        assert!(known.get_or_insert_with(|| written.clone()) == &written, "{threads}, {memory}");
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 3, "nothing else is left");
}

/// What all pairs say, where the blocks are few enough to ask them.
#[test]
fn pairs_are_those_that_the_method_scores_high_enough() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let texts = families(150);
    std::fs::write(folder.join("texts.tsv"), texts.join("\n")).unwrap();
    let engine = Engine::open(MODEL.as_ref(), &Default::default()).unwrap();
    let options = with(options(folder, &engine), |search| search.floor = Some(0.5));
    let (query, threshold) = (options.search.query, options.search.threshold);
    let report = on_threads(2, &engine, &options);
    let pairs = std::fs::read_to_string(folder.join("pairs.tsv")).unwrap();
    let found: BTreeSet<(usize, usize)> = pairs
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            (cells[0].parse::<usize>().unwrap() - 1, cells[1].parse::<usize>().unwrap() - 1)
        })
        .collect();
    let mut missed = Vec::new();
    for (later, text) in texts.iter().enumerate() {
        let earlier: Vec<(&String, &String)> =
            texts[..later].iter().map(|one| (one, text)).collect();
        let scores = engine.similarity(&earlier, &query).unwrap().scores;
        for (earlier, score) in scores.into_iter().enumerate() {
            let pair = (earlier, later);
            let same = texts[earlier] == *text;
            assert!(score >= threshold || !found.contains(&pair), "{pair:?} has {score}");
            if score >= threshold && !same && !found.contains(&pair) {
                missed.push(pair);
            }
        }
    }
    // Copies are found by their tokens and are no pairs of different texts.
    let copied = |&(one, other): &(usize, usize)| {
        texts[..one].contains(&texts[one]) || texts[..other].contains(&texts[other])
    };
    missed.retain(|pair| !copied(pair));
    assert!(found.len() > 25, "{report:?}");
    assert!(missed.is_empty(), "{missed:?} of {} are missed", found.len());
}

#[test]
fn what_the_blocks_miss_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("texts.tsv"), families(1200).join("\n")).unwrap();
    let engine = Engine::open(MODEL.as_ref(), &Default::default()).unwrap();
    let report =
        on_threads(2, &engine, &with(options(folder, &engine), |search| search.check = 30));
    let recall = report.recall.unwrap();
    assert_eq!(recall.texts, 30);
    assert!(recall.matches >= 10 && recall.found <= recall.matches, "{recall:?}");
    assert!(recall.found as f64 >= 0.9 * recall.matches as f64, "{recall:?}");
    assert!(report.to_string().contains("checked: "), "{report}");
}

fn column(texts: &[String]) -> Vec<Option<&str>> {
    texts.iter().map(|text| Some(text.as_str())).collect()
}

#[test]
fn a_column_in_memory_has_the_duplicates_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let texts = families(500);
    std::fs::write(folder.join("texts.tsv"), texts.join("\n")).unwrap();
    let engine = Engine::open(MODEL.as_ref(), &Default::default()).unwrap();
    let options = options(folder, &engine);
    let report = on_threads(2, &engine, &options);
    let column = column(&texts);
    let found = dedupe::among(&engine, &column, None, &options.search).unwrap();
    assert_eq!(Report { seconds: 0.0, ..report }, Report { seconds: 0.0, ..found.report });
    let written = std::fs::read_to_string(folder.join("out.tsv")).unwrap();
    for (at, (line, of)) in written.lines().zip(&found.of).enumerate() {
        let cells: Vec<&str> = line.split('\t').collect();
        let expected =
            of.map_or((at + 1, String::new()), |(of, score)| (of as usize + 1, score.to_string()));
        assert_eq!((cells[1].parse(), cells[2]), (Ok(expected.0), expected.1.as_str()), "{line}");
    }
    let pairs = std::fs::read_to_string(folder.join("pairs.tsv")).unwrap();
    assert_eq!(pairs.lines().count() - 1, found.matches.len());

    let (known, new) = column.split_at(350);
    let found = dedupe::among(&engine, new, Some(known), &options.search).unwrap();
    assert_eq!(found.of.len(), 150);
    let places = found.matches.iter().map(|found| (found.earlier < 350, found.later < 150));
    assert!(places.clone().count() > 10 && places.clone().all(|both| both == (true, true)));
    let missing = dedupe::among(&engine, &[None, Some("!!!"), None], None, &options.search);
    assert_eq!(missing.unwrap().of, [None; 3], "what is missing duplicates nothing");

    options.search.stop.store(true, Ordering::Relaxed);
    let stopped = dedupe::among(&engine, &column, None, &options.search);
    assert!(matches!(stopped, Err(DedupeError::Stopped)), "{stopped:?}");
}

/// As an engine takes them that spreads texts over machines: what these tell each other is plain numbers.
#[test]
fn steps_over_parts_find_what_one_search_finds() {
    let mut texts = families(600);
    let mut seen = BTreeSet::new();
    texts.retain(|text| seen.insert(text.clone()));
    let engine = Engine::open(MODEL.as_ref(), &Default::default()).unwrap();
    let search = Search::new(Query::new(engine.auto()), 0.8);
    let whole = dedupe::among(&engine, &column(&texts), None, &search).unwrap();
    let judge = Judge::new(&engine, &search).unwrap();
    let digests: BTreeSet<_> = judge.digests(&texts).into_iter().collect();
    assert!(digests.len() == texts.len() && !digests.contains(&None));

    let (counts, distinct) = (WordCounts::default(), texts.len() as u64);
    for part in texts.chunks(100) {
        let own = WordCounts::default();
        judge.count(part, &own);
        own.counted().for_each(|(counter, count)| counts.add(counter, count));
    }
    assert!((0..distinct as u32).all(|id| drawn(id, distinct)), "so few are all in the sample");
    let sample = judge.vectors_of(&texts).unwrap();
    let learnt = Centres::new(&sample, judge.dims(), distinct);
    let buckets = Buckets::new(&learnt, judge.dims());
    let mut rows = Vec::new();
    for (part, first) in texts.chunks(100).zip((0..).step_by(100)) {
        let keys = judge.keys(part, &counts, &buckets).unwrap();
        for ((text, keys), id) in part.iter().zip(keys).zip(first..) {
            rows.extend(keys.iter().map(|&key| (key, id, keys.clone(), text.clone())));
        }
    }
    rows.sort();
    let (mut blocks, mut matches) = (Blocks::default(), Vec::new());
    let mut compare = |block: Option<Block>| {
        if let Some((key, members)) = block {
            matches.extend(judge.matches(key, &members).unwrap().0);
        }
    };
    for (key, id, keys, text) in rows {
        compare(blocks.push(key, Member { id, keys, text }));
    }
    compare(blocks.finish());
    let stands = dedupe::stand_for(texts.len() as u32, &matches).unwrap();
    let of = (0..).zip(stands).map(|(id, (of, score))| (of != id).then_some((of, score)));
    assert_eq!(of.collect::<Vec<_>>(), whole.of);
    assert!(whole.report.duplicates > 50, "{:?}", whole.report);
}
