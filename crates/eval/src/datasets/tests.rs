//! What the readers take, and that each fault is reported with its file and line.

use cognate_files::input::Input;
use cognate_files::rows::Rows;
use cognate_files::topics;
use cognate_files::topics::Judgements;

use super::{Source, pairs, ranking, sources, sts};

fn rows(text: &str) -> Rows {
    Rows::of(Input::from_bytes("data.tsv", text.as_bytes().to_vec()).unwrap()).unwrap()
}

#[track_caller]
fn fault<T: std::fmt::Debug>(outcome: Result<T, cognate_files::ReadError>, parts: &[&str]) {
    let said = outcome.expect_err("a fault").to_string();
    for part in ["data.tsv"].iter().chain(parts) {
        assert!(said.contains(part), "`{part}` is missing in: {said}");
    }
}

#[test]
fn gold_scores_are_read_with_quotes_and_years_as_they_stand() {
    let read = |text: &str, name: &str| sts::of(rows(text), name.to_owned());
    let set = read("\u{feff}4.5\t\"a b\tc\r\n0\t \td\n", "2014.deft-news").unwrap();
    assert_eq!(set.gold, [4.5, 0.0]);
    assert_eq!(set.texts[0], ("\"a b".to_owned(), "c".to_owned()), "no quoting");
    assert_eq!(set.year, Some(2014));
    for name in ["stsb-dev", "2014", "2014.", "201.x", "20145.x"] {
        assert_eq!(read("1\ta\tb\n2\ta\tb\n", name).unwrap().year, None, "{name}");
    }

    let long = format!("1\ta\tb\n1\ta\t{}\n", "x".repeat(40_000));
    fault(read("1\ta\tb\n2\ta\n", ""), &["line 2", "expected 3 columns", "found 2"]);
    fault(read("1\ta\tb\n\n", ""), &["line 2", "found 1"]);
    fault(read("good\ta\tb\n", ""), &["line 1", "score: expected a number", "`good`"]);
    fault(read("inf\ta\tb\n", ""), &["line 1", "expected a number"]);
    fault(read(&long, ""), &["line 2", "the second sentence has 40000 bytes", "32768"]);
    fault(read("1\ta\tb\n", ""), &["at least 2 pairs, found 1"]);
    fault(read("", ""), &["at least 2 pairs, found 0"]);
    let latin = Input::from_bytes("data.tsv", b"1\ta\tb\n1\t\xe9\tb\n".to_vec()).unwrap();
    fault(sts::of(Rows::of(latin).unwrap(), String::new()), &["line 2", "not UTF-8"]);
}

#[test]
fn labelled_pairs_are_read_with_and_without_a_header() {
    let read = |text: &str| pairs::of(rows(text), String::new());
    let plain = read("1\ta\tb\n0\tc\td\n1\te\tf\n0\tg\th\n").unwrap();
    assert_eq!(plain.labels, [true, false, true, false]);
    let header = "id\ttext2\tlabel\ttext1\n";
    let named = format!("{header}9\tb\t1\ta\n9\td\t0\tc\n9\tf\t1\te\n9\th\t0\tg\n");
    assert_eq!(read(&named).unwrap(), plain);

    fault(read("1\ta\tb\tc\n"), &["line 1", "expected 3 columns, found 4", "text1"]);
    fault(read(&format!("{header}1\t2\t3\n")), &["line 2", "expected 4 columns, found 3"]);
    fault(read("1\ta\tb\n2\ta\tb\n"), &["line 2", "label: expected 0 or 1, found `2`"]);
    fault(read("1\ta\tb\n1\ta\tb\n0\ta\tb\n"), &["at least 2", "2 with 1 and 1 with 0"]);
}

#[test]
fn rankings_are_read_in_their_shapes() {
    let read = |text: &str, columns: &[&str]| {
        let columns: Vec<String> = columns.iter().map(|&name| name.to_owned()).collect();
        ranking::of(rows(text), String::new(), &columns)
    };
    let posts = "7\tq\t0\t11\t1\t2.5\ta\n8\tr\t1\t11\t1\t2\tb\n7\tq\t1\t12\t2\t1.5\tc\n";
    let set = read(posts, &["ql_score", "rank"]).unwrap();
    assert_eq!(set.topics.len(), 2);
    assert_eq!(set.topics[0].documents, ["11", "12"]);
    assert_eq!(set.topics[0].grades, [0, 1]);
    assert_eq!(set.topics[0].columns, [[2.5, 1.5], [1.0, 2.0]]);
    let header = "query\tqid\ttext\tlabel\tid\nq\t7\ta\t0\tx\nq\t7\tc\t-2\ty\n";
    let set = read(header, &[]).unwrap();
    assert_eq!(set.topics[0].documents, ["x", "y"]);
    assert_eq!(set.topics[0].grades, [0, 0], "spam is not relevant");
    let questions = read("1.1\tq\t1\ta\n1.1\tq\t0\tb\n", &[]).unwrap();
    let documents = &questions.topics[0].documents;
    assert!(documents[0] > documents[1], "the larger name, and so the earlier row, wins a tie");

    fault(read("a\tb\n", &[]), &["expected 4 columns", "qid, query, label, text", "found 2"]);
    fault(read("1\tq\t0\ta\n1\tq\t0\n", &[]), &["line 2", "expected 4 columns, found 3"]);
    fault(read("1\tq\tno\ta\n", &[]), &["line 1", "label: expected a whole number", "`no`"]);
    fault(read("1\tq\t0\ta\n1\tr\t0\tb\n", &[]), &["line 2", "asked in two ways"]);
    fault(read(posts, &["bm25"]), &["no column `bm25`", "ql_score"]);
    fault(read("1\tq\t0\td\t1\tx\ta\n", &["ql_score"]), &["line 1", "ql_score: expected a number"]);
    fault(read("1\tq\t0\td\t1\t1\ta\n1\tq\t0\td\t1\t1\ta\n", &[]), &["document `d` twice"]);
    fault(read("", &[]), &["expected 4 columns"]);
}

#[test]
fn judgements_come_in_three_columns_or_four() {
    let add = |text: &str| {
        let mut judgements = Judgements::new();
        topics::add_judgements(&mut rows(text), &mut judgements).map(|()| judgements)
    };
    let three = add("1\td\t2\n1\te\t0\n").unwrap();
    assert_eq!(three, add("1\t0\td\t2\n1\tQ0\te\t-1\n1\t0\td\t2\n").unwrap());
    fault(add("1\td\n"), &["line 1", "found 2"]);
    fault(add("1\td\t1\n1\td\t2\n"), &["line 2", "`d` has grade 1 and 2"]);
    fault(add("1\td\thigh\n"), &["line 1", "grade: expected a whole number"]);
}

#[test]
fn folders_give_their_data_sets_and_names_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir_all(root.join("b/empty")).unwrap();
    for name in ["a.tsv", "b/a.tsv.gz", "b/c.d.tsv.zst", "b/x.qrels.tsv", "b/notes.md"] {
        std::fs::write(root.join(name), "").unwrap();
    }
    let found = sources(&[root.to_owned(), root.join("b"), root.join("b/notes.md")]).unwrap();
    let names: Vec<&str> = found.iter().map(|Source { name, .. }| name.as_str()).collect();
    assert_eq!(names.len(), 4, "each file once: {names:?}");
    assert!(names[0].ends_with("/a.tsv") && names[1].ends_with("/b/a.tsv.gz"), "{names:?}");
    assert_eq!(names[2..], ["c.d", "notes.md"]);
    let none = sources(&[root.join("b/empty")]).unwrap_err().to_string();
    assert!(none.contains("empty: the folder holds no file"), "{none}");
}
