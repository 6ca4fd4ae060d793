//! P35: a revoked key is out at the next reload, whatever else fails.

use std::time::{Duration, Instant};

use cognate_server::http::auth::keys;
use cognate_server::http::auth::keys::Scope;
use rustix::process::Signal;

use crate::ground::Ground;
use crate::report::{Bar, Report};
use crate::scenarios::stop;
use crate::server::{Launch, Server};
use crate::{models, wire};

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let folder = ground.folder.path();
    let (model, keys) = (folder.join("model.safetensors"), folder.join("keys"));
    models::replace(&model, &std::fs::read(&ground.launch.model)?)?;
    let line = |id: &str, scope| keys::line(id, scope, &format!("key of {id}"));
    let lines = [line("alice", Scope::Query), line("root", Scope::Admin)];
    let lines = lines.into_iter().collect::<Result<Vec<_>, _>>().map_err(anyhow::Error::msg)?;
    std::fs::write(&keys, lines.join("\n"))?;
    let flags = ["--keys-file".to_owned(), keys.display().to_string()];
    let launch = Launch { model: model.clone(), ..ground.launch.clone() };
    let server = Server::start(&launch.with(&[&flags[0], &flags[1]])).await?;
    let ask = async |id: &str, path: &str| {
        let request = String::from_utf8(wire::post(path, b"{\"a\":\"quake\",\"b\":\"city\"}"))?;
        let key = format!("\r\nauthorization: Bearer key of {id}\r\n");
        let request = request.replacen("\r\n", &key, 1);
        let reply = wire::once(server.address, request.as_bytes(), Duration::from_secs(5)).await;
        reply.map_err(|broken| anyhow::anyhow!("{path}: {broken:?}"))
    };
    let before = ask("alice", "/similarity").await?.status;
    report.must(before == 200, || format!("before: {before}"));
    std::fs::write(&keys, &lines[1])?;
    std::fs::remove_file(&model)?;
    server.signal(Signal::HUP)?;
    let begun = Instant::now();
    while ask("alice", "/similarity").await?.status != 401 && begun.elapsed().as_secs() < 10 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    report.figure("revoked after", begun.elapsed().as_secs_f64(), "s", Bar::AtMost(1.0));
    let after = ask("alice", "/similarity").await?.status;
    report.must(after == 401, || format!("a revoked key is answered {after}"));
    let other = ask("root", "/similarity").await?.status;
    report.must(other == 200, || format!("the old model is answered {other}"));
    let reload = ask("root", "/-/reload").await?;
    let detail = reload.text("detail");
    report.note(format!("the reload: {} {detail}", reload.status));
    let told = detail.contains("keys were taken over") && detail.contains("serve on");
    report.must(reload.status == 422 && told, || "the refusal does not say which".to_owned());
    let logged = server.logged("keys loaded") && server.logged("models not loaded");
    report.must(logged, || "the log does not say which".to_owned());
    stop(server, report).await
}
