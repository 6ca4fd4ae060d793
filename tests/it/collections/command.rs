//! `cognate collection`: a folder filled, looked at, ranked and copied without a service.

use std::path::Path;

use cognate::model::format::Dtype;
use serde_json::{Value, json};

use crate::collections::done;
use crate::collections::ranking::{items, with};
use crate::support;
use crate::support::app::TestApp;
use crate::support::command::{cognate, stderr, stdout};

#[track_caller]
fn run(folder: &Path, arguments: &[&str]) -> String {
    let output = cognate(folder, &[], &[&["collection"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    stdout(&output).to_owned()
}

#[track_caller]
fn refused(folder: &Path, arguments: &[&str], code: i32, part: &str) {
    let output = cognate(folder, &[], &[&["collection"], arguments].concat());
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(part), "`{part}` is missing in: {}", stderr(&output));
}

#[test]
fn a_folder_is_filled_and_written_out() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let data = ["--data", "data"];
    let with = |arguments: &[&'static str]| [arguments, &data].concat();
    refused(folder, &with(&["info"]), 2, "is not a folder");
    run(folder, &with(&["create", "news"]));
    assert_eq!(
        run(folder, &with(&["info", "--json"])).parse::<Value>().unwrap()["collections"][0]["items"],
        0
    );
    let mut lines = String::new();
    for at in 0..2500 {
        let item = json!({"id": format!("n{at}"), "text": format!("text {at}"),
            "time": format!("2024-05-01T10:00:{:02}.5Z", at % 60), "attributes": {"n": at}, "data": {"at": at}});
        lines.push_str(&format!("{}\n", serde_json::to_string(&item).unwrap()));
    }
    std::fs::write(folder.join("items.ndjson"), &lines).unwrap();
    let told = run(folder, &with(&["load", "news", "items.ndjson"]));
    assert_eq!(told, "2500 items added, 0 replaced\n");
    let told = run(folder, &with(&["load", "news", "items.ndjson"]));
    assert_eq!(told, "0 items added, 2500 replaced\n");
    let length = || std::fs::metadata(folder.join("data/news/items.log")).unwrap().len();
    let before = length();
    run(folder, &with(&["compact", "news"]));
    assert!(2 * length() < before + 1000, "{} of {before}", length());
    // What is written out is what was read, field by field.
    let written = run(folder, &with(&["export", "news"]));
    assert_eq!(written.lines().count(), 2500);
    for (written, read) in written.lines().zip(lines.lines()) {
        let parse = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        let mut written = parse(written);
        let time = written["time"].as_str().unwrap().replace(".500Z", ".5Z");
        written["time"] = json!(time);
        assert_eq!(written, parse(read));
    }
    let bounds = ["create", "news", "--max-items", "3", "--ttl", "36500d"];
    refused(folder, &with(&bounds), 2, "2497 items would be deleted; --drop does");
    run(folder, &with(&[&bounds[..], &["--drop"]].concat()));
    let info = run(folder, &with(&["info"]));
    assert!(info.starts_with("news: 3 items, "), "{info}");
    std::fs::write(folder.join("bad.ndjson"), "{\"id\":\"x\",\"text\":\"y\"}\n\n{\"id\":\"x\"}\n")
        .unwrap();
    refused(
        folder,
        &with(&["load", "news", "bad.ndjson"]),
        1,
        "bad.ndjson, line 3: expected an item as a JSON object: missing field `text`",
    );
    refused(
        folder,
        &with(&["load", "none", "items.ndjson"]),
        2,
        "there is no collection `none`; there are: news",
    );
    refused(folder, &with(&["create", "News"]), 2, "a collection's name");
    refused(folder, &with(&["create", "news", "--ttl", "1 day"]), 2, "24h");
}

/// What a sample tells of as many items is what they take, and of more as much more.
#[test]
fn a_sample_tells_what_a_collection_takes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut lines = String::new();
    for at in 0..300 {
        let item = json!({"id": format!("n{at}"), "text": format!("the harbour of town {at}"),
            "time": 1_700_000_000 + at, "attributes": {"n": at}});
        lines.push_str(&format!("{item}\n"));
    }
    std::fs::write(folder.join("items.ndjson"), &lines).unwrap();
    run(folder, &["create", "news", "--data", "data"]);
    run(folder, &["load", "news", "items.ndjson", "--data", "data"]);
    let info: Value = run(folder, &["info", "--data", "data", "--json"]).parse().unwrap();
    let info = &info["collections"][0];
    let plan = |items: &str| -> Value {
        let asked = [
            "collection",
            "plan",
            "items.ndjson",
            "--items",
            items,
            "--rate",
            "50",
            "--model",
            MODEL,
            "--last",
            "100",
            "--json",
        ];
        let temporary = folder.to_str().unwrap();
        let output = cognate(folder, &[("TMPDIR", temporary)], &asked);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).parse().unwrap()
    };
    let (same, ten) = (plan("300"), plan("3000"));
    assert_eq!(
        (&same["memory"]["bytes"], &same["log"]["bytes"]),
        (&info["bytes"], &info["log_bytes"])
    );
    for what in ["memory", "memory_ranked", "log"] {
        let [same, ten] = [&same, &ten].map(|plan| plan[what]["bytes"].as_u64().unwrap());
        assert!(same > 0 && ten.abs_diff(10 * same) <= 10, "{what}: {same}, {ten}");
    }
    assert!(same["memory_ranked"]["bytes"].as_u64() > same["memory"]["bytes"].as_u64());
    assert_eq!((&ten["window_items"], &same["sample"]), (&json!(100), &json!(300)));
    assert!(same["window_bytes"].as_u64() > Some(100 * 256), "{same}");
    let [rate, threads] =
        ["matched_a_second", "threads"].map(|field| same[field].as_f64().unwrap());
    assert!((rate * threads - 50.0).abs() < 1e-6 * rate, "{same}");
    // Nothing of it is left.
    let left = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.filter(|name| name != "data" && name != "items.ndjson").count(), 0);
    std::fs::write(folder.join("none.ndjson"), "").unwrap();
    refused(
        folder,
        &["plan", "none.ndjson", "--items", "3", "--model", MODEL],
        2,
        "the sample has no items",
    );
}

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.safetensors");

const TITLES: [(&str, &str, &str, i64); 5] = [
    ("b1", "The Lord of the Rings: the fellowship of the ring", "en", 1954),
    ("b2", "The Hobbit, or there and back again", "en", 1937),
    ("b3", "Cooking with herbs from your own garden", "en", 2019),
    ("b4", "A kitchen garden: herbs and vegetables in pots", "de", 2021),
    ("b5", "Dragons and magic rings: tales of old quests", "en", 2008),
];

fn with_titles() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let lines = TITLES.map(|(id, text, lang, year)| {
        let item = json!({"id": id, "text": text, "time": year * 1000,
            "attributes": {"lang": lang, "year": year}, "data": {"shelf": id}});
        format!("{item}\n")
    });
    std::fs::write(folder.path().join("titles.ndjson"), lines.concat()).unwrap();
    run(folder.path(), &["create", "titles", "--data", "data"]);
    run(folder.path(), &["load", "titles", "titles.ndjson", "--data", "data"]);
    folder
}

#[test]
fn items_are_ranked_as_the_texts_are() {
    let folder = with_titles();
    let model = ["--model", MODEL];
    let ranked = |arguments: &[&str]| -> Value {
        let all = [&["rank", "titles"], arguments, &["--data", "data", "--json"], &model].concat();
        run(folder.path(), &all).parse().unwrap()
    };
    let told = ranked(&["growing herbs", "--explain"]);
    let arguments = [
        &["rank", "growing herbs", "--json", "--explain"],
        &TITLES.map(|(_, text, ..)| text)[..],
        &model,
    ];
    let alone = cognate(folder.path(), &[], &arguments.concat());
    let alone: Value = stdout(&alone).parse().unwrap();
    let (results, expected) = (told["results"].as_array().unwrap(), alone["results"].as_array());
    assert_eq!(results.len(), 5);
    for (result, expected) in results.iter().zip(expected.unwrap()) {
        for field in ["score", "text", "words"] {
            assert_eq!(result[field], expected[field], "{field}");
        }
        assert_eq!(result["data"]["shelf"], result["id"]);
    }
    // Liked and disliked items are no results; filters and times leave others out.
    let ids = |told: &Value| -> Vec<String> {
        let results = told["results"].as_array().unwrap();
        results.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&ranked(&["--like", "b1", "--unlike", "b3", "--top-k", "1"])), ["b5"]);
    let told = ranked(&["growing herbs", "--filter", r#"{"year": {"gte": 2010}, "lang": "en"}"#]);
    assert_eq!((ids(&told), &told["items"]), (vec!["b3".to_owned()], &json!(1)));
    assert_eq!(ids(&ranked(&["growing herbs", "--offset", "4"])).len(), 1);
    // A shortlist as long as the collection is all of it; a shorter one has what is nearest.
    let listed = |length: &'static str| {
        let told = ranked(&["growing herbs", "--explain", "--shortlist", length]);
        (told["results"].clone(), told["items"].clone(), told["shortlist"].clone())
    };
    assert_eq!(listed("5"), (json!(results), json!(5), json!(5)));
    assert_eq!(listed("all"), (json!(results), json!(5), Value::Null));
    assert_eq!(listed("2"), (json!(results[..2]), json!(2), json!(2)));
    let liked = ["--like", "b1", "--like", "b3", "--unlike", "b2", "--shortlist", "1"];
    assert_eq!(ranked(&liked)["items"], 1);
    let people =
        run(folder.path(), &[&["rank", "titles", "herbs", "--data", "data"], &model[..]].concat());
    assert!(people.lines().next().unwrap().contains("  b"), "{people}");
    let refuse = |arguments: &[&str], part: &str| {
        let all = [&["rank", "titles"], arguments, &["--data", "data"], &model].concat();
        refused(folder.path(), &all, 2, part);
    };
    refuse(&["--like", "b9"], "the collection has none of the liked items");
    // What somebody liked may be gone, a query unknown, a filter ask for what is not there.
    let gone = ranked(&["--like", "b9", "--like", "b1", "--unlike", "b8", "--top-k", "1"]);
    assert_eq!((ids(&gone), &gone["like_missing"]), (vec!["b5".to_owned()], &json!([0])));
    assert_eq!(gone["unlike_missing"], json!([0]));
    let new = r#"{"half_life": "30d", "weight": 0.5}"#;
    for asked in [&["--like", "b9"][..], &[]] {
        let alone = ranked(&[asked, &["--boost", new, "--top-k", "1"]].concat());
        assert_eq!((&alone["ranked_by"], ids(&alone).len()), (&json!("boosts"), 1));
    }
    let told = ranked(&["gardn", "--filter", r#"{"colour": {"ne": "red"}}"#, "--top-k", "2"]);
    assert_eq!(told["query_known"], 0.0);
    assert_eq!(told["filter_unknown"], json!(["colour"]));
    assert!(ids(&ranked(&["gardn", "--min-known", "0.5"])).is_empty());
    let words = ranked(&["garden qxzvkj"]);
    assert_eq!(words["query_known"], 0.5);
    let aside = |arguments: &[&str], expected: &[&str]| {
        let all = [&["collection", "rank", "titles"], arguments, &["--data", "data"], &model];
        let output = cognate(folder.path(), &[], &all.concat());
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stderr(&output).lines().collect::<Vec<_>>(), expected);
    };
    aside(&["garden"], &[]);
    let item = "the collection has no item `b9`, which is part of no score";
    aside(&["--like", "b1", "--like", "b9", "--unlike", "b9"], &[item, item]);
    let filter = ["--filter", r#"{"colour": {"ne": "red"}}"#];
    let attribute = "no item of the collection has the attribute `colour`";
    let query = "0 % of the query's words are known";
    aside(&[&["gardn"], &filter[..]].concat(), &[attribute, query]);
    aside(&["garden qxzvkj"], &["50 % of the query's words are known"]);
    refuse(&["herbs", "--filter", "year"], "--filter: the filter is not JSON");
    refuse(&["herbs", "--filter", r#"{"year": {"near": 1}}"#], "--filter/year/near");
    refuse(&["herbs", "--shortlist", "0"], "expected `all` or a whole number from 1 to 100000");
    // By the collection's clock, which is behind this one as its newest item was when it came.
    assert!(!ids(&ranked(&["herbs", "--within", "1d"])).is_empty());
    refuse(&["herbs", "--within", "0s"], "no item of the collection is left");
}

/// The command line and the service rank the same folder.
#[tokio::test]
async fn boosts_and_variety_are_those_of_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("tiny.safetensors");
    std::fs::write(&model, support::tiny(Dtype::F32)).unwrap();
    let new = r#"{"half_life": "12h", "weight": 0.25}"#;
    let large = r#"{"attribute": "n", "half": 30, "weight": 0.25}"#;
    let boosts: Value = format!("[{new}, {large}]").parse().unwrap();
    let cases = [
        (json!({"boosts": boosts}), vec!["--boost", new, "--boost", large]),
        (json!({"collapse_by": "lang"}), vec!["--collapse-by", "lang"]),
        (
            json!({"collapse_by": "lang", "per_group": 3}),
            vec!["--collapse-by", "lang", "--per-group", "3"],
        ),
        (json!({"collapse": 0.9}), vec!["--collapse", "0.9"]),
        (json!({"diversify": {"lambda": 0.3}}), vec!["--diversify", "0.3"]),
        (
            json!({"boosts": boosts, "collapse_by": "n", "collapse": 0.8, "offset": 1}),
            vec![
                "--boost",
                new,
                "--boost",
                large,
                "--collapse-by",
                "n",
                "--collapse",
                "0.8",
                "--offset",
                "1",
            ],
        ),
    ];
    let app = TestApp::with(|settings| settings.data = Some(folder.path().join("data")));
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    let items: Vec<Value> = items(90)
        .into_iter()
        .enumerate()
        .map(|(at, item)| {
            // The newest is the clock.
            with(&item, &json!({"time": 4_102_444_800_000_i64 + 3_600_000 * at as i64}))
        })
        .collect();
    done(&app, "POST", "/collections/news/items", Some(&json!({"items": items}))).await;
    let plain = json!({"collection": "news", "query": "a quake hits the city", "top_k": 7});
    let mut answers = Vec::new();
    for (more, _) in &cases {
        answers.push(done(&app, "POST", "/rank", Some(&with(&plain, more))).await);
    }
    drop(app);
    for ((more, arguments), answer) in cases.iter().zip(answers) {
        let model = model.to_str().unwrap();
        let fixed =
            ["a quake hits the city", "--top-k", "7", "--model", model, "--data", "data", "--json"];
        let told = run(folder.path(), &[&["rank", "news"], &fixed[..], arguments].concat());
        let told: Value = told.parse().unwrap();
        let results = told["results"].as_array().unwrap();
        assert_eq!(results.len(), answer["results"].as_array().unwrap().len(), "{more}");
        for (result, expected) in results.iter().zip(answer["results"].as_array().unwrap()) {
            for field in ["id", "score", "duplicates"] {
                assert_eq!(result.get(field), expected.get(field), "{more} {field}");
            }
        }
    }
    let refuse = |boost: &str, part: &str| {
        let all = ["rank", "news", "quake", "--data", "data", "--boost", boost];
        refused(folder.path(), &all, 2, part);
    };
    for half_life in ["12 moons", "0d"] {
        let boost = format!(r#"{{"half_life": "{half_life}", "weight": 0.1}}"#);
        refuse(&boost, "expected a number from 1 with s, m, h or d");
    }
    refuse(r#"{"attribute": "n", "weight": 1}"#, "the weights of boosts add up to less than 1");
    refuse("{", "--boost `{`");
}

#[test]
fn opposed_items_are_told_or_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let lines = [("off", "turn off dark mode"), ("on", "how to turn the dark mode on")]
        .map(|(id, text)| format!("{}\n", json!({"id": id, "text": text})));
    std::fs::write(folder.path().join("items.ndjson"), lines.concat()).unwrap();
    run(folder.path(), &["create", "support", "--data", "data"]);
    run(folder.path(), &["load", "support", "items.ndjson", "--data", "data"]);
    let ranked = |more: &[&str]| {
        let asked = ["rank", "support", "turn on dark mode", "--data", "data", "--model", MODEL];
        run(folder.path(), &[&asked, more].concat())
    };
    let ids = |more: &[&str]| -> Vec<(String, Value)> {
        let told: Value = ranked(&[more, &["--json"]].concat()).parse().unwrap();
        let results = told["results"].as_array().unwrap().iter();
        results.map(|one| (one["id"].as_str().unwrap().into(), one["opposes"].clone())).collect()
    };
    let both = |off: Value, on: Value| [("off".to_owned(), off), ("on".to_owned(), on)];
    let ignoring = ids(&["--opposites", "ignore", "--return-opposes"]);
    assert_eq!(ignoring, both(json!(["antonym"]), json!([])));
    let counting = ids(&["--return-opposes"]);
    let mut turned = both(json!(["antonym"]), json!([]));
    turned.reverse();
    assert_eq!(counting, turned, "what is opposed has fallen below the other");
    assert_eq!(ids(&["--opposes", "drop"]), [("on".to_owned(), Value::Null)]);
    assert_eq!(ranked(&["--return-opposes"]).matches("   opposed by antonym\n").count(), 1);
    let related = |more: &[&str]| ranked(&[&["--threshold", "0.5"], more].concat());
    assert_eq!(related(&[]).matches("   not related\n").count(), 1);
    assert_eq!(related(&["--opposites", "ignore"]).matches("   related\n").count(), 2);
    let nearest = |id: &str, more: &[&str]| -> Vec<String> {
        let next = json!({"id": id, "text": "turn on dark mode"});
        std::fs::write(folder.path().join("next.ndjson"), format!("{next}\n")).unwrap();
        let asked = ["match", "support", "next.ndjson", "--data", "data", "--model", MODEL];
        let told: Value = run(folder.path(), &[&asked, more].concat()).parse().unwrap();
        let near = told["nearest"].as_array().unwrap().iter();
        near.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(nearest("one", &[]), ["on", "off"]);
    assert_eq!(nearest("two", &["--opposes", "drop"]), ["one", "on"]);
}

#[test]
fn a_copy_is_read_back_and_can_be_served() {
    let folder = with_titles();
    let (path, copy) = (folder.path(), folder.path().join("copy"));
    // What is being written at that moment is left out, and a log that is damaged is not copied.
    let log = path.join("data/titles/items.log");
    let whole = std::fs::read(&log).unwrap();
    std::fs::write(&log, [&whole[..], b"cgc2 half a frame"].concat()).unwrap();
    let told = run(path, &["backup", "copy", "--data", "data"]);
    assert_eq!(told, format!("1 collections copied and read back: {} bytes\n", whole.len()));
    assert_eq!(std::fs::read(copy.join("titles/items.log")).unwrap(), whole);
    let names = |folder: &Path| std::fs::read_dir(folder).unwrap().count();
    // Its log, and how long that is.
    assert_eq!((names(&copy), names(&copy.join("titles"))), (1, 2));
    let export = |data: &str| run(path, &["export", "titles", "--data", data]);
    assert_eq!(export("copy"), export("data"));
    refused(path, &["backup", "copy", "--data", "data"], 1, "it is there already");
    refused(path, &["backup", "other", "--data", "none"], 1, "cannot read none");
    let mut damaged = whole.clone();
    damaged[60] ^= 1;
    std::fs::write(&log, &damaged).unwrap();
    let refused_log = "data/titles/items.log, byte 0";
    refused(path, &["backup", "other", "--data", "data"], 1, refused_log);
    let left: Vec<_> =
        std::fs::read_dir(path).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    // Of several the others are copied, and who asked is told that not all are.
    std::fs::write(&log, &whole).unwrap();
    run(path, &["create", "news", "--data", "data"]);
    std::fs::write(&log, &damaged).unwrap();
    for (to, json) in [("people", false), ("programs", true)] {
        let arguments = ["collection", "backup", to, "--data", "data", "--json"];
        let output = cognate(path, &[], &arguments[..if json { 6 } else { 5 }]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(
            stderr(&output).contains("1 collection left out of the copy"),
            "{}",
            stderr(&output)
        );
        if json {
            let told: Value = stdout(&output).parse().unwrap();
            assert_eq!(
                (&told["collections"], &told["left_out"][0]["name"]),
                (&json!(1), &json!("titles"))
            );
        } else {
            let told = stdout(&output);
            let left_out = format!("\nleft out: titles: {refused_log}");
            assert!(told.starts_with("1 collections copied and read back: "), "{told}");
            assert!(told.contains(&left_out), "{told}");
        }
        assert_eq!((names(&path.join(to)), names(&path.join(to).join("news"))), (1, 2));
    }
    // What only reads shows them, too, and says which it cannot.
    let info = cognate(path, &[], &["collection", "info", "--data", "data"]);
    assert_eq!(info.status.code(), Some(1), "{}", stderr(&info));
    let told = stdout(&info);
    assert!(told.starts_with("news: 0 items, "), "{told}");
    assert!(told.contains(&format!("\ntitles: cannot be read: {refused_log}")), "{told}");
    run(path, &["export", "news", "--data", "data"]);
    refused(path, &["export", "titles", "--data", "data"], 1, refused_log);
}

/// Every file below a folder, with its bytes.
fn files(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push((path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
fn what_only_reads_changes_nothing() {
    let folder = with_titles();
    let path = folder.path();
    // As a crash leaves it, and without what a folder has that somebody wrote to.
    let log = path.join("data/titles/items.log");
    let torn = [std::fs::read(&log).unwrap(), b"cgc2 half a frame".to_vec()].concat();
    std::fs::write(&log, torn).unwrap();
    std::fs::remove_file(path.join("data/.lock")).unwrap();
    std::fs::remove_file(path.join("data/titles/items.length")).unwrap();
    let before = files(path);
    let info: Value = run(path, &["info", "--data", "data", "--json"]).parse().unwrap();
    assert_eq!(info["collections"][0]["items"], 5);
    assert_eq!(run(path, &["export", "titles", "--data", "data"]).lines().count(), 5);
    run(path, &["rank", "titles", "herbs", "--data", "data", "--model", MODEL]);
    assert_eq!(files(path), before);
}
