//! Bodies of items that have many times more of something than any collection takes.

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::exhaustion::{MIB, health, request};
use crate::support::listener::answer;
use crate::support::process::{Process, limit_data, memory};

/// Bodies of 8 MB whose limits are passed a long way before their ends, and one that keeps them all.
#[tokio::test]
async fn bodies_of_items_hold_nothing_beyond_their_limits() {
    let many = |count: usize, each: &dyn Fn(usize) -> String| {
        (0..count).map(each).collect::<Vec<_>>().join(",")
    };
    let attributes = |count: usize| format!("{{{}}}", many(count, &|at| format!("\"a{at:x}\":1")));
    let of_70 = attributes(70);
    let heavy = attributes(32);
    let bodies = [
        (422, format!(r#"{{"id":"1","text":"a","attributes":{}}}"#, attributes(600_000)), 48 + 64),
        (
            422,
            many(170_000, &|at| format!(r#"{{"id":{at},"text":"a","attributes":{{"a":1}}}}"#)),
            48 + 64,
        ),
        (
            422,
            many(9_000, &|at| format!(r#"{{"id":{at},"text":"a","attributes":{of_70}}}"#)),
            48 + 64,
        ),
        // What is within the limits is paid for, and refused for want of room for it in collections.
        (
            507,
            many(10_000, &|at| format!(r#"{{"id":{at},"text":"a","attributes":{heavy}}}"#)),
            48 + 96,
        ),
    ];
    for (place, (status, items, most)) in bodies.iter().enumerate() {
        for path in ["items", "match"] {
            // What is told here is not that a busy machine is slow.
            let flags = ["--collection-bytes", &MIB.to_string(), "--compute-deadline-ms", "60000"];
            let process = Process::start(&flags.map(str::to_owned));
            let json = "content-type: application/json\r\n";
            let (head, _) = request("PUT /collections/c", json, "{}");
            let mut client = TcpStream::connect(process.address).await.unwrap();
            client.write_all(format!("{head}{{}}").as_bytes()).await.unwrap();
            assert!(answer(&mut client).await.unwrap().0.starts_with("http/1.1 200"));
            let idle = memory(&process, "VmRSS:");
            limit_data(&process, 480 * MIB);
            let route = format!("POST /collections/c/{path}");
            let (head, body) = request(&route, json, &format!("{{\"items\":[{items}]}}"));
            let send = || {
                let (address, bytes) = (process.address, format!("{head}{body}"));
                tokio::spawn(async move {
                    let mut client = TcpStream::connect(address).await.unwrap();
                    // Who is refused early need not be let send the rest.
                    let _ = client.write_all(bytes.as_bytes()).await;
                    let answer = answer(&mut client).await;
                    answer.and_then(|(head, _)| head.get(9..12)?.parse::<u16>().ok())
                })
            };
            for sent in (0..12).map(|_| send()).collect::<Vec<_>>() {
                // On a busy machine all of them may be refused for want of units.
                let refused = sent.await.unwrap();
                assert!(
                    [None, Some(503), Some(*status)].contains(&refused),
                    "{path}, body {place}"
                );
            }
            let refused = send().await.unwrap();
            let log = process.log();
            assert_eq!(refused, Some(*status), "{path}, body {place}, alone:\n{log}");
            let taken = memory(&process, "VmHWM:").saturating_sub(idle);
            assert!(taken <= most * MIB, "{path}, body {place}: {} MiB over idle", taken / MIB);
            assert!(health(&process).await.starts_with("http/1.1 200"));
        }
    }
}
