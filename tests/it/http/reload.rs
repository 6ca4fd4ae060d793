//! New models taken into use while questions are asked: none is lost, none is answered by two, and
//! a bad file changes nothing.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use cognate::model::Storage;
use cognate::model::format::Dtype;
use cognate_server::http::{App, NamedModel, Settings};
use cognate_testing::breaches;
use serde_json::json;

use crate::support::app::TestApp;
use crate::support::{rounds, tiny};

async fn app_over(path: &Path, change: impl FnOnce(&mut Settings)) -> TestApp {
    let model = vec![NamedModel { name: "default".to_owned(), path: path.to_owned() }];
    let mut settings = Settings { model, ..Settings::default() };
    change(&mut settings);
    let app = App::new(settings).unwrap();
    app.reload().await.unwrap();
    TestApp::over(app)
}

fn replace(path: &Path, bytes: &[u8]) {
    let fresh = path.with_extension("new");
    std::fs::write(&fresh, bytes).unwrap();
    std::fs::rename(fresh, path).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_meet_the_old_model_or_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let files = [tiny(Dtype::F32), tiny(Dtype::I8)];
    replace(&path, &files[0]);
    let app = app_over(&path, |_| ()).await;
    let question = json!({"a": "the quake", "b": "new york town", "method": "avg-cos"});
    let mut known = Vec::new();
    for file in &files {
        replace(&path, file);
        app.app.reload().await.unwrap();
        let answer = app.ask("/similarity", question.clone()).await;
        known.push((answer["fingerprint"].clone(), answer["scores"].clone()));
    }
    assert_ne!(known[0], known[1]);
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let askers: Vec<_> = (0..4)
        .map(|_| {
            let (app, stop, seen) = (app.clone(), stop.clone(), seen.clone());
            let (known, question) = (known.clone(), question.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let answer = app.ask("/similarity", question.clone()).await;
                    let found = (answer["fingerprint"].clone(), answer["scores"].clone());
                    let place = known.iter().position(|one| *one == found);
                    let place = place.expect("an answer of one model, not of two");
                    seen[place].fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for round in 0..rounds(40, 200) {
        replace(&path, &files[round % 2]);
        let before = seen[round % 2].load(Ordering::Relaxed);
        let app = app.app.clone();
        app.reload().await.unwrap();
        let started = Instant::now();
        while seen[round % 2].load(Ordering::Relaxed) == before {
            assert!(started.elapsed() < Duration::from_secs(20), "the new model is never asked");
            tokio::task::yield_now().await;
        }
    }
    stop.store(true, Ordering::Relaxed);
    for asker in askers {
        asker.await.unwrap();
    }
}

#[tokio::test]
async fn a_bad_file_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    replace(&path, &tiny(Dtype::F32));
    let app = app_over(&path, |_| ()).await;
    let question = json!({"a": "the quake", "b": "new york town"});
    let before = app.ask("/similarity", question.clone()).await;
    let sound = tiny(Dtype::F32);
    let mut bad: Vec<Vec<u8>> = [0, 8, 63, 64, 500, sound.len() / 2, sound.len() - 1]
        .map(|length| sound[..length].to_vec())
        .into();
    let mut flipped = sound.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    bad.push(flipped);
    bad.extend(breaches::files());
    let failures = bad.len();
    for file in bad {
        replace(&path, &file);
        app.post("/-/reload", "").await.refusal(422, "bad_model");
        assert_eq!(app.get("/ready").await.status, 200);
        assert_eq!(app.ask("/similarity", question.clone()).await, before);
    }
    let page = app.get("/metrics").await.text();
    assert!(page.contains(&format!("cognate_reload_failures_total {failures}\n")), "{page}");
    replace(&path, &tiny(Dtype::I8));
    let reloaded = app.post("/-/reload", "").await;
    assert_eq!(reloaded.status, 200);
    assert_ne!(reloaded.json()["models"][0]["fingerprint"], before["fingerprint"]);
}

#[tokio::test]
async fn a_file_changed_in_place_under_its_map_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    replace(&path, &tiny(Dtype::F32));
    let mapped = app_over(&path, |_| ()).await;
    let copied = app_over(&path, |settings| settings.model_storage = Storage::Copy).await;
    // A rename over it is how models are meant to be replaced.
    replace(&path, &tiny(Dtype::I8));
    mapped.app.look_after_models();
    assert_eq!(mapped.get("/ready").await.status, 200);
    mapped.app.reload().await.unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
    for app in [&mapped, &copied] {
        app.app.look_after_models();
    }
    mapped.get("/ready").await.refusal(503, "not_ready");
    assert!(
        mapped.get("/metrics").await.text().contains("cognate_model_intact{model=\"default\"} 0\n")
    );
    assert_eq!(copied.get("/ready").await.status, 200);
    replace(&path, &tiny(Dtype::F32));
    mapped.app.reload().await.unwrap();
    assert_eq!(mapped.get("/ready").await.status, 200);
}

/// Only the damaged model is refused; the server is as ready as its default model.
#[tokio::test]
async fn a_damaged_model_is_refused_and_a_touched_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["one", "two"].map(|name| folder.path().join(name));
    replace(&paths[0], &tiny(Dtype::F32));
    replace(&paths[1], &tiny(Dtype::I8));
    let app = app_over(&paths[0], |settings| {
        settings.model.push(NamedModel { name: "int8".to_owned(), path: paths[1].clone() });
    })
    .await;
    let ask = async |model: &str| {
        app.app.look_after_models();
        let question = json!({"a": "the quake", "b": "town", "model": model});
        app.post("/similarity", question.to_string()).await
    };
    let open = |path: &Path| File::options().write(true).open(path).unwrap();
    let touched = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    for path in &paths {
        open(path).set_modified(touched).unwrap();
    }
    assert_eq!(ask("default").await.status, 200);
    assert_eq!(ask("int8").await.status, 200);
    assert_eq!(app.get("/ready").await.status, 200);

    open(&paths[1]).set_len(1 << 20).unwrap();
    let problem = ask("int8").await.refusal(503, "not_ready");
    assert!(problem["detail"].as_str().unwrap().contains("`int8`"), "{problem}");
    assert_eq!(ask("default").await.status, 200);
    assert_eq!(app.get("/ready").await.status, 200, "whoever asks for the default is served");
    let page = app.get("/metrics").await.text();
    for gauge in ["{model=\"default\"} 1", "{model=\"int8\"} 0"] {
        assert!(page.contains(&format!("cognate_model_intact{gauge}\n")), "{page}");
    }

    open(&paths[0]).set_len(1 << 20).unwrap();
    ask("default").await.refusal(503, "not_ready");
    app.get("/ready").await.refusal(503, "not_ready");
    replace(&paths[0], &tiny(Dtype::F32));
    replace(&paths[1], &tiny(Dtype::I8));
    app.app.reload().await.unwrap();
    assert_eq!(ask("int8").await.status, 200);
    assert_eq!(app.get("/ready").await.status, 200);
}

#[tokio::test]
async fn a_pinned_digest_refuses_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    replace(&path, &tiny(Dtype::F32));
    let digest = blake3::hash(&tiny(Dtype::F32)).to_hex().to_string();
    let app = app_over(&path, |settings| settings.model_digest = Some(digest)).await;
    app.app.reload().await.unwrap();
    replace(&path, &tiny(Dtype::I8));
    assert_eq!(app.app.reload().await.unwrap_err().code.name(), "bad_model");
}

#[tokio::test]
async fn several_models_are_chosen_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["one", "two"].map(|name| folder.path().join(name));
    replace(&paths[0], &tiny(Dtype::F32));
    replace(&paths[1], &tiny(Dtype::I8));
    let app = app_over(&paths[0], |settings| {
        settings.model.push(NamedModel { name: "int8".to_owned(), path: paths[1].clone() });
    })
    .await;
    let question = |model: &str| json!({"a": "the quake", "b": "town", "model": model});
    let one = app.ask("/similarity", question("default")).await;
    let two = app.ask("/similarity", question("int8")).await;
    assert_eq!((&one["model"], &two["model"]), (&json!("default"), &json!("int8")));
    assert_ne!(one["fingerprint"], two["fingerprint"]);
    assert_eq!(app.ask("/similarity", json!({"a": "the quake", "b": "town"})).await, one);
    assert_eq!(app.get("/models").await.json()["models"][1]["name"], "int8");
}
