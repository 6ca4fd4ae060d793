//! The rules of imports that Cargo cannot hold: inside a crate each module uses only modules below it.
//! Between crates the manifests hold the order; here they are read for what they must not name. Each room has
//! a budget of lines, in `rooms.txt`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module and the modules of its crate that it may use.
type Rule = (&'static str, &'static [&'static str]);

/// The modules of the library.
const MAY_USE_IN_CORE: [Rule; 6] = [
    ("choice", &[]),
    ("text", &[]),
    ("model", &["choice", "text"]),
    ("methods", &["choice", "model"]),
    ("engine", &["choice", "model", "methods"]),
    ("window", &["choice", "text", "methods", "engine"]),
];

/// The modules of the root package.
const MAY_USE_IN_ROOT: [Rule; 2] = [("http", &[]), ("cli", &["http"])];

/// The modules of `http` and those of them that each may use.
const MAY_USE_IN_HTTP: [Rule; 19] = [
    ("build", &[]),
    ("dialect", &[]),
    ("error", &["dialect"]),
    ("observe", &["build", "dialect", "error"]),
    ("settings", &["dialect", "observe"]),
    ("auth", &["error", "observe", "settings"]),
    ("registry", &["error", "settings", "auth"]),
    ("work", &["error", "observe", "auth"]),
    ("request", &["error", "settings", "registry"]),
    ("net", &["error", "observe", "settings", "request"]),
    ("openapi", &["dialect", "error", "registry"]),
    ("app", &["dialect", "error", "observe", "settings", "auth", "registry", "work"]),
    ("routes", &["dialect", "openapi", "app"]),
    ("middleware", &["dialect", "error", "observe", "settings", "auth", "request", "net", "app"]),
    (
        "api",
        &[
            "dialect",
            "error",
            "observe",
            "auth",
            "registry",
            "work",
            "request",
            "openapi",
            "app",
            "routes",
            "middleware",
        ],
    ),
    (
        "compatible",
        &[
            "build", "dialect", "error", "auth", "registry", "work", "request", "openapi", "app",
            "routes", "api",
        ],
    ),
    (
        "router",
        &[
            "dialect",
            "error",
            "settings",
            "registry",
            "net",
            "openapi",
            "app",
            "routes",
            "middleware",
            "api",
            "compatible",
        ],
    ),
    ("serve", &["build", "settings", "net", "app"]),
    // A test of the whole.
    ("seeded", &["error", "auth", "registry", "settings", "work", "net", "app", "router"]),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Shows each source below a folder, with its path from there.
fn each_source(folder: &str, mut look: impl FnMut(&str, &str)) {
    let folder = root().join(folder);
    let mut found = Vec::new();
    sources(&folder, &mut found);
    for path in found {
        let name = path.strip_prefix(&folder).unwrap().to_string_lossy().into_owned();
        look(&name, &fs::read_to_string(&path).unwrap());
    }
}

/// The modules right below `prefix` that a source names: `prefix::module`, `prefix::{module, ..}`.
fn used<'s>(source: &'s str, prefix: &str) -> Vec<&'s str> {
    let code: Vec<&str> =
        source.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
    let mut used = Vec::new();
    for line in code {
        for rest in line.split(prefix).skip(1) {
            let names = match rest.strip_prefix('{') {
                Some(list) => list.split('}').next().unwrap_or("").split(',').collect(),
                None => vec![rest],
            };
            let first = |name: &'s str| {
                name.trim().split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("")
            };
            used.extend(names.into_iter().map(first).filter(|name| !name.is_empty()));
        }
    }
    used
}

/// Holds the modules of a folder to their rules, and says how many uses were looked at.
fn hold(folder: &str, prefix: &str, rules: &[Rule]) -> usize {
    let mut seen = 0;
    each_source(folder, |name, source| {
        let module = name.split(['/', '.']).next().unwrap();
        if ["lib", "main", "mod"].contains(&module) {
            return;
        }
        let rule = rules.iter().position(|(known, _)| *known == module);
        let rule = rule.unwrap_or_else(|| panic!("{folder}/{name}: a module that no rule names"));
        let (_, allowed) = rules[rule];
        let below = |used: &&str| rules[..rule].iter().any(|(known, _)| known == used);
        assert!(allowed.iter().all(below), "`{module}` is allowed what stands above it");
        for used in used(source, prefix) {
            seen += 1;
            // What is no module is a name of the crate's root.
            let is_module = rules.iter().any(|(known, _)| *known == used);
            let fine = used == module || allowed.contains(&used) || !is_module;
            assert!(fine, "{folder}/{name}: `{module}` may not use `{used}`");
        }
    });
    seen
}

#[test]
fn imports_point_one_way() {
    assert!(hold("crates/core/src", "crate::", &MAY_USE_IN_CORE) > 300);
    assert!(hold("src", "crate::", &MAY_USE_IN_ROOT) > 500);
}

#[test]
fn modules_of_the_service_use_only_those_below_them() {
    assert!(hold("src/http", "crate::http::", &MAY_USE_IN_HTTP) > 300);
}

/// The module of a file, as its path from the crate's root.
fn module_of(file: &str) -> Vec<String> {
    let mut path: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    if ["lib", "main", "mod"].contains(path.last().unwrap()) {
        path.pop();
    }
    path.into_iter().map(str::to_owned).collect()
}

/// The paths that a file imports from its own crate, from the crate's root; its tests are left out.
fn imported(module: &[String], source: &str) -> Vec<Vec<String>> {
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
    let mut paths = Vec::new();
    for statement in code.split("use ").skip(1) {
        let statement = statement.split(';').next().unwrap();
        let (path, names) = statement.split_once('{').unwrap_or((statement, ""));
        let mut steps: Vec<&str> = path.trim().trim_end_matches("::").split("::").collect();
        let mut base = match steps[0] {
            "crate" => Vec::new(),
            "super" if !module.is_empty() => module[..module.len() - 1].to_vec(),
            _ => continue,
        };
        base.extend(steps.drain(1..).map(|step| step.trim().to_owned()));
        let names = names.trim_end().trim_end_matches('}').split(',');
        for name in names.map(|name| name.trim().split(" as ").next().unwrap()) {
            let mut path = base.clone();
            path.extend((!name.is_empty()).then(|| name.to_owned()));
            paths.push(path);
        }
    }
    paths
}

/// Which files of a crate import which; a module's own parts are no import.
fn imports(folder: &str) -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let mut files = BTreeMap::new();
    each_source(folder, |name, source| {
        files.insert(module_of(name), source.to_owned());
    });
    let of_file = |(module, source): (&Vec<String>, &String)| {
        let file_of = |path: Vec<String>| {
            (0..=path.len())
                .rev()
                .map(|end| path[..end].to_vec())
                .find(|one| files.contains_key(one))
        };
        let used = imported(module, source).into_iter().filter_map(file_of);
        (module.clone(), used.filter(|used| !used.starts_with(module)).collect())
    };
    files.iter().map(of_file).collect()
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    let mut crates = vec!["src".to_owned()];
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        crates.push(format!("crates/{}/src", entry.unwrap().file_name().to_string_lossy()));
    }
    let mut seen = 0;
    for folder in crates {
        let mut left = imports(&folder);
        seen += left.values().map(BTreeSet::len).sum::<usize>();
        // What imports none of those left is in no circle with them.
        loop {
            let before = left.len();
            let names: BTreeSet<Vec<String>> = left.keys().cloned().collect();
            left.retain(|_, used| used.iter().any(|used| names.contains(used)));
            if left.len() == before {
                break;
            }
        }
        assert!(left.is_empty(), "{folder}: in circles, or above one: {left:#?}");
    }
    assert!(seen > 1000, "only {seen} imports were looked at");
}

/// A key may be limited to some collections, so what a request asks is never asked of all of them.
#[test]
fn requests_get_to_collections_as_their_callers_do() {
    let mut seen = 0;
    each_source("src/http", |name, source| {
        for (number, line) in source.lines().enumerate() {
            let whole = line.contains("collections.home()") || line.contains("collections::open(");
            // To look after them, and where they are kept apart.
            let fine = ["app.rs", "registry/collections.rs", "serve.rs"].contains(&name);
            assert!(fine || !whole, "{name}:{}: not as a caller has them", number + 1);
            seen += usize::from(whole);
        }
    });
    assert!(seen > 0);
}

/// Who wants the library without the service must not meet its crates, and nobody below depends on the root.
#[test]
fn crates_of_the_service_stay_in_the_root() {
    let mut manifests = 0;
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path().join("Cargo.toml");
        let manifest = fs::read_to_string(&path).unwrap();
        for line in manifest.lines() {
            let name = line.split(['.', ' ', '=']).next().unwrap_or("");
            let service = ["axum", "cognate-server", "hyper", "tokio", "tower", "tracing"];
            // What only describes types is there for who asks for it.
            let describes = name == "utoipa" && !line.contains("optional = true");
            let fine = !service.contains(&name) && !describes;
            assert!(fine, "{}: {name} belongs to the root", path.display());
        }
        manifests += 1;
    }
    assert!(manifests >= 9, "only {manifests} crates were looked at");
}

#[test]
fn files_say_what_they_are() {
    for folder in ["src", "crates"] {
        each_source(folder, |name, source| {
            assert!(source.starts_with("//!"), "{folder}/{name} does not open with what it is");
        });
    }
}

/// The share of its budget that a room may be below it before the budget is to be lowered.
const ROOM_SLACK: f64 = 0.1;

/// A feature pays by a cut: who raises a budget says in the commit which user is worth it, and who makes a
/// room much smaller lowers it.
#[test]
fn rooms_keep_to_their_budgets() {
    let table = include_str!("rooms.txt");
    let mut rooms: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let (room, budget) = line.split_once(' ').unwrap();
        rooms.insert(room, (budget.trim().parse().unwrap(), 0));
    }
    let mut folders = vec!["src".to_owned()];
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        folders.push(format!("crates/{}/src", entry.unwrap().file_name().to_string_lossy()));
    }
    for folder in folders {
        each_source(&folder, |name, source| {
            let path = format!("{folder}/{name}");
            let holds = |room: &&&str| path.starts_with(&format!("{room}/"));
            let room = rooms.keys().filter(holds).max_by_key(|room| room.len()).copied();
            let room = room.unwrap_or_else(|| panic!("{path} stands in no room"));
            rooms.entry(room).or_default().1 += source.lines().count();
        });
    }
    for (room, (budget, lines)) in &rooms {
        assert!(lines <= budget, "{room} has {lines} lines, {} too many", lines - budget);
        let least = *budget as f64 * (1.0 - ROOM_SLACK);
        assert!(*lines as f64 >= least, "{room} has {lines} lines: lower its budget of {budget}");
    }
}
