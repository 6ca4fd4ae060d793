//! The rule of imports: each module uses only modules below it.

use std::fs;
use std::path::{Path, PathBuf};

/// A module and the modules it may use. A file's module is the first path component under `src`.
const MAY_USE: [(&str, &[&str]); 24] = [
    ("random", &[]),
    ("kernels", &["random"]),
    ("text", &["kernels"]),
    ("files", &[]),
    ("page", &[]),
    ("stats", &["random"]),
    ("model", &["text", "random", "kernels"]),
    ("methods", &["random", "kernels", "model"]),
    ("engine", &["kernels", "model", "methods"]),
    ("window", &["random", "kernels", "methods", "engine"]),
    ("collection", &["kernels", "files", "model", "methods", "engine", "window"]),
    ("events", &["text", "files", "model", "methods", "engine", "window"]),
    ("pack", &["text", "kernels", "files", "model"]),
    ("export", &["text", "model"]),
    ("fit", &["files", "model", "methods"]),
    ("train", &["text", "random", "kernels", "files", "page", "stats", "model", "methods"]),
    ("inspect", &["text", "kernels", "model", "methods"]),
    ("pairs", &["text", "random", "files", "model"]),
    (
        "eval",
        &[
            "text", "random", "kernels", "files", "page", "stats", "model", "methods", "engine",
            "window",
        ],
    ),
    ("bulk", &["files", "model", "engine"]),
    ("dedupe", &["random", "kernels", "files", "model", "methods", "engine"]),
    ("http", &["model", "methods", "engine", "window", "collection"]),
    (
        "cli",
        &[
            "text",
            "files",
            "stats",
            "model",
            "engine",
            "window",
            "events",
            "collection",
            "http",
            "pack",
            "export",
            "fit",
            "train",
            "inspect",
            "pairs",
            "eval",
            "bulk",
            "dedupe",
        ],
    ),
    ("main", &["cli"]),
];

/// The modules of `http` and those of them that each may use.
const MAY_USE_IN_HTTP: [(&str, &[&str]); 18] = [
    ("dialect", &[]),
    ("error", &["dialect"]),
    ("observe", &["dialect", "error"]),
    ("settings", &["dialect", "observe"]),
    ("auth", &["error", "observe", "settings"]),
    ("registry", &["error", "settings", "auth"]),
    ("work", &["error", "observe", "auth"]),
    ("request", &["error", "settings", "registry"]),
    ("net", &["error", "observe", "settings", "request"]),
    ("openapi", &["dialect", "error", "registry"]),
    ("app", &["dialect", "error", "observe", "settings", "auth", "registry", "work"]),
    ("routes", &["dialect", "openapi", "app"]),
    ("middleware", &["error", "observe", "settings", "auth", "request", "net", "app"]),
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
            "dialect", "error", "auth", "registry", "work", "request", "openapi", "app", "routes",
            "api",
        ],
    ),
    ("surface", &["dialect", "openapi", "app", "routes", "api", "compatible"]),
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
            "surface",
        ],
    ),
    ("serve", &["settings", "net", "app"]),
];

/// Modules that may hold `unsafe`, and nothing else may.
const UNSAFE: [&str; 3] = ["kernels/simd/", "model/mapped.rs", "model/sigbus.rs"];

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

fn each_source(mut look: impl FnMut(&str, &str)) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    sources(&root, &mut found);
    assert!(found.len() > 10);
    for path in found {
        let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        look(&name, &fs::read_to_string(&path).unwrap());
    }
}

#[test]
fn imports_point_one_way() {
    each_source(|name, source| {
        let module = name.split(['/', '.']).next().unwrap();
        if module == "lib" {
            return;
        }
        let rule = MAY_USE.iter().find(|(known, _)| *known == module);
        let (_, allowed) = rule.unwrap_or_else(|| panic!("{name}: a module that no rule names"));
        for (number, line) in source.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            assert!(!code.contains("crate::{"), "{name}:{}: one import a line", number + 1);
            for used in code.split("crate::").skip(1) {
                let used = used.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
                let fine = used == module || allowed.contains(&used) || used.is_empty();
                assert!(fine, "{name}:{}: `{module}` may not use `{used}`", number + 1);
            }
        }
    });
}

#[test]
fn modules_of_the_service_use_only_those_below_them() {
    let mut seen = 0;
    each_source(|name, source| {
        let Some(inside) = name.strip_prefix("http/").filter(|inside| *inside != "mod.rs") else {
            return;
        };
        let module = inside.split(['/', '.']).next().unwrap();
        let rule = MAY_USE_IN_HTTP.iter().position(|(known, _)| *known == module);
        let rule = rule.unwrap_or_else(|| panic!("{name}: a module that no rule names"));
        let (_, allowed) = MAY_USE_IN_HTTP[rule];
        let below = |used: &&str| MAY_USE_IN_HTTP[..rule].iter().any(|(known, _)| known == used);
        assert!(allowed.iter().all(below), "`{module}` is allowed what stands above it");
        for (number, line) in source.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            for used in code.split("crate::http::").skip(1) {
                let used = used.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
                seen += 1;
                let fine = used == module || allowed.contains(&used);
                assert!(fine, "{name}:{}: `{module}` may not use `{used}`", number + 1);
            }
        }
    });
    assert!(seen > 300, "only {seen} imports were looked at");
}

/// A key may be limited to some collections, so what a request asks is never asked of all of them.
#[test]
fn requests_get_to_collections_as_their_callers_do() {
    let mut seen = 0;
    each_source(|name, source| {
        if !name.starts_with("http/") {
            return;
        }
        for (number, line) in source.lines().enumerate() {
            let whole = line.contains("collections.home()") || line.contains("collections::open(");
            // To look after them, and where they are kept apart.
            let fine = ["http/app.rs", "http/registry/reachable.rs"].contains(&name);
            assert!(fine || !whole, "{name}:{}: not as a caller has them", number + 1);
            seen += usize::from(whole);
        }
    });
    assert!(seen > 0);
}

/// Who wants the library without the service must not meet its crates.
#[test]
fn the_crates_of_the_service_stay_in_its_module() {
    each_source(|name, source| {
        if name.starts_with("http/") {
            return;
        }
        for (number, line) in source.lines().enumerate() {
            // What encrypts connections to a database has the name of a crate of the service in its own.
            let code = line.split("//").next().unwrap_or("").replace("tokio_postgres_rustls", "");
            for service in ["axum", "hyper", "tokio", "tower", "utoipa"] {
                let used =
                    code.contains(&format!("{service}::")) || code.contains(&format!("{service}_"));
                assert!(!used, "{name}:{}: {service} belongs to `http`", number + 1);
            }
        }
    });
}

#[test]
fn unsafe_stays_in_its_modules() {
    each_source(|name, source| {
        if !UNSAFE.iter().any(|module| name.starts_with(module)) {
            assert!(!source.contains("allow(unsafe_code)"), "{name} lets itself be unsafe");
        }
    });
}

#[test]
fn files_are_short_and_say_what_they_are() {
    each_source(|name, source| {
        let lines = source.lines().count();
        assert!(lines <= 400, "{name} has {lines} lines: split it by meaning");
        assert!(source.starts_with("//!"), "{name} does not open with what it is");
    });
}
