//! The service's settings: where values come from, what is refused, and what is said about it.

use std::collections::BTreeSet;
use std::path::Path;

use cognate_server::http::settings::{
    Environment, LIST, Layers, Loaded, Origin, RawValue, Setting, SettingsFile, ValueShape,
};
use cognate_server::http::{NamedModel, Settings};

/// A machine on which all is well, but for what a test spoils.
struct Fine {
    open_files: u64,
    wrong: bool,
}

impl Environment for Fine {
    fn open_files(&self) -> u64 {
        self.open_files
    }

    fn model(&self, model: &NamedModel, _: &Settings) -> Result<(), String> {
        if self.wrong { Err(format!("{} is bad", model.path.display())) } else { Ok(()) }
    }

    fn keys(&self, _: &Path) -> Result<(), String> {
        if self.wrong { Err("bad keys".to_owned()) } else { Ok(()) }
    }

    fn data(&self, _: &Path) -> Result<(), String> {
        if self.wrong { Err("bad folder".to_owned()) } else { Ok(()) }
    }

    fn replica_of(&self, _: &Path) -> Result<(), String> {
        if self.wrong { Err("no folder".to_owned()) } else { Ok(()) }
    }

    fn log(&self, _: &str) -> Result<(), String> {
        if self.wrong { Err("bad filter".to_owned()) } else { Ok(()) }
    }
}

const FINE: Fine = Fine { open_files: 1 << 20, wrong: false };

/// A value that is allowed and is not the default.
fn sample(setting: &Setting) -> RawValue {
    let one = |text: &str| RawValue::One(text.to_owned());
    match (setting.rule.shape, setting.key) {
        (ValueShape::Count(_, most) | ValueShape::Bytes(_, most), _) => {
            one(&(most - 1).to_string())
        }
        (ValueShape::Choice(words), _) => {
            one(words.iter().rev().find(|&&word| word != "auto").unwrap())
        }
        (ValueShape::Switch, _) => one("true"),
        (_, "listen") => one("[::1]:9090"),
        (_, "admin_listen") => one("127.0.0.1:9091"),
        (_, "backups") => one("/var/backups/cognate"),
        (_, "data") => one("/var/lib/cognate"),
        (_, "replica_of") => one("/var/lib/cognate"),
        (_, "postgres") => one("postgres://cognate@db.example/cognate"),
        (_, "spool_folder") => one("/var/tmp/spool"),
        (_, "keys_file") => one("/run/secrets/a \"b\" \\c"),
        (_, "model_digest") => one(&"0123456789abcdeF".repeat(4)),
        (_, "otlp_endpoint") => one("http://127.0.0.1:4318"),
        (_, "log") => one("warn,cognate=debug"),
        (_, "model") => RawValue::Many(vec!["b=m/b=1.bin".to_owned(), "a=m/é.bin".to_owned()]),
        (_, "allowed_hosts") => RawValue::Many(vec!["texts.example".to_owned()]),
        (_, "cors_origins") => RawValue::Many(vec!["https://a.example".to_owned()]),
        (_, "dialects") => RawValue::Many(vec!["tei".to_owned(), "openai".to_owned()]),
        (_, key) => panic!("{key} has no sample"),
    }
}

/// Flags and their values.
type Flagged<'a> = &'a [(&'a str, &'a [&'a str])];

fn flags(settings: Flagged) -> Vec<(String, Vec<String>)> {
    let owned = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    settings.iter().map(|&(flag, values)| (flag.to_owned(), owned(values))).collect()
}

fn file(text: &str) -> Option<SettingsFile> {
    Some(SettingsFile { name: "cognate.toml".to_owned(), text: text.to_owned() })
}

fn read(toml: &str, environment: &[(&str, &str)], flagged: Flagged) -> Loaded {
    let environment = environment.iter().map(|&(name, value)| (name.into(), value.into()));
    Loaded::read(&Layers {
        file: file(toml),
        environment: environment.collect(),
        flags: flags(flagged),
        other_flags: &["check"],
    })
}

fn problems(loaded: &Loaded) -> Vec<String> {
    loaded.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn each_layer_covers_the_one_below() {
    let toml = "body_bytes = '1MiB'\nmax_pairs = 11\nmax_texts = 12\n";
    let environment = [("COGNATE_MAX_PAIRS", "21"), ("COGNATE_MAX_TEXTS", "22"), ("HOME", "/")];
    let loaded = read(toml, &environment, &[("max-texts", &["32"])]);
    assert_eq!(problems(&loaded), [""; 0]);
    let settings = &loaded.settings;
    assert_eq!(settings.max_candidates, Settings::default().max_candidates);
    assert_eq!((settings.body_bytes, settings.max_pairs, settings.max_texts), (1 << 20, 21, 32));
    assert_eq!(*loaded.origin("max_candidates"), Origin::Default);
    assert_eq!(
        *loaded.origin("body_bytes"),
        Origin::File { name: "cognate.toml".to_owned(), line: 1 }
    );
    assert_eq!(*loaded.origin("max_pairs"), Origin::Environment("COGNATE_MAX_PAIRS".to_owned()));
    assert_eq!(*loaded.origin("max_texts"), Origin::Flag("max-texts".to_owned()));
}

#[test]
fn a_variable_may_name_a_file_that_has_the_value() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("url");
    std::fs::write(&path, "postgres://cognate:p%40ss@db.example/cognate\n").unwrap();
    let path = path.to_str().unwrap();
    let loaded = read("", &[("COGNATE_POSTGRES_FILE", path), ("COGNATE_KEYS_FILE", "/k")], &[]);
    assert_eq!(problems(&loaded), [""; 0]);
    let [given, plain] =
        [&loaded, &read("postgres = 'postgres://cognate:p%40ss@db.example/cognate'", &[], &[])]
            .map(|loaded| loaded.settings.postgres.clone());
    assert!(given.is_some() && given == plain);
    assert_eq!(loaded.settings.keys_file.as_deref(), Some(Path::new("/k")));
    let origin = Origin::Environment("COGNATE_POSTGRES_FILE".to_owned());
    assert_eq!(*loaded.origin("postgres"), origin);
    for (variables, says) in [
        (&[("COGNATE_POSTGRES_FILE", "/not/there")][..], "cannot read `/not/there`: "),
        (
            &[("COGNATE_POSTGRES_FILE", path), ("COGNATE_POSTGRES", "x")],
            "COGNATE_POSTGRES says the same",
        ),
        (
            &[("COGNATE_POSTGRESS_FILE", path)],
            "no such setting; did you mean COGNATE_POSTGRES_FILE?",
        ),
    ] {
        let told = problems(&read("", variables, &[]));
        assert!(told.iter().any(|one| one.contains(says)), "{told:?}");
    }
}

#[test]
fn every_setting_can_be_given_in_every_layer() {
    for setting in LIST {
        let mut expected = Settings::default();
        (setting.write)(&mut expected, &sample(setting)).unwrap();
        assert_ne!(expected, Settings::default(), "{}", setting.key);
        let (values, toml) = match sample(setting) {
            RawValue::One(text) => (vec![text.clone()], format!("{text:?}")),
            RawValue::Many(texts) => (texts.clone(), format!("{texts:?}")),
        };
        let layers = [
            Layers { file: file(&format!("{} = {toml}", setting.key)), ..Layers::default() },
            Layers {
                environment: vec![(setting.variable().into(), values.join(",").into())],
                ..Layers::default()
            },
            Layers { flags: vec![(setting.flag(), values)], ..Layers::default() },
        ];
        for layers in layers {
            let loaded = Loaded::read(&layers);
            assert_eq!(problems(&loaded), [""; 0], "{layers:?}");
            assert_eq!(loaded.settings, expected, "{layers:?}");
        }
    }
}

#[test]
fn numbers_are_held_to_both_ends_of_their_range() {
    let mut numbers = 0;
    for setting in LIST {
        let (ValueShape::Count(least, most) | ValueShape::Bytes(least, most)) = setting.rule.shape
        else {
            continue;
        };
        numbers += 1;
        let give = |text: String| {
            let loaded = read("", &[(&setting.variable(), &text)], &[]);
            let mut problems = problems(&loaded);
            assert!(problems.len() <= 1, "{problems:?}");
            problems.pop()
        };
        for good in [least, most] {
            assert_eq!(give(good.to_string()), None, "{}", setting.key);
        }
        let under = least.checked_sub(1).map_or("-1".to_owned(), |under| under.to_string());
        let beyond = (most + 1).to_string();
        for wrong in [under, beyond, u64::MAX.to_string(), "1e3".to_owned(), "many".to_owned()] {
            let problem = give(wrong.clone()).unwrap_or_else(|| panic!("{}={wrong}", setting.key));
            assert!(problem.starts_with(&setting.variable()), "{problem}");
            assert!(problem.contains(&setting.rule.range().unwrap()), "{problem}");
        }
        // Nothing is unlimited, and what may be absent has a word for it.
        let endless = give("unlimited".to_owned());
        assert!(endless.is_some(), "{}", setting.key);
        let nobody_waits =
            setting.key.starts_with("shutdown_") || setting.key == "admission_wait_ms";
        let nobody_waits =
            nobody_waits || ["wait_for_data_s", "collection_series"].contains(&setting.key);
        assert!(least > 0 || nobody_waits, "{}", setting.key);
    }
    assert!(numbers > 20);
}

#[test]
fn unknown_keys_are_refused_in_every_layer_with_the_nearest_named() {
    let environment = [
        ("COGNATE_BODY_BITES", "1"),
        ("COGNATE_listen", "1"),
        ("TEST_COGNATE_LONG", "1"),
        ("COGNATE_CONFIG", "x"),
        ("OTHER", "1"),
    ];
    let toml = "\nmax_pears = 1\n[model]\na = 'b'\n";
    let loaded = read(toml, &environment, &[("max-text", &[]), ("chek", &[])]);
    assert_eq!(
        problems(&loaded),
        [
            "cognate.toml:2: `max_pears` is no setting; did you mean max_pairs?",
            "cognate.toml:3: model: a table is no value of a setting",
            "COGNATE_BODY_BITES: no such setting; did you mean COGNATE_BODY_BYTES?",
            "COGNATE_listen: no such setting; did you mean COGNATE_LISTEN?",
            "--max-text: no such setting; did you mean --max-texts?",
            "--chek: no such setting; did you mean --check?",
        ]
    );
    assert_eq!(loaded.settings, Settings::default());
}

#[test]
fn only_a_near_name_is_suggested() {
    let said = |toml: &str, flag: &str| {
        let loaded = match flag {
            "" => read(toml, &[], &[]),
            flag => read("", &[], &[(flag, &[])]),
        };
        problems(&loaded).pop().unwrap()
    };
    for (wrong, meant) in [
        ("modle", "--model"),
        ("max-candidate", "--max-candidates"),
        ("max_pairs", "--max-pairs"),
        ("Listen", "--listen"),
        ("lig", "--log"),
    ] {
        assert!(said("", wrong).ends_with(&format!("did you mean {meant}?")), "{wrong}");
    }
    for far in ["port", "colour", "x", "workers", "threads", ""] {
        let told = said("", &format!("{far}-"));
        assert!(told.ends_with("no such setting; `cognate serve --help` lists them"), "{told}");
    }
    let colour = said("colour = 'red'", "");
    assert!(
        colour.ends_with("`colour` is no setting; `cognate serve --help` lists them"),
        "{colour}"
    );
}

#[test]
fn models_can_be_a_table_or_a_list_but_not_both() {
    let model = |name: &str, path: &str| NamedModel { name: name.to_owned(), path: path.into() };
    let loaded = read("[models]\nz = 'z.bin'\na = 'a.bin'\n", &[], &[]);
    assert_eq!(problems(&loaded), [""; 0]);
    assert_eq!(loaded.settings.model, [model("z", "z.bin"), model("a", "a.bin")]);
    let both = read("model = 'a=b'\n[models]\na = 'b'\n", &[], &[]);
    assert_eq!(problems(&both).len(), 1);
    let one = read("model = 'a=b,c'", &[], &[]);
    assert_eq!(one.settings.model, [model("a", "b,c")]);
    for wrong in ["model = []", "model = ['=a']", "model = 'a='", "[models]", "model = ''"] {
        assert_eq!(problems(&read(wrong, &[], &[])).len(), 1, "{wrong}");
    }
}

#[test]
fn the_first_model_may_come_without_a_name() {
    let model = |name: &str, path: &str| NamedModel { name: name.to_owned(), path: path.into() };
    let alone = read("model = 'a.bin'", &[], &[]);
    assert_eq!(alone.settings.model, [model("default", "a.bin")]);
    let by_variable = read("", &[("COGNATE_MODEL", "/m=1/a.bin,b=b.bin")], &[]);
    assert_eq!(problems(&by_variable), [""; 0]);
    assert_eq!(by_variable.settings.model, [model("default", "/m=1/a.bin"), model("b", "b.bin")]);
    let by_flag = read("", &[], &[("model", &["a.bin"])]);
    assert_eq!(by_flag.settings.model, [model("default", "a.bin")]);
    let second = read("", &[], &[("model", &["a=a.bin", "b.bin"])]);
    let expected = "--model: `b.bin` has no name; only the first may lack one, `default`";
    assert_eq!(problems(&second), [expected]);
}

#[test]
fn a_tool_takes_the_first_model_of_the_list() {
    let first = |list| NamedModel::first(list).map(|model| (model.name, model.path));
    for (list, name, path) in [
        ("a.bin", "default", "a.bin"),
        ("own=a.bin", "own", "a.bin"),
        ("own=a.bin,b=b.bin", "own", "a.bin"),
        ("a.bin, b = b.bin", "default", "a.bin"),
        ("own=a,b.bin", "own", "a,b.bin"),
        ("./a=1,2.bin", "default", "./a=1,2.bin"),
    ] {
        assert_eq!(first(list), Ok((name.to_owned(), path.into())), "{list}");
    }
    assert!(first("").is_err() && first("=a").is_err() && first("a=").is_err());
}

#[test]
fn a_value_can_be_given_once_or_none() {
    let twice = read("", &[], &[("max-pairs", &["1", "2"])]);
    assert_eq!(problems(&twice), ["--max-pairs: is given 2 times"]);
    let toml = "rate_limit_per_key = 5\nkeys_file = 'k'\ncompute_threads = 2\n";
    let unset = [("COGNATE_RATE_LIMIT_PER_KEY", "off"), ("COGNATE_KEYS_FILE", "")];
    let loaded = read(toml, &unset, &[("compute-threads", &["cores"])]);
    assert_eq!(problems(&loaded), [""; 0]);
    assert_eq!(loaded.settings, Settings::default());
    let list = read("max_pairs = [1]", &[], &[]);
    assert_eq!(problems(&list), ["cognate.toml:1: max_pairs: takes one value, not a list"]);
}

#[test]
fn settings_must_fit_each_other_and_the_machine() {
    let digest = "ab".repeat(32);
    let table: &[(Flagged, &str)] = &[
        (&[("listen", &["0.0.0.0:8080"])], "--listen: others can reach 0.0.0.0:8080"),
        (&[("listen", &["[::ffff:10.0.0.1]:80"])], "--listen: others can reach"),
        (&[("admin-listen", &["10.0.0.1:81"])], "--admin-listen: others can reach 10.0.0.1:81"),
        (&[("admin-listen", &["127.0.0.1:8080"])], "--admin-listen: 127.0.0.1:8080 is taken"),
        (&[("model", &["A=b"])], "--model: `A` is no name for a model"),
        (&[("model", &["a=b", "a=c"])], "--model: `a` names two models"),
        (&[("model-digest", &["abc"])], "--model-digest: `abc` is not 64 hex digits"),
        (&[("model-digest", &[&format!("{}xx", &digest[2..])])], "--model-digest: "),
        (
            &[("max-connections", &["60000"])],
            "--max-connections: 60000 connections, with 15128 files",
        ),
        (&[("max-pairs", &["70000"])], "admission_units (default): 65536 is less than the 70000"),
        (&[("spool-bytes", &["1MiB"])], "stream_spool_bytes (default): 268435456 bytes of one"),
        (&[("cors-origins", &["https://a/"])], "--cors-origins: `https://a/` is no exact origin"),
        (&[("cors-origins", &["*"]), ("keys-file", &["k"])], "--cors-origins: `*` would let"),
    ];
    for (flagged, expected) in table {
        let mut loaded = read("", &[], flagged);
        assert_eq!(problems(&loaded), [""; 0], "{flagged:?}");
        loaded.check(&Fine { open_files: 4096, wrong: false });
        let problems = problems(&loaded);
        assert_eq!(problems.len(), 1, "{flagged:?}: {problems:?}");
        assert!(problems[0].starts_with(expected), "{problems:?}");
    }
    let fine: &[Flagged] = &[
        &[],
        &[("listen", &["0.0.0.0:8080"]), ("allow-no-auth", &["true"])],
        &[("listen", &["0.0.0.0:8080"]), ("keys-file", &["k"])],
        &[("listen", &["[::1]:0"]), ("admin-listen", &["[::1]:0"])],
        &[("listen", &["[::ffff:127.0.0.1]:80"])],
        &[("cors-origins", &["*"])],
        &[("model-digest", &[&digest])],
    ];
    for flagged in fine {
        let mut loaded = read("", &[], flagged);
        loaded.check(&FINE);
        assert_eq!(problems(&loaded), [""; 0], "{flagged:?}");
    }
}

#[test]
fn collections_have_one_home() {
    let database = ("postgres", &["postgres://host/database"][..]);
    for other in ["data", "replica-of"] {
        let mut loaded = read("", &[], &[(other, &["folder"]), database]);
        assert_eq!(problems(&loaded), [""; 0], "{other}");
        loaded.check(&FINE);
        let problems = problems(&loaded);
        let expected = "--postgres: give one of `data`, `replica_of` and `postgres`";
        assert!(problems.iter().any(|problem| problem.starts_with(expected)), "{problems:?}");
    }
}

#[test]
fn copies_are_made_of_a_folder_and_lie_outside() {
    for (more, expected) in [
        (("listen", &["127.0.0.1:0"][..]), Some("--backups: give `data` or `replica_of`")),
        (("data", &["folder"][..]), Some("--backups: it is within folder: name another place")),
        (("replica-of", &["other"][..]), None),
    ] {
        let mut loaded = read("", &[], &[("backups", &["folder/copies"]), more]);
        loaded.check(&FINE);
        let problem = problems(&loaded).pop();
        assert!(problem.as_deref().map_or(expected.is_none(), |told| {
            expected.is_some_and(|expected| told.starts_with(expected))
        }));
    }
}

#[test]
fn what_the_machine_says_is_told_with_the_rest() {
    let mut loaded = read("", &[], &[("keys-file", &["k"]), ("model-digest", &["5"])]);
    loaded.check(&Fine { open_files: 100, wrong: true });
    let keys: BTreeSet<_> = loaded.problems.iter().filter_map(|problem| problem.key).collect();
    let expected = ["keys_file", "log", "max_connections", "model", "model_digest"];
    assert_eq!(keys, BTreeSet::from(expected));
}

/// Holds each model to be bad that comes with a digest or with another.
struct Alone;

impl Environment for Alone {
    fn open_files(&self) -> u64 {
        u64::MAX
    }

    fn model(&self, model: &NamedModel, alone: &Settings) -> Result<(), String> {
        assert_eq!(alone.model, std::slice::from_ref(model));
        alone.model_digest.as_ref().map_or(Ok(()), |_| Err(model.name.clone()))
    }

    fn keys(&self, _: &Path) -> Result<(), String> {
        Ok(())
    }

    fn data(&self, _: &Path) -> Result<(), String> {
        Ok(())
    }

    fn replica_of(&self, _: &Path) -> Result<(), String> {
        Ok(())
    }

    fn log(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn the_digest_is_that_of_the_first_model() {
    let digest = "0f".repeat(32);
    let mut loaded =
        read("", &[], &[("model", &["a=1", "b=2", "c=3"]), ("model-digest", &[&digest])]);
    loaded.check(&Alone);
    assert_eq!(problems(&loaded), ["--model: a"]);
}

#[test]
fn a_broken_file_is_all_that_is_told_of() {
    let mut loaded = read("listen = \nmax_pairs = 0\n", &[("COGNATE_LISTEN", "0.0.0.0:80")], &[]);
    loaded.check(&Fine { open_files: 1, wrong: true });
    let problems = problems(&loaded);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].starts_with("cognate.toml:1: "), "{problems:?}");
}

#[test]
fn settings_written_out_are_read_back_the_same() {
    let mut loaded = read("", &[], &[]);
    for round in 0..2 {
        let toml = format!("\n{}", loaded.to_toml());
        for setting in LIST {
            assert!(toml.contains(&format!("\n{} = ", setting.key)), "{}", setting.key);
        }
        let again = read(&toml, &[], &[]);
        assert_eq!(problems(&again), [""; 0], "{toml}");
        assert_eq!(again.settings, loaded.settings, "round {round}");
        for setting in LIST {
            (setting.write)(&mut loaded.settings, &sample(setting)).unwrap();
        }
    }
}
