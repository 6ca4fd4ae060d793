//! The documents say what is there: links lead somewhere, commands and settings exist, tests that
//! are named hold what is promised, counts agree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cognate::methods::{Kind, Method};
use cognate_server::http::observe::streams::EndReason;
use cognate_server::http::settings::LIST;

/// Lines that a newcomer reads; the rest belongs under `docs/`.
const README_LINES: usize = 110;
/// Words of code in OPERATIONS.md that look like settings and are none.
const NO_SETTINGS: [&str; 9] = [
    "computed_ms",
    "collection_full",
    "trace_id",
    "client_gone",
    "slow_reader",
    "slow_sender",
    "broken_body",
    "spool_full",
    "response_too_large",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Every document, by its path from the root.
fn documents() -> BTreeMap<PathBuf, String> {
    let folders = [
        "",
        "docs",
        "docs/integrations",
        "docs/measurements",
        "benches",
        "deploy",
        "fuzz",
        "models",
    ];
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let folders = folders.iter().map(|folder| root().join(folder)).chain(crates);
    let entries = folders.flat_map(|folder| fs::read_dir(folder).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    let markdown = paths.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let found: BTreeMap<_, _> = markdown
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path.strip_prefix(root()).unwrap().to_owned(), text)
        })
        .collect();
    assert!(found.contains_key(Path::new("README.md")));
    assert!(found.contains_key(Path::new("docs/API.md")));
    found
}

/// Lines outside fenced blocks, and the blocks with their languages.
fn parted(text: &str) -> (Vec<&str>, Vec<(&str, String)>) {
    let (mut prose, mut blocks, mut open) = (Vec::new(), Vec::new(), None);
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(_), Some(block)) => blocks.push(block),
            (Some(language), None) => open = Some((language.trim(), String::new())),
            (None, Some((language, block))) => open = Some((language, block + line + "\n")),
            (None, None) => prose.push(line),
        }
    }
    assert!(open.is_none(), "a block without an end");
    (prose, blocks)
}

/// What stands between backticks.
fn spans<'t>(prose: &[&'t str]) -> impl Iterator<Item = &'t str> {
    prose.iter().flat_map(|line| line.split('`').skip(1).step_by(2)).collect::<Vec<_>>().into_iter()
}

/// The targets of links.
fn links(prose: &[&str]) -> Vec<String> {
    let text = prose.join("\n");
    let ends = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    ends.map(str::to_owned).collect()
}

/// A heading as links name it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let (prose, _) = parted(text);
    let headings = prose.iter().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

/// Whether a word is several words of lower case, joined as names of Rust and settings are.
fn is_snake_case(word: &str, least_words: usize) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    word.chars().all(plain)
        && word.split('_').filter(|part| !part.is_empty()).count() >= least_words
}

#[test]
fn the_readme_is_for_the_first_minute() {
    let lines = read("README.md").lines().count();
    assert!(lines <= README_LINES, "README.md has {lines} lines: move what is not for newcomers");
}

/// What names the version of a release names that of Cargo.toml.
#[test]
fn deployments_name_the_version_that_is_here() {
    let version = env!("CARGO_PKG_VERSION");
    let manifest = format!("version = \"{version}\"");
    for (file, line) in [
        ("duckdb/Cargo.toml", manifest.clone()),
        ("duckdb/description.yml", format!("  version: {version}")),
        ("python/Cargo.toml", manifest.clone()),
        ("wasm/Cargo.toml", manifest),
        ("wasm/lib/package.json", format!("  \"version\": \"{version}\",")),
        ("deploy/helm/cognate/Chart.yaml", format!("version: {version}")),
        ("deploy/helm/cognate/Chart.yaml", format!("appVersion: {version}")),
        ("deploy/kubernetes/kustomization.yaml", format!("    newTag: {version}")),
    ] {
        assert!(read(file).lines().any(|found| found == line), "{file}: expected `{line}`");
    }
}

/// Registries compare it with the workflow that publishes.
#[test]
fn manifests_name_one_repository() {
    let repository = env!("CARGO_PKG_REPOSITORY");
    let owner = repository.rsplit('/').nth(1).unwrap();
    for (file, line) in [
        ("python/pyproject.toml", format!("Homepage = \"{repository}\"")),
        ("wasm/lib/package.json", format!("\"url\": \"git+{repository}.git\"")),
        ("deploy/helm/cognate/Chart.yaml", format!("home: {repository}")),
        ("Dockerfile", format!("image.source=\"{repository}\"")),
        ("duckdb/description.yml", format!("  github: {owner}/duckdb-cognate")),
    ] {
        assert!(read(file).contains(&line), "{file}: expected `{line}`; run `.ci/owner`");
    }
}

#[test]
fn methods_are_counted_rightly_and_all_explained() {
    let all = Method::ALL.len();
    let rankers = Method::ALL.iter().filter(|method| method.info().kind == Kind::Ranker).count();
    assert!(read("README.md").contains(&format!("- {all} methods")), "README.md: {all} methods");
    let methods = read("docs/METHODS.md");
    let counts = format!(
        "cognate has {all} methods: {} score how alike two texts are, {rankers} only rank",
        all - rankers
    );
    assert!(methods.contains(&counts), "docs/METHODS.md: expected `{counts}`");
    for method in Method::ALL {
        let name = method.name();
        assert!(methods.contains(&format!("`{name}`")), "docs/METHODS.md does not explain {name}");
    }
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut problems = Vec::new();
    for (path, text) in documents() {
        let (prose, _) = parted(&text);
        for link in links(&prose).into_iter().filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            let full = root().join(&target);
            if !full.exists() {
                problems.push(format!("{}: {link} leads nowhere", path.display()));
            } else if !heading.is_empty()
                && !anchors(&fs::read_to_string(&full).unwrap()).contains(heading)
            {
                problems.push(format!("{}: {link}: no such heading", path.display()));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

/// What the binary says of a subcommand; nothing where this build has it left out.
fn help(subcommand: &[&str]) -> Option<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cognate"));
    let output = command.args(subcommand).arg("--help").output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

/// The subcommands that a help lists.
fn listed(help: &str) -> Vec<&str> {
    let after = help.split_once("\nCommands:\n").map_or("", |(_, after)| after);
    let lines = after.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).collect()
}

/// What is wrong with a call, given as the words after `cognate`.
fn problem(words: &[&str]) -> Option<String> {
    let mut path = Vec::new();
    let mut told = help(&path).unwrap();
    for word in words {
        let commands = listed(&told);
        if commands.is_empty() || word.starts_with('-') {
            break;
        }
        if !commands.contains(word) {
            return Some(format!("`cognate {}` has no `{word}`", path.join(" ")));
        }
        path.push(word);
        told = help(&path)?;
    }
    let flags = words.iter().filter_map(|word| word.split('=').next());
    let known: BTreeSet<&str> =
        told.split(|c: char| c.is_whitespace() || "[=,".contains(c)).collect();
    let mut unknown = flags.filter(|flag| flag.len() > 1 && flag.starts_with('-'));
    let unknown = unknown.find(|flag| !known.contains(flag))?;
    Some(format!("`cognate {}` has no `{unknown}`", path.join(" ")))
}

#[test]
fn commands_that_are_quoted_exist() {
    let (mut calls, mut problems) = (0, Vec::new());
    for (path, text) in documents() {
        let (prose, blocks) = parted(&text);
        let shell = blocks.iter().filter(|(language, _)| *language == "sh");
        let joined: String = shell.map(|(_, block)| block.replace("\\\n", " ")).collect();
        let quoted = spans(&prose).filter(|span| span.starts_with("cognate "));
        for line in joined.lines().chain(quoted) {
            let code = line.split(" #").next().unwrap_or("");
            for call in code.split(['|', ';', '&']) {
                let call = call.replace("cargo run --locked --release -- ", "cognate ");
                let mut words = call.split_whitespace();
                if words.next() == Some("cognate") {
                    let problem = problem(&words.collect::<Vec<_>>());
                    problems.extend(problem.map(|what| format!("{}: {what}", path.display())));
                    calls += 1;
                }
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(calls > 60, "only {calls} calls were found");
}

#[test]
fn settings_are_the_ones_that_exist() {
    let text = read("docs/OPERATIONS.md");
    let (prose, _) = parted(&text);
    let named: BTreeSet<&str> = spans(&prose).collect();
    let known: BTreeSet<&str> = LIST.iter().map(|setting| setting.key).collect();
    for word in &named {
        let series = word.starts_with("cognate_") || word.starts_with("process_");
        let label = EndReason::ALL.iter().any(|reason| reason.name() == *word);
        let none = series || label || NO_SETTINGS.contains(word);
        let looks_like_one = is_snake_case(word, 2) && !none;
        assert!(!looks_like_one || known.contains(word), "docs/OPERATIONS.md: no setting `{word}`");
    }
    for key in known {
        assert!(named.contains(key), "docs/OPERATIONS.md does not name the setting `{key}`");
    }
}

/// A promise is as good as its test.
#[test]
fn tests_that_are_named_exist() {
    fn sources(folder: &Path, found: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut code = String::new();
    for folder in ["crates", "src", "tests/it"] {
        sources(&root().join(folder), &mut code);
    }
    let mut named = 0;
    for path in ["docs/PROMISES.md", "docs/ARCHITECTURE.md", "RELEASE.md"] {
        let text = read(path);
        let (prose, _) = parted(&text);
        for name in spans(&prose).filter(|span| is_snake_case(span, 4)) {
            assert!(code.contains(&format!("fn {name}(")), "{path}: there is no test `{name}`");
            named += 1;
        }
    }
    assert!(named > 25, "only {named} tests are named");
}

/// Each promise has its figures in the proof, whichever commit that was of.
#[test]
fn every_promise_has_figures_in_the_proof() {
    let rows = |document: &str| -> Vec<String> {
        let document = read(document);
        let names = document.lines().filter_map(|line| line.strip_prefix("| P")?.split(' ').next());
        let rows = names.filter(|name| name.chars().all(|c| c.is_ascii_digit()));
        rows.map(|number| format!("P{number}")).collect()
    };
    let promised = rows("docs/PROMISES.md");
    assert!(promised.len() > 70, "{} promises", promised.len());
    assert_eq!(rows("docs/PROOF.md"), promised, "run `.ci/long`, which writes docs/PROOF.md");
}
