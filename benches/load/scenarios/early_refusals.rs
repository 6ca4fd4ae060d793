//! P33: an answer that is given before the body was read loses no other request: the body is read
//! all the same, or the answer says that the connection closes.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::ground::Ground;
use crate::report::Report;
use crate::scenarios::stop;
use crate::server::Server;
use crate::wire;
use crate::wire::Connection;

const CLIENTS: usize = 16;

/// What is sent: a request that is answered by its head alone, and the status.
fn early(pairs: &[u8]) -> Vec<(Vec<u8>, u16)> {
    let json = "content-type: application/json\r\n";
    let request = |line: &str, fields: &str, body: &[u8]| {
        let length = body.len();
        let head =
            format!("{line} HTTP/1.1\r\nhost: h\r\n{fields}content-length: {length}\r\n\r\n");
        [head.as_bytes(), body].concat()
    };
    let long = vec![b' '; 100 << 10];
    vec![
        (request("POST /nothing", json, b"{}"), 404),
        (request("PUT /similarity", json, b"{}"), 405),
        (request("POST /similarity", "content-type: text/plain\r\n", pairs), 415),
        (request("POST /similarity?method=jaccard", json, pairs), 422),
        (request("GET /health", json, b"{}"), 200),
        (request("POST /similarity", "content-type: text/plain\r\n", &long), 415),
        // Overloaded, since the server has no room for so many pairs.
        (request("POST /similarity", json, pairs), 503),
    ]
}

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let flags = ["--admission-units", "64", "--max-pairs", "64", "--max-texts", "64"];
    let server =
        Server::start(&ground.launch.with(&flags).with(&["--max-candidates", "64"])).await?;
    // Holds all units, so that questions are refused: a body that is announced and comes late.
    let hold = wire::post("/similarity", &vec![b' '; 64 << 10]);
    let mut clients = JoinSet::new();
    let end = Instant::now() + Duration::from_secs_f64(ground.options.seconds);
    let keep_full = {
        let (address, hold) = (server.address, hold.clone());
        async move {
            while Instant::now() < end {
                let Ok(mut connection) = Connection::open(address).await else { continue };
                let parts: [&[u8]; 2] = [&hold[..hold.len() - 1], b" "];
                let _ = connection.exchange_in_parts(&parts, Duration::from_millis(200)).await;
            }
        }
    };
    let pairs = serde_json::json!({ "pairs": [["quake", "city"]] }).to_string();
    let cases = early(pairs.as_bytes());
    for place in 0..CLIENTS {
        let (address, cases) = (server.address, cases.clone());
        clients.spawn_local(async move {
            let (mut slot, mut turn, mut lost, mut wrong) =
                (None::<Connection>, place, 0_u64, 0_u64);
            let (mut asked, mut example) = (0_u64, None);
            while Instant::now() < end {
                let (request, status) = &cases[turn % cases.len()];
                turn += 1;
                let usable = slot.take().filter(Connection::usable);
                let mut connection = match usable {
                    Some(connection) => connection,
                    None => match Connection::open(address).await {
                        Ok(connection) => connection,
                        Err(_) => continue,
                    },
                };
                let head = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(0) + 4;
                let parts = [&request[..head], &request[head..]];
                asked += 1;
                match connection.exchange_in_parts(&parts, Duration::from_millis(1)).await {
                    Ok(reply) => {
                        // Questions are refused for overload before they are looked at, or not at all.
                        let question = request.starts_with(b"POST /similarity");
                        let loaded = question && (reply.status == 503 || *status == 503);
                        let fine = reply.status == *status || loaded;
                        wrong += u64::from(!fine);
                        example = example.or((!fine).then_some((*status, reply.status)));
                        slot = Some(connection);
                    }
                    Err(_) => lost += 1,
                }
            }
            (asked, lost, wrong, example)
        });
    }
    let keeping = tokio::task::spawn_local(keep_full);
    let (mut asked, mut lost, mut wrong, mut example) = (0, 0, 0, None);
    while let Some(done) = clients.join_next().await {
        let done = done?;
        (asked, lost, wrong) = (asked + done.0, lost + done.1, wrong + done.2);
        example = example.or(done.3);
    }
    keeping.await?;
    report.count("requests answered by their head alone", asked);
    report.zero("requests without an answer", lost);
    report.zero("answers of another status", wrong);
    if let Some((expected, got)) = example {
        report.note(format!("the first of another status: {got} where {expected} was due"));
    }
    let shed = server.metrics().await?.sum("cognate_shed_total")?;
    report.must(shed > 0.0, || "nothing was refused for overload".to_owned());
    report.count("of them refused for overload", shed as u64);
    stop(server, report).await
}
