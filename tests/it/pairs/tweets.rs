//! `cognate pairs tweets`: each rule with a pair just inside it and one just outside.

use std::collections::BTreeMap;
use std::path::Path;

use cognate::text::Normalisation;
use cognate_train::TrainError;
use cognate_train::pairs::{Columns, Texts, TweetOptions, TweetsMade, from_tweets};

use crate::pairs::text::{cognate, refused, rows, said};

const NOON: &str = "2020-01-01 12:00:00";

/// Two related tweets and one alone that share nothing with those of any test, so that there is
/// always somebody to be non-related to.
const OTHERS: [(&str, &str); 3] = [
    (NOON, "umbrella sales doubled along every coast #storm"),
    (NOON, "trains stand still until monday morning #storm"),
    (NOON, "nine polar bears seen near oslo #snow"),
];

fn options(folder: &Path) -> TweetOptions {
    TweetOptions {
        files: vec![folder.join("tweets.tsv")],
        output: folder.join("out.tsv"),
        columns: Columns { text: "text".to_owned(), time: None, event: None, filters: Vec::new() },
        minutes: 15,
        per_tweet: 1,
        rows: None,
        seed: 1,
        normalisation: Normalisation::preset("deboom").unwrap(),
        texts: Texts::AsTheyAre,
    }
}

/// What is made of tweets, and the rows.
fn made(
    tweets: &[(&str, &str)],
    change: impl FnOnce(&mut TweetOptions),
) -> (TweetsMade, Vec<(bool, [String; 2])>) {
    let folder = tempfile::tempdir().unwrap();
    let lines = tweets.iter().map(|(time, text)| format!("{time}\t{text}\n"));
    let table = "time\ttext\n".to_owned() + &lines.collect::<String>();
    std::fs::write(folder.path().join("tweets.tsv"), table).unwrap();
    let mut options = options(folder.path());
    change(&mut options);
    let made = from_tweets(&options).unwrap();
    assert_eq!(made.written.related, made.written.non_related);
    (made, rows(&options.output))
}

/// Whether two tweets are related, at noon and at the given time.
fn related(one: &str, time: &str, other: &str) -> bool {
    let (made, rows) = made(&[&OTHERS[..], &[(NOON, one), (time, other)]].concat(), |_| {});
    assert_eq!(rows.len() as u64, 2 * made.written.related);
    made.written.related == 2
}

#[test]
fn fifteen_minutes_either_way_are_near_and_a_second_more_is_not() {
    let (one, other) = ("old church tower fell down #quake", "we felt it in rome #quake");
    for near in ["2020-01-01 12:15:00", "2020-01-01 11:45:00"] {
        assert!(related(one, near, other), "{near}");
    }
    for far in ["2020-01-01 12:15:01", "2020-01-01 11:44:59", "2020-01-02 12:00:00"] {
        assert!(!related(one, far, other), "{far}");
    }
}

#[test]
fn hashtags_must_be_half_the_same() {
    let with = |one: &str, other: &str| {
        let one = format!("old church tower fell down {one}");
        related(&one, NOON, &format!("we felt it in rome {other}"))
    };
    assert!(with("#Quake", "#QUAKE"), "case does not matter");
    assert!(with("#quake", "#quake #rome"), "1 of 2");
    assert!(with("#quake #italy", "#quake #italy #rome #help"), "2 of 4");
    assert!(!with("#quake", "#quake #italy #rome"), "1 of 3");
    assert!(!with("#quake #italy", "#quake #rome"), "1 of 3");
    assert!(
        with("#quake #italy", "#italy #quake #ITALY"),
        "2 of 2, however often they stand there"
    );
    assert!(with("#quake", "#quake #breaking #Update #NEWS"), "general ones do not count");
    assert!(with("#quake #news", "#quake #rome"), "general ones do not count");
    assert!(!with("#breaking #news", "#breaking #news"), "general ones alone are none");
    assert!(!with("quake", "quake"), "a word is no hashtag");
}

#[test]
fn five_words_are_enough_and_four_are_not() {
    let with = |one: &str| related(one, NOON, "we felt it in rome #quake");
    assert!(with("church tower down 1,000 hurt #quake"), "a number is a word");
    assert!(!with("church tower down hurt #quake #help #italy #old"), "hashtags are none");
    assert!(!with("@mayor church tower down hurt #quake"), "names are none");
    assert!(!with("church tower down hurt http://t.co/abc #quake"), "addresses are none");
    assert!(!with("RT @mayor: church tower down hurt #quake"), "a leading RT is none");
    assert!(!with("@mayor RT @you: RT church tower down hurt #quake"), "nor one after names");
    assert!(with("church tower down hurt please RT #quake"), "any other is");
    assert!(with("down down down down down #quake"), "each counts");
}

#[test]
fn half_the_words_the_same_are_too_many() {
    let with = |one: &str, other: &str| {
        related(&format!("{one} #quake"), NOON, &format!("{other} #quake http://t.co/x"))
    };
    assert!(!with("a b c d e f g h", "A B C D E x y"), "5 of 10");
    assert!(with("a b c d e f g h", "a b c d e x y z"), "5 of 11");
    assert!(with("a b c d e f g h", "a b c d e x x y y z z"), "each word once");
    assert!(with("a b c d 1 e f g", "a b c d 2 x y z"), "all numbers are 0: 5 of 11");
}

#[test]
fn hashtags_that_both_have_are_removed_and_others_stay() {
    let tweets = [
        OTHERS[0],
        OTHERS[1],
        OTHERS[2],
        (NOON, "Old #church tower: #Quake! fell down &amp; out #NewRome"),
        (NOON, "RT @you: #quake #CHURCH we felt the quake in #news rome #breaking"),
    ];
    let normalised = |preset: &str| {
        let (_, rows) = made(&tweets, |options| {
            options.texts = Texts::Normalised;
            options.normalisation = Normalisation::preset(preset).unwrap();
        });
        rows
    };
    let rows = normalised("deboom");
    let has = |related: bool, text: &str| {
        rows.iter().any(|row| row.0 == related && row.1.iter().any(|known| known == text))
    };
    assert!(has(true, "old tower fell down out newrome"), "{rows:?}");
    assert!(has(true, "we felt the quake in rome"), "{rows:?}");
    assert!(has(false, "old church tower quake fell down out newrome"), "{rows:?}");
    assert!(has(false, "quake church we felt the quake in rome"), "{rows:?}");
    let rows = normalised("bert");
    let text = "rt @ you : we felt the quake in rome".replace("rt ", "");
    assert!(rows.iter().any(|(_, texts)| texts.contains(&text)), "{rows:?}");
}

#[test]
fn texts_stay_as_a_service_will_see_them() {
    let first = "Old #church tower: #Quake! fell down &amp; OUT… http://t.co/a #NewRome";
    let second = "RT @you: #quake #CHURCH We felt it in #news Rome 😱 #breaking";
    let (_, rows) = made(&[&OTHERS[..], &[(NOON, first), (NOON, second)]].concat(), |_| {});
    let of = |related: bool| -> Vec<&String> {
        rows.iter().filter(|row| row.0 == related).flat_map(|row| &row.1).collect()
    };
    // Common hashtags go, because they would give the label away; all else stays, links, too.
    let cut = "Old tower: ! fell down &amp; OUT… http://t.co/a #NewRome";
    assert!(of(true).iter().any(|text| *text == cut), "{rows:?}");
    let cut = "RT @you: We felt it in #news Rome 😱 #breaking";
    assert!(of(true).iter().any(|text| *text == cut), "{rows:?}");
    for whole in [first, second] {
        assert!(of(false).iter().any(|text| *text == whole), "{rows:?}");
    }
}

#[test]
fn a_text_of_several_lines_stands_in_one_row() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let object = |text: &str| format!("{{\"time\": 1577880000, \"text\": \"{text}\"}}\n");
    let texts = [
        r"old church\ttower\u0085fell down\n\n#quake",
        "we felt it in rome #quake",
        "umbrella sales doubled along every coast #storm",
        "trains stand still until monday morning #storm",
    ];
    std::fs::write(folder.join("t.jsonl"), texts.map(object).concat()).unwrap();
    let output = cognate(folder, &["pairs", "tweets", "t.jsonl", "-o", "out.tsv"]);
    assert!(output.status.success(), "{}", said(&output));
    let made = rows(&folder.join("out.tsv"));
    let found = |text: &str| made.iter().any(|(_, texts)| texts.iter().any(|known| known == text));
    assert_eq!(made.len(), 4);
    assert!(found("old church tower  fell down"), "{made:?}");
    assert!(found("old church tower  fell down  #quake"), "{made:?}");
    let packed = "old 1 0\nrome 0 1\nsales 1 1\ntrains 1 2\n";
    std::fs::write(folder.join("v.txt"), packed).unwrap();
    let model = ["--model", "m.safetensors"];
    for command in [
        &["pack", "v.txt", "-o", "m.safetensors"][..],
        &[&["eval", "pairs", "out.tsv"], &model[..]].concat(),
        &[&["eval", "calibrate", "out.tsv", "-o", "m.safetensors"], &model[..]].concat(),
    ] {
        let output = cognate(folder, command);
        assert!(output.status.success(), "{}", said(&output));
    }
}

#[test]
fn a_text_that_stood_before_is_dropped() {
    let tweets = [
        OTHERS[0],
        OTHERS[1],
        OTHERS[2],
        (NOON, "old church tower fell down #quake http://t.co/a"),
        ("2020-01-02 12:00:00", "Old church tower fell down! #Quake http://t.co/b"),
        (NOON, "RT @you: old church tower fell down #quake"),
        (NOON, "we felt it in rome #quake"),
        (NOON, "too short #quake"),
        (NOON, "nobody knows what this is about"),
    ];
    let (made, _) = made(&tweets, |_| {});
    assert_eq!((made.tweets, made.kept, made.repeated), (9, 5, 2));
    assert_eq!((made.too_short, made.without_key, made.filtered), (1, 1, 0));
}

/// Five words that no other number gives.
fn numbered(number: usize, tag: &str) -> String {
    let word = |letter: char| format!("{letter}{}", number * 7);
    let words: Vec<String> = ('a'..='e').map(word).collect();
    format!("{} #{tag}", words.join(" "))
}

#[test]
fn a_tweet_stands_under_a_label_as_often_as_it_may() {
    let texts: Vec<String> = (0..40)
        .map(|number| numbered(number, if number < 20 { "quake" } else { "storm" }))
        .collect();
    let tweets: Vec<(&str, &str)> = texts.iter().map(|text| (NOON, text.as_str())).collect();
    for most in [1, 3, 8] {
        let (made, rows) = made(&tweets, |options| options.per_tweet = most);
        let mut uses: BTreeMap<(bool, &str), u32> = BTreeMap::new();
        let mut pairs = std::collections::BTreeSet::new();
        for (related, texts) in &rows {
            let firsts = texts.each_ref().map(|text| text.split(' ').next().unwrap());
            firsts.iter().for_each(|first| *uses.entry((*related, first)).or_default() += 1);
            assert!(pairs.insert([firsts[0].min(firsts[1]), firsts[0].max(firsts[1])]));
        }
        assert_eq!(*uses.values().max().unwrap(), most);
        // A few are left over when all others are used up.
        assert!(made.written.related >= u64::from(20 * most - most), "{made}");
        let other = |related: bool, first| uses.get(&(!related, first)).copied();
        let even =
            uses.iter().filter(|((label, first), count)| other(*label, first) == Some(**count));
        let even = even.count();
        assert!(10 * even >= 9 * uses.len(), "a text stands as often under either label");
    }
}

#[test]
fn partners_are_drawn_from_the_whole_window() {
    let texts: Vec<String> = (0..400).map(|number| numbered(number, "quake")).collect();
    let times: Vec<String> = (0..400).map(|number| (1_577_880_000 + number).to_string()).collect();
    let mut tweets: Vec<(&str, &str)> =
        times.iter().zip(&texts).map(|(time, text)| (time.as_str(), text.as_str())).collect();
    let apart: Vec<String> =
        (400..800).map(|number| numbered(number, &format!("t{number}"))).collect();
    tweets.extend(apart.iter().map(|text| (NOON, text.as_str())));
    let (made, rows) = made(&tweets, |options| options.rows = Some(200));
    assert_eq!((made.written.rows, made.wanted), (200, Some(200)));
    let number = |text: &String| text.split(' ').next().unwrap()[1..].parse::<f64>().unwrap() / 7.0;
    let distance = |texts: &[String; 2]| (number(&texts[0]) - number(&texts[1])).abs();
    let related = rows.iter().filter(|(related, _)| *related);
    let mean = related.map(|(_, texts)| distance(texts)).sum::<f64>() / 100.0;
    // A third of 400, with a standard deviation of 9; nearest neighbours would give 1.
    assert!((mean - 133.0).abs() < 35.0, "{mean}");
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    let texts: Vec<String> =
        (0..80).map(|number| numbered(number, ["quake", "storm", "fire"][number % 3])).collect();
    let tweets: Vec<(&str, &str)> = texts.iter().map(|text| (NOON, text.as_str())).collect();
    let run = |seed| made(&tweets, |options| options.seed = seed).1;
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    // Rows of either label alternate, so that any even number of them from the top is balanced.
    assert!(run(1).iter().enumerate().all(|(place, row)| row.0 == place.is_multiple_of(2)));
}

#[test]
fn an_event_takes_the_place_of_hashtags() {
    let table = |first: &str, second: &str| {
        format!(
            "id\tevent\ttext\ttime_utc\n\
             1\tquake\told church tower fell down {first}\t2020-01-01T12:00:00Z\n\
             2\tquake\twe felt it in rome\t2020-01-01T13:15:00+01:00\n\
             3\tstorm\tumbrella sales doubled along every coast {second}\t1577880000\n\
             4\tstorm\ttrains stand still until monday morning\t1577880000000\n\
             5\t\ta tweet that belongs nowhere at all\t2020-01-01 12:00:00\n"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.columns.event = Some("event".to_owned());
    let mut run = |table: String, filters: &[&str], seed| {
        options.seed = seed;
        std::fs::write(folder.path().join("tweets.tsv"), table).unwrap();
        options.columns.filters = filters.iter().map(|filter| filter.parse().unwrap()).collect();
        from_tweets(&options)
    };
    let made = run(table("", "#rain"), &[], 1).unwrap();
    assert_eq!((made.written.related, made.written.non_related, made.without_key), (2, 2, 1));
    // The two first of each event share a hashtag, so each needs the other's other.
    for seed in 0..16 {
        let made = run(table("#help", "#help"), &[], seed).unwrap();
        // When their others are drawn together, the two first are left over.
        assert_eq!(made.written.related + made.unmatched, 2);
        let text = std::fs::read_to_string(folder.path().join("out.tsv")).unwrap();
        for line in text.lines().filter(|line| line.starts_with('0')) {
            assert!(!(line.contains("church") && line.contains("umbrella")), "{line}");
        }
    }
    let refusal = run(table("", ""), &["event=quake"], 1).unwrap_err();
    assert!(matches!(&refusal, TrainError::TooLittle(why) if why.contains("3 tweets left out by")));
}

#[test]
fn tables_and_objects_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let rows = [
        ("quake", "1", "Wed Jan 01 12:00:00 +0000 2020", r"old church \u0074ower fell down"),
        ("quake", "1", "2020-01-01 12:10:00", "we felt it in rome"),
        ("storm", "1", "1577880000", "umbrella sales doubled along every coast"),
        ("storm", "1", "2020-01-01T12:00:00.500Z", "trains stand still until monday morning"),
        ("storm", "0", "2020-01-01 12:00:00", "a tweet that was not meant here"),
    ];
    let mut table = "tag\tgood\tcreated_at\tbody\n".to_owned();
    let mut objects = String::new();
    for (tag, good, time, text) in rows {
        let number = time.parse::<u64>().map_or(format!("\"{time}\""), |_| time.to_owned());
        table += &format!("{tag}\t{good}\t{time}\t{}\n", text.replace("\\u0074", "t"));
        objects += &format!(
            "{{\"created_at\": {number}, \"good\": {good}, \"body\": \"{text}\", \"tag\": \"{tag}\", \
             \"user\": {{\"x\": []}}}}\n\n"
        );
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, objects.as_bytes()).unwrap();
    std::fs::write(folder.join("t.tsv"), table).unwrap();
    std::fs::write(folder.join("t.jsonl"), objects).unwrap();
    std::fs::write(folder.join("t.ndjson.gz"), encoder.finish().unwrap()).unwrap();
    let run = |file: &str, out: &str| {
        let flags = ["--text", "body", "--event-column", "tag", "--where", "good=1", "--json"];
        let files = ["pairs", "tweets", file, "-o", out];
        let output = cognate(folder, &[&files[..], &flags].concat());
        assert!(output.status.success(), "{}", said(&output));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&report["rows"], &report["filtered"]), (&4.into(), &1.into()));
        std::fs::read(folder.join(out)).unwrap()
    };
    let made = run("t.tsv", "a.tsv");
    assert_eq!(made, run("t.jsonl", "b.tsv"));
    assert_eq!(made, run("t.ndjson.gz", "c.tsv"));
}

#[test]
fn bad_rows_are_named_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let refuse = |name: &str, content: &[u8], more: &[&str], expected: &[&str]| {
        std::fs::write(folder.join(name), content).unwrap();
        let place = [name, expected[0]].join(", ");
        let expected = [&[place.as_str()], &expected[1..]].concat();
        refused(folder, &[&["tweets", name, "-o", "out.tsv"], more].concat(), 1, &expected);
    };
    let wrong = b"time\ttext\n2020-01-01 12:00:00\tfine\nnoon\tbad\n";
    refuse("t.tsv", wrong, &[], &["line 3", "`time`", "RFC 3339", "`noon`"]);
    refuse("t.tsv", b"time\ttext\n1\ta\tb\n", &[], &["line 2", "2 columns, found 3"]);
    refuse("t.tsv", b"time\ttext\n1\tcaf\xe9\n", &[], &["line 2", "UTF-8"]);
    refuse("t.tsv", b"when\ttext\n", &[], &["line 1", "--time", "time_utc", "when"]);
    refuse("t.tsv", b"time\tbody\n", &[], &["line 1", "`text`", "body"]);
    refuse("t.tsv", b"", &[], &["line 1"]);
    refuse("t.tsv", wrong, &["--where", "good=1"], &["line 1", "`good` (--where)"]);
    refuse("t.tsv", wrong, &["--event-column", "e"], &["line 1", "`e` (--event-column)"]);
    refuse("t.jsonl", b"{\"time\": 1, \"text\": \"a\"}\n{\n", &[], &["line 2", "JSON object"]);
    refuse("t.jsonl", b"[1]\n", &[], &["line 1", "JSON object"]);
    refuse("t.jsonl", b"{\"time\": 1, \"text\": 5}\n", &[], &["line 1", "`text`", "string"]);
    refuse("t.jsonl", b"{\"time\": 1}\n", &[], &["line 1", "`text` (--text)"]);
    refuse("t.jsonl", b"{\"text\": \"a\"}\n", &[], &["line 1", "--time", "created_at"]);
    refuse("t.jsonl", b"{\"time\": [], \"text\": \"a\"}\n", &[], &["line 1", "`time`"]);
    let none = b"time\ttext\n1\ta\n";
    std::fs::write(folder.join("t.tsv"), none).unwrap();
    let arguments = ["tweets", "t.tsv", "-o", "out.tsv"];
    refused(folder, &arguments, 1, &["found 0 related pairs", "1 tweets", "fewer than 5 words"]);
    refused(folder, &[&arguments[..], &["--where", "good"]].concat(), 2, &["--where", "`=`"]);
    refused(folder, &[&arguments[..], &["--per-tweet", "0"]].concat(), 2, &["--per-tweet"]);
}

#[test]
fn what_stands_in_a_file_is_shown_short_and_cannot_steer_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // The second character begins an order to a terminal, and may stand in JSON as it is.
    let loud = "\u{9b}2J no such column".repeat(50_000);
    for (name, content) in [
        ("t.tsv", format!("\u{1b}[2J{loud}\n")),
        ("t.jsonl", format!("\"{loud}\"\n")),
        ("u.jsonl", format!("{{\"text\": \"a\", \"time\": \"{loud}\"}}\n")),
    ] {
        std::fs::write(folder.join(name), content).unwrap();
        let output = cognate(folder, &["pairs", "tweets", name, "-o", "out.tsv"]);
        let message = said(&output);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains("line 1") && message.contains('…'), "{message}");
        assert!(message.len() < 400, "{} bytes", message.len());
        assert!(!message.trim_end().contains(char::is_control), "{message:?}");
    }
}
