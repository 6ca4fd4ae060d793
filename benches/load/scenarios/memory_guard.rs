//! P18: under a limit of memory, a model that does not fit is refused as too large, and the old one
//! serves on.

use std::time::Duration;

use crate::generator::Load;
use crate::ground::Ground;
use crate::models;
use crate::report::Report;
use crate::scenarios::bad_reload::ask_reload;
use crate::scenarios::stop;
use crate::server::{Launch, Server};

const LIMIT_KIB: u64 = 1536 << 10;

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let folder = ground.folder.path();
    let (place, large) = (folder.join("model.safetensors"), folder.join("large.safetensors"));
    models::write_ballast(ground.oracle.engine().model(), &large, LIMIT_KIB << 10)?;
    models::replace(&place, &std::fs::read(&ground.launch.model)?)?;
    let launch = Launch {
        model: place.clone(),
        address_space_kib: Some(LIMIT_KIB),
        ..ground.launch.clone()
    };
    let server = Server::start(&launch).await?;
    let load = Load { seconds: ground.options.seconds.min(5.0), ..ground.load(&server, 8) };
    let refusing = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        std::fs::rename(&large, &place)?;
        ask_reload(&server).await
    };
    let (tally, reply) = tokio::try_join!(load.open(200.0), refusing)?;
    let body = String::from_utf8_lossy(&reply.body()).into_owned();
    report.note(format!("the refusal: {} {body}", reply.status));
    report.must(reply.status == 422, || format!("the reload is answered {}", reply.status));
    let named = body.contains("model_too_large") || server.logged("model_too_large");
    report.must(named, || "neither answer nor log says `model_too_large`".to_owned());
    report.all_answered("meanwhile", &tally);
    let after = Load { seconds: 1.0, ..load }.open(200.0).await?;
    report.all_answered("afterwards", &after);
    stop(server, report).await
}
