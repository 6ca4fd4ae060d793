//! P36: what cannot be done in time is refused at once, without asking for another try.

use std::time::{Duration, Instant};

use crate::ground::Ground;
use crate::report::{Bar, Report};
use crate::scenarios::stop;
use crate::server::Server;
use crate::wire;

const PAIRS: usize = 900;
const WORDS: usize = 512;

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&ground.launch).await?;
    let vocabulary: Vec<&str> = ground.oracle.engine().model().vocabulary().words().collect();
    let plain = |word: &&&str| word.len() < 7 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let words: Vec<&str> = vocabulary.iter().filter(plain).copied().take(2 * WORDS).collect();
    let (a, b) = (words[..WORDS].join(" "), words[WORDS..].join(" "));
    let ask = async |method: &str, pairs: usize| {
        let pairs = vec![[&a, &b]; pairs];
        let body = serde_json::json!({ "pairs": pairs, "method": method }).to_string();
        let begun = Instant::now();
        let request = wire::post("/similarity", body.as_bytes());
        let reply = wire::once(server.address, &request, Duration::from_secs(10)).await;
        let reply = reply.map_err(|broken| anyhow::anyhow!("{method}: {broken:?}"))?;
        anyhow::Ok((reply, begun.elapsed().as_secs_f64()))
    };
    for method in ["wmd", "wrd"] {
        let (reply, took) = ask(method, PAIRS).await?;
        let (code, detail) = (reply.text("code"), reply.text("detail"));
        report.note(format!("{method}: {} {code}: {detail}", reply.status));
        report.must(reply.status == 422 && code == "too_much_work" && !reply.retry_after, || {
            format!("{method}: {PAIRS} pairs of {WORDS} words are answered {} {code}", reply.status)
        });
        report.figure(format!("{method}: refused after"), took, "s", Bar::AtMost(0.5));
        let fits = detail.rsplit("about ").next().and_then(|number| number.parse().ok());
        let fits: usize = fits.unwrap_or(0);
        report.count(format!("{method}: pairs that fit, as the refusal says"), fits as u64);
        let (smaller, took) = ask(method, fits.div_ceil(4).max(1)).await?;
        report.figure(
            format!("{method}: a quarter of that, {}", smaller.status),
            took,
            "s",
            Bar::None,
        );
        report.must(smaller.text("code") != "too_much_work", || {
            format!("{method}: a quarter of what fits is refused as too much")
        });
    }
    stop(server, report).await
}
