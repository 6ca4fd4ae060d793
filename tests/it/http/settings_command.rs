//! `cognate serve` before it serves: help, `--check`, and what it says when settings are wrong.

use std::net::TcpListener;

use cognate_server::http::settings::LIST;

use crate::support::command::{cognate, stderr, stdout};

/// A folder with the tiny model in it.
fn with_model() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let bytes = crate::support::tiny(cognate::model::format::Dtype::F32);
    std::fs::write(folder.path().join("tiny.bin"), bytes).unwrap();
    folder
}

#[test]
fn help_shows_every_setting_with_default_range_and_variable() {
    let folder = tempfile::tempdir().unwrap();
    let output = cognate(folder.path(), &[], &["serve", "--help"]);
    assert!(output.status.success());
    let help = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    for setting in LIST {
        assert!(help.contains(&format!("--{}", setting.flag())), "{}", setting.key);
        assert!(help.contains(setting.help.trim().trim_end_matches('.')), "{}", setting.key);
        let range = setting.rule.range().map(|range| format!("; {range}")).unwrap_or_default();
        let end = format!("{range}; env {}]", setting.variable());
        assert!(help.contains(&end), "{}: {end}", setting.key);
    }
    assert!(help.contains("[default: 8MiB; 1KiB to 64MiB; env COGNATE_BODY_BYTES]"));
}

#[test]
fn short_help_has_a_line_a_flag_in_sections() {
    let folder = tempfile::tempdir().unwrap();
    let output = cognate(folder.path(), &[], &["serve", "-h"]);
    let help = stdout(&output);
    let (_, flags) = help.split_once("\nOptions:\n").unwrap();
    for line in flags.lines().filter(|line| !line.is_empty()) {
        let flag = line.starts_with("      --") || line.starts_with("  -h");
        let heading = !line.starts_with(' ') && line.ends_with(':');
        assert!(flag || heading, "`{line}` in\n{help}");
        assert!(line.len() <= 100, "{line}");
    }
    let mut sections: Vec<&str> = LIST.iter().map(|setting| setting.section).collect();
    sections.dedup();
    let found: Vec<&str> = flags.lines().filter_map(|line| line.strip_suffix(':')).collect();
    assert_eq!(found, sections);
    for setting in LIST {
        // No flag whose name begins so.
        let named = [' ', '['].map(|after| format!("--{}{after}", setting.flag()));
        let line = flags.lines().find(|line| named.iter().any(|named| line.contains(named)));
        assert!(line.unwrap().ends_with(setting.summary()), "{}", setting.key);
    }
    assert!(
        help.contains("--admission-units <NUMBER>      Maximum texts, pairs and candidates in")
    );
    let long = cognate(folder.path(), &[], &["serve", "--help"]);
    for section in sections {
        assert!(stdout(&long).contains(&format!("\n{section}:\n")), "{section}");
    }
}

#[test]
fn check_prints_settings_that_can_be_saved() {
    let folder = with_model();
    let arguments = ["serve", "--check", "--model", "tiny=tiny.bin", "--max-pairs=77"];
    let arguments = [&arguments[..], &["--allow-no-auth"]].concat();
    let environment = [("COGNATE_TEXT_BYTES", "2 KiB"), ("COGNATE_LISTEN", "0.0.0.0:8080")];
    let first = cognate(folder.path(), &environment, &arguments);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    let toml = stdout(&first);
    for line in [
        "max_pairs = 77  # flag --max-pairs",
        "allow_no_auth = true  # flag --allow-no-auth",
        "text_bytes = \"2KiB\"  # environment COGNATE_TEXT_BYTES",
        "max_texts = 10000  # default",
    ] {
        assert!(toml.lines().any(|printed| printed == line), "{line} in\n{toml}");
    }
    std::fs::write(folder.path().join("cognate.toml"), toml).unwrap();
    let second = cognate(folder.path(), &[], &["serve", "--check"]);
    assert_eq!(second.status.code(), Some(0), "{}", stderr(&second));
    let values = |toml: &str| -> Vec<String> {
        toml.lines().map(|line| line.split("  # ").next().unwrap().to_owned()).collect()
    };
    assert_eq!(values(stdout(&second)), values(toml));
    assert!(stdout(&second).contains("max_pairs = 77  # file cognate.toml:"));
    let other = folder.path().join("other.toml");
    std::fs::write(&other, "max_pairs = 78\nmodel = 'tiny=tiny.bin'\n").unwrap();
    for (environment, arguments) in [
        (&[][..], &["serve", "--check", "--config", "other.toml"][..]),
        (&[("COGNATE_CONFIG", "other.toml")], &["serve", "--check"]),
    ] {
        let output = cognate(folder.path(), environment, arguments);
        let expected = "max_pairs = 78  # file other.toml:1";
        assert!(stdout(&output).contains(expected), "{}", stdout(&output));
    }
}

#[test]
fn every_problem_is_told_at_once() {
    let folder = with_model();
    let bad = folder.path().join("bad.bin");
    let mut bytes = std::fs::read(folder.path().join("tiny.bin")).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&bad, bytes).unwrap();
    std::fs::write(folder.path().join("keys"), "web:query:12\n").unwrap();
    let toml = "max_pears = 1\nmax_pairs = 0\nkeys_file = 'keys'\n";
    std::fs::write(folder.path().join("cognate.toml"), toml).unwrap();
    let environment = [("COGNATE_MODEL", "tiny=tiny.bin,bad=bad.bin"), ("COGNATE_PORT", "1")];
    let digest = "0".repeat(64);
    let arguments = ["serve", "--body-byte", "5", "--chek=1", "--log", "loud", "--check"];
    let arguments = [&arguments[..], &["--model-digest", &digest]].concat();
    let output = cognate(folder.path(), &environment, &arguments);
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    for expected in [
        "cognate.toml:1: `max_pears` is no setting; did you mean max_pairs?",
        "cognate.toml:2: max_pairs: `0` is out of range: 1 to 100000",
        "cognate.toml:3: keys_file: keys:1: the digest is not 64 hex digits",
        "COGNATE_PORT: no such setting; `cognate serve --help` lists them",
        "COGNATE_MODEL: model `bad`: bad.bin",
        "--body-byte: no such setting; did you mean --body-bytes?",
        "--chek: no such setting; did you mean --check?",
        "COGNATE_MODEL: model `tiny`: tiny.bin: expected BLAKE3 digest 000",
        "--log: `loud` is none of ",
    ] {
        assert!(told.contains(expected), "{expected} in\n{told}");
    }
    assert!(stdout(&output).contains("max_pairs = 10000  # default"));
    let refused = cognate(folder.path(), &environment, &["serve"]);
    assert_eq!(refused.status.code(), Some(2));
    // Among lines of a log all of that is one line.
    let line: serde_json::Value = serde_json::from_str(stderr(&refused)).unwrap();
    assert!(line["message"].as_str().unwrap().contains("did you mean max_pairs?"), "{line}");
    let missing = cognate(folder.path(), &[], &["serve", "--check", "--config", "none.toml"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("cannot read none.toml"), "{}", stderr(&missing));
}

/// What a start would meet: whether its address is to be had, and its logs.
#[test]
fn addresses_and_logs_are_looked_at() {
    let folder = with_model();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let check = |more: &[&str]| {
        let always = ["serve", "--check", "--model", "tiny.bin"];
        let output = cognate(folder.path(), &[], &[&always, more].concat());
        (output.status.code(), stderr(&output).to_owned())
    };
    // It may be this service that has it, whose settings are looked at.
    let (code, told) = check(&["--listen", &address]);
    assert!(code == Some(0) && told.contains(&format!("listen: {address} is in use")), "{told}");
    let (code, told) =
        check(&["--listen", "127.0.0.1:0", "--admin-listen", "192.0.2.1:1", "--allow-no-auth"]);
    assert!(told.contains("listen: 127.0.0.1:0 can be listened on"), "{told}");
    let expected = "--admin-listen: cannot listen on 192.0.2.1:1: ";
    assert!(code == Some(2) && told.contains(expected), "{told}");

    for name in ["good", "bad"] {
        let made = ["collection", "create", name, "--data", "data"];
        assert!(cognate(folder.path(), &[], &made).status.success());
    }
    let [good, bad] = ["good", "bad"].map(|name| folder.path().join("data").join(name));
    let log = bad.join("items.log");
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[60] ^= 1;
    std::fs::write(&log, &bytes).unwrap();
    let torn = [std::fs::read(good.join("items.log")).unwrap(), b"torn".to_vec()].concat();
    std::fs::write(good.join("items.log"), &torn).unwrap();
    for (home, damaged, code) in
        [("data", "refuse", 2), ("data", "serve-others", 0), ("replica-of", "refuse", 2)]
    {
        let home = format!("--{home}");
        let listen = ["--listen", "127.0.0.1:0", "--damaged", damaged, &home, "data"];
        let (found, told) = check(&listen);
        assert_eq!(found, Some(code), "{told}");
        assert!(told.contains("data/bad/items.log, byte 0"), "{told}");
        assert!(told.contains(": the logs of 1 collections are whole, "), "{told}");
    }
    assert_eq!(std::fs::read(good.join("items.log")).unwrap(), torn, "nothing is changed");
}

#[test]
fn one_variable_names_the_model_to_the_service_and_to_the_tools() {
    let folder = with_model();
    let rows = "5\tquake\tthe quake\n1\tcity\tnew york\n2\ttown\tthe city\n";
    std::fs::write(folder.path().join("sts.tsv"), rows).unwrap();
    let measuring = ["eval", "sts", "sts.tsv", "--methods", "avg-cos", "--resamples", "10"];
    for given in ["tiny.bin", "own=tiny.bin", "own=tiny.bin,other=tiny.bin"] {
        for arguments in [&["serve", "--check"][..], &measuring] {
            let output = cognate(folder.path(), &[("COGNATE_MODEL", given)], arguments);
            assert_eq!(output.status.code(), Some(0), "{given}: {}", stderr(&output));
        }
    }
    for given in ["tiny.bin", "own=tiny.bin"] {
        let flag = ["--model", given];
        for arguments in [&["serve", "--check"][..], &measuring] {
            let output = cognate(folder.path(), &[], &[arguments, &flag].concat());
            assert_eq!(output.status.code(), Some(0), "{given}: {}", stderr(&output));
        }
    }
    let nothing = cognate(folder.path(), &[("COGNATE_MODEL", "own=")], &measuring);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(stderr(&nothing).contains("`own=` is not a file"), "{}", stderr(&nothing));
}
