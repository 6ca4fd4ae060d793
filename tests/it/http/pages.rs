//! The pages for people: what they are made of, what they may not do, and that they stay at home.

use std::collections::BTreeSet;

use crate::support::app::TestApp;

/// Every page and every file, with its media type.
const FILES: [(&str, &str); 36] = [
    ("/", "text/html; charset=utf-8"),
    ("/assets/playground.css", "text/css; charset=utf-8"),
    ("/assets/answers.css", "text/css; charset=utf-8"),
    ("/assets/playground.js", "text/javascript; charset=utf-8"),
    ("/assets/asking.js", "text/javascript; charset=utf-8"),
    ("/assets/beside.js", "text/javascript; charset=utf-8"),
    ("/assets/catalogue.js", "text/javascript; charset=utf-8"),
    ("/assets/collections.js", "text/javascript; charset=utf-8"),
    ("/assets/elements.js", "text/javascript; charset=utf-8"),
    ("/assets/eventlist.js", "text/javascript; charset=utf-8"),
    ("/assets/events.js", "text/javascript; charset=utf-8"),
    ("/assets/everymethod.js", "text/javascript; charset=utf-8"),
    ("/assets/explanation.js", "text/javascript; charset=utf-8"),
    ("/assets/groups.js", "text/javascript; charset=utf-8"),
    ("/assets/link.js", "text/javascript; charset=utf-8"),
    ("/assets/live.js", "text/javascript; charset=utf-8"),
    ("/assets/matrix.js", "text/javascript; charset=utf-8"),
    ("/assets/names.js", "text/javascript; charset=utf-8"),
    ("/assets/offline.js", "text/javascript; charset=utf-8"),
    ("/assets/pairs.js", "text/javascript; charset=utf-8"),
    ("/assets/programs.js", "text/javascript; charset=utf-8"),
    ("/assets/ranking.js", "text/javascript; charset=utf-8"),
    ("/assets/recommending.js", "text/javascript; charset=utf-8"),
    ("/assets/scoring.js", "text/javascript; charset=utf-8"),
    ("/assets/settings.js", "text/javascript; charset=utf-8"),
    ("/assets/stream.js", "text/javascript; charset=utf-8"),
    ("/assets/table.js", "text/javascript; charset=utf-8"),
    ("/assets/icon.svg", "image/svg+xml"),
    ("/docs/index.html", "text/html; charset=utf-8"),
    ("/guides", "text/html; charset=utf-8"),
    ("/assets/docs.css", "text/css; charset=utf-8"),
    ("/assets/docs.js", "text/javascript; charset=utf-8"),
    ("/assets/guide.css", "text/css; charset=utf-8"),
    ("/assets/guide.js", "text/javascript; charset=utf-8"),
    ("/docs/swagger-ui.css", "text/css; charset=utf-8"),
    ("/docs/swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
];

const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// Files that we did not write.
fn is_foreign(path: &str) -> bool {
    path.starts_with("/docs/swagger-ui")
}

/// Files that people open.
fn is_page(path: &str) -> bool {
    ["/", "/guides"].contains(&path) || path.ends_with(".html")
}

/// Our own files with their contents.
async fn ours() -> Vec<(&'static str, String)> {
    let app = TestApp::new();
    let mut found = Vec::new();
    for (path, _) in FILES.into_iter().filter(|(path, _)| !is_foreign(path)) {
        found.push((path, app.get(path).await.text()));
    }
    found
}

/// The pages alone.
async fn pages() -> Vec<(&'static str, String)> {
    let mut found = ours().await;
    found.retain(|(path, _)| is_page(path));
    assert_eq!(found.len(), 3);
    found
}

/// What stands between two marks, wherever it does.
fn between<'t>(text: &'t str, open: &str, close: char) -> Vec<&'t str> {
    text.split(open).skip(1).map(|rest| rest.split(close).next().unwrap()).collect()
}

#[tokio::test]
async fn every_file_is_served_as_what_it_is() {
    let app = TestApp::new();
    for (path, media) in FILES {
        let answer = app.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), media, "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("content-security-policy"), POLICY, "{path}");
        assert!(answer.body.len() > 100, "{path}: {} bytes", answer.body.len());
    }
}

#[tokio::test]
async fn the_short_ways_lead_to_the_document() {
    for way in ["/docs", "/docs/"] {
        let answer = TestApp::new().get(way).await;
        assert_eq!(answer.status, 308, "{way}");
        assert_eq!(answer.header("location"), "/docs/index.html");
        assert_eq!(answer.header("content-security-policy"), POLICY);
    }
}

/// A server that asks for keys, with the folder of its key file.
fn with_keys() -> (TestApp, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    let hash = "0".repeat(64);
    std::fs::write(&keys, format!("somebody:query:{hash}\n")).unwrap();
    (TestApp::with(|settings| settings.keys_file = Some(keys)), folder)
}

#[tokio::test]
async fn the_document_is_drawn_with_locks_only_where_keys_are_asked_for() {
    let drawn = async |app: TestApp| app.get("/docs/index.html").await.text();
    let (keyed, _folder) = with_keys();
    assert!(drawn(keyed).await.contains("<main id=\"surface\" data-keys=\"true\">"));
    assert!(drawn(TestApp::new()).await.contains("<main id=\"surface\" data-keys=\"false\">"));
}

#[tokio::test]
async fn pages_and_files_need_no_key() {
    let (app, _folder) = with_keys();
    app.get("/methods").await.refusal(401, "unauthorized");
    for (path, _) in FILES {
        assert_eq!(app.get(path).await.status, 200, "{path}");
    }
}

/// A tired person with the answer of a program finds what it means on the server that sent it.
#[tokio::test]
async fn the_type_of_a_problem_and_the_guides_are_pages() {
    let (app, _folder) = with_keys();
    let problem = app.get("/none").await.refusal(404, "not_found");
    let explained = app.get(problem["type"].as_str().unwrap()).await;
    assert_eq!(explained.header("content-type"), "text/html; charset=utf-8");
    assert!(
        explained.text().contains("<h1 id=\"not-found\">Not found</h1>"),
        "{}",
        explained.text()
    );
    let list = app.get("/guides").await.text();
    let guides = between(&list, "<a href=\"/guides/", '"');
    assert!(guides.len() > 10);
    for guide in guides {
        let page = app.get(&format!("/guides/{guide}")).await;
        assert_eq!((page.status.as_u16(), page.header("content-security-policy")), (200, POLICY));
        assert!(page.text().contains("<h1 id="), "{guide}");
        // Whoever reads a guide asks nobody else.
        assert!(!page.text().contains("src=\"http"), "{guide}");
    }
    for missing in
        ["/guides/none", "/guides/..%2FREADME", "/guides/%ff", "/problems/none", "/problems/%ff"]
    {
        app.get(missing).await.refusal(404, "not_found");
    }
}

#[tokio::test]
async fn other_files_do_not_exist() {
    let app = TestApp::new();
    // The vendored package brings a page of its own, whose script asks other hosts.
    for path in [
        "/assets/none.js",
        "/assets/",
        "/assets/..%2Fpages.rs",
        "/docs/none.js",
        "/docs/..%2Findex.html",
        "/docs/swagger-initializer.js",
        "/docs/oauth2-redirect.html",
        "/favicon.ico",
    ] {
        app.get(path).await.refusal(404, "not_found");
    }
}

#[tokio::test]
async fn nothing_of_ours_names_another_host() {
    for (path, text) in ours().await {
        let text = text.replace("http://www.w3.org/2000/svg", "");
        for scheme in ["http:", "https:", "ws://", "wss://", "//www.", "url("] {
            assert!(!text.contains(scheme), "{path}: {scheme}");
        }
        for attribute in ["src=\"", "href=\""] {
            for target in between(&text, attribute, '"') {
                let here = target.starts_with('/') && !target.starts_with("//");
                assert!(here, "{path}: {attribute}{target}");
            }
        }
    }
    let script = TestApp::new().get("/assets/docs.js").await.text();
    // Swagger UI asks a validator of another host unless it is told not to.
    assert!(script.contains("validatorUrl: null"));
}

#[tokio::test]
async fn our_pages_keep_to_the_policy() {
    for (path, page) in pages().await {
        assert!(page.starts_with("<!doctype html>\n<html lang=\"en\">"), "{path}");
        assert!(!page.contains("<style"), "{path}: an inline style sheet");
        for (start, _) in page.match_indices("<script") {
            let contents = page[start..].split_once('>').unwrap().1;
            assert!(contents.starts_with("</script>"), "{path}: a script with contents");
        }
        for element in between(&page, "<", '>') {
            let mut attributes = element.split_whitespace().filter(|part| part.contains('='));
            let forbidden = attributes.find(|at| at.starts_with("on") || at.starts_with("style="));
            assert_eq!(forbidden, None, "{path}: <{element}>");
        }
    }
}

#[tokio::test]
async fn what_pages_load_is_served() {
    let served: BTreeSet<&str> = FILES.iter().map(|(path, _)| *path).collect();
    let mut loaded: BTreeSet<String> =
        FILES.iter().map(|(path, _)| *path).filter(|path| is_page(path)).map(Into::into).collect();
    for (path, text) in ours().await {
        if is_page(path) {
            loaded.extend(between(&text, "src=\"", '"').into_iter().map(Into::into));
            let links = between(&text, "<link ", '>').into_iter();
            loaded.extend(links.flat_map(|link| between(link, "href=\"", '"')).map(Into::into));
        } else {
            let modules = between(&text, "from \"./", '"').into_iter();
            loaded.extend(modules.map(|module| format!("/assets/{module}")));
        }
    }
    // Neither is a file missing nor is one carried along that no page loads.
    assert_eq!(loaded.iter().map(String::as_str).collect::<BTreeSet<_>>(), served);
}

#[tokio::test]
async fn scripts_never_make_markup_of_texts() {
    for (path, text) in ours().await {
        for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!text.contains(way), "{path}: {way}");
        }
        for store in ["localStorage", "sessionStorage", "document.cookie", "indexedDB"] {
            assert!(!text.contains(store), "{path}: keeps something in {store}");
        }
    }
}

#[tokio::test]
async fn every_field_has_a_label() {
    for (path, page) in pages().await {
        let labelled: BTreeSet<&str> = between(&page, "<label for=\"", '"').into_iter().collect();
        let mut fields = 0;
        for kind in ["<textarea ", "<select ", "<input "] {
            for field in between(&page, kind, '>') {
                let id = between(field, "id=\"", '"')[0];
                assert!(labelled.contains(id), "{path}: {id} has no label");
                fields += 1;
            }
        }
        assert_eq!(fields, if path == "/" { 34 } else { 0 }, "{path}");
    }
}
