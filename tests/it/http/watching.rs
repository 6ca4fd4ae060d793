//! What operators watch: every metric that the alert rules and the dashboard name is served from the
//! start. Whether the queries are well formed is for `deploy/check.sh`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::app::TestApp;

/// Names that begin as ours do, wherever they stand in the text.
fn named(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("cognate_") || word.starts_with("process_"))
        .collect()
}

#[tokio::test]
async fn every_metric_that_is_watched_is_served() {
    // What a replica serves beside all else.
    let folder = tempfile::tempdir().unwrap();
    let replica = TestApp::with(|settings| settings.replica_of = Some(folder.path().to_owned()));
    let page = replica.get("/metrics").await.text();
    let served: BTreeSet<&str> = page
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    for (file, at_least) in [("prometheus/alerts.yml", 15), ("grafana/dashboards/cognate.json", 25)]
    {
        let text = fs::read_to_string(deploy.join(file)).unwrap();
        let watched = named(&text);
        assert!(watched.len() >= at_least, "{file} watches only {watched:?}");
        let missing: Vec<_> = watched.difference(&served).collect();
        assert!(missing.is_empty(), "{file} watches {missing:?}, which are not served");
    }
}
