//! Clients that are slow, silent, greedy or many: each is let go in time, and the others served.

use std::time::{Duration, Instant};

use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Extension, Router};
use cognate_server::http::Peer;
use rustix::process::{Pid, Resource, Rlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use crate::support::listener::{ASK, Served, answer, ask, closed_within, settings};
use crate::support::process::Process;

fn hello() -> Router {
    Router::new()
        .route("/hello", get(|| async { "hello" }))
        .route(
            "/peer",
            get(|Extension(Peer(peer)): Extension<Peer>| async move { peer.to_string() }),
        )
        .route("/large", get(|| async { vec![b'x'; 16 << 20] }))
        .route("/unwanted", post(|| async { (StatusCode::PAYLOAD_TOO_LARGE, "too much") }))
}

/// Seconds as a test has them to give.
fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Sends a head a byte every 50 ms until the connection breaks.
async fn dribble(stream: &mut TcpStream) {
    for byte in b"GET /hello HTTP/1.1\r\nx: ".iter().chain(std::iter::repeat(&b'y')) {
        let sent = stream.write_all(std::slice::from_ref(byte)).await;
        let mut answered = [0; 1];
        if sent.is_err() || stream.try_read(&mut answered).is_ok() {
            return;
        }
        sleep(seconds(0.05)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_of_four_kinds_are_closed_in_time_while_another_is_served() {
    let served = Served::start(&settings(|s| s.header_timeout_s = 1), hello());
    let mut kinds = Vec::new();
    for _ in 0..20 {
        let mut silent = served.connect().await;
        kinds.push(tokio::spawn(async move {
            let after = closed_within(&mut silent, seconds(5.0)).await;
            ("silent", after.unwrap())
        }));
        let mut slow = served.connect().await;
        kinds.push(tokio::spawn(async move {
            let begun = Instant::now();
            timeout(seconds(5.0), dribble(&mut slow)).await.unwrap();
            ("dribbling", begun.elapsed())
        }));
        let mut idle = served.connect().await;
        kinds.push(tokio::spawn(async move {
            ask(&mut idle).await.unwrap();
            ("idle", closed_within(&mut idle, seconds(5.0)).await.unwrap())
        }));
        let mut half = served.connect().await;
        kinds.push(tokio::spawn(async move {
            half.write_all(b"GET /hello HT").await.unwrap();
            sleep(seconds(0.1)).await;
            half.shutdown().await.unwrap();
            ("half-closed", seconds(0.9) + closed_within(&mut half, seconds(5.0)).await.unwrap())
        }));
    }
    let begun = Instant::now();
    let mut legitimate = served.connect().await;
    let mut slowest = Duration::ZERO;
    while begun.elapsed() < seconds(1.6) {
        let asked = Instant::now();
        let (head, body) = ask(&mut legitimate).await.unwrap();
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert_eq!(body, b"hello");
        slowest = slowest.max(asked.elapsed());
        sleep(seconds(0.002)).await;
    }
    assert!(slowest < seconds(0.5), "{slowest:?}");
    for kind in kinds {
        let (kind, after) = kind.await.unwrap();
        assert!((seconds(0.85)..seconds(2.0)).contains(&after), "{kind}: {after:?}");
    }
    served.until_open(1).await;
    // An idle connection ends as agreed.
    assert_eq!(served.early_ends(), [("header_timeout", 40), ("client_gone", 20)]);
}

#[tokio::test]
async fn a_reader_of_a_byte_now_and_then_is_dropped_and_a_slow_honest_one_is_not() {
    let served = Served::start(&settings(|s| s.write_timeout_s = 1), hello());
    let asking = async |buffer| {
        let socket = TcpSocket::new_v4().unwrap();
        // Left alone, the kernel would take in most of the answer at once.
        socket.set_recv_buffer_size(buffer).unwrap();
        let mut stream = socket.connect(served.address).await.unwrap();
        stream.write_all(b"GET /large HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
        stream
    };
    let mut greedy = asking(16 << 10).await;
    let mut honest = asking(256 << 10).await;
    served.until_open(2).await;
    let begun = Instant::now();
    let reader = tokio::spawn(async move {
        // Half of what the kernel lets through at once is far more than a byte, so bytes alone
        // would not show whether a burst resets the timeout: this one lasts for several.
        let mut burst = vec![0; 8 << 10];
        loop {
            sleep(seconds(0.2)).await;
            match greedy.read(&mut burst).await {
                Ok(count) if count > 0 => {}
                _ => return begun.elapsed(),
            }
        }
    });
    let honest = tokio::spawn(async move {
        let mut part = vec![0; 64 << 10];
        let mut total = 0;
        // Some 600 KiB a second for three seconds, then all of it.
        while let Ok(count @ 1..) = honest.read(&mut part).await {
            total += count;
            if begun.elapsed() < seconds(3.0) {
                sleep(seconds(count as f64 / 600e3)).await;
            }
            if total > 16 << 20 {
                return total;
            }
        }
        total
    });
    served.until_open(1).await;
    let dropped = begun.elapsed();
    assert!((seconds(0.9)..seconds(3.0)).contains(&dropped), "{dropped:?}");
    assert!(honest.await.unwrap() > 16 << 20);
    // The reset takes what the kernel still held, so the reader learns of it at once.
    let noticed = timeout(seconds(3.0), reader).await.unwrap().unwrap();
    assert!(noticed < dropped + seconds(2.0), "{noticed:?}");
    assert!(served.early_ends().contains(&("write_timeout", 1)), "{:?}", served.early_ends());
}

#[tokio::test]
async fn connections_that_end_early_are_counted_by_their_reason() {
    let served = Served::start(&settings(|_| ()), hello());
    let mut garbage = served.connect().await;
    garbage.write_all(b"\x16\x03\x01 no HTTP\r\n\r\n").await.unwrap();
    closed_within(&mut garbage, seconds(5.0)).await.unwrap();
    drop(garbage);
    let mut broken_off = served.connect().await;
    broken_off.write_all(b"POST /unwanted HTTP/1.1\r\nhost:").await.unwrap();
    drop(broken_off);
    // Between requests a client may go as it likes.
    for linger in [true, false] {
        let mut done = served.connect().await;
        ask(&mut done).await.unwrap();
        if linger {
            done.set_zero_linger().unwrap();
        }
    }
    served.connect().await.set_zero_linger().unwrap();
    served.until_open(0).await;
    assert_eq!(served.early_ends(), [("client_gone", 1), ("invalid_head", 1)]);
}

#[tokio::test]
async fn at_the_cap_clients_wait_in_the_queue_until_there_is_room() {
    let served = Served::start(&settings(|s| s.max_connections = 2), hello());
    let mut first = served.connect().await;
    let mut second = served.connect().await;
    assert!(ask(&mut first).await.is_some());
    assert!(ask(&mut second).await.is_some());
    let mut third = served.connect().await;
    third.write_all(ASK).await.unwrap();
    assert!(timeout(seconds(0.3), answer(&mut third)).await.is_err(), "served beyond the cap");
    assert_eq!((served.open(), served.refused()), (2, 1));
    drop(first);
    let (_, body) = timeout(seconds(2.0), answer(&mut third)).await.unwrap().unwrap();
    assert_eq!(body, b"hello");
    drop((second, third));
    served.until_open(0).await;
}

#[tokio::test]
async fn after_so_many_requests_the_answer_says_that_it_is_the_last() {
    let served = Served::start(&settings(|s| s.requests_per_connection = 3), hello());
    let mut client = served.connect().await;
    for turn in 1..=3 {
        let (head, _) = ask(&mut client).await.unwrap();
        assert_eq!(head.contains("connection: close"), turn == 3, "{turn}: {head}");
    }
    assert!(closed_within(&mut client, seconds(1.0)).await.is_some());
}

#[tokio::test]
async fn handlers_learn_who_asks() {
    let served = Served::start(&settings(|_| ()), hello());
    let mut client = served.connect().await;
    client.write_all(b"GET /peer HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
    let (_, body) = answer(&mut client).await.unwrap();
    assert_eq!(String::from_utf8(body).unwrap(), client.local_addr().unwrap().to_string());
}

#[tokio::test]
async fn an_answer_before_the_body_is_read_arrives_although_the_client_goes_on_sending() {
    let served = Served::start(&settings(|_| ()), hello());
    for _ in 0..20 {
        let mut client = served.connect().await;
        let head = "POST /unwanted HTTP/1.1\r\nhost: h\r\ncontent-length: 4000000\r\n\r\n";
        client.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..40 {
            client.write_all(&vec![b'x'; 100_000]).await.unwrap();
        }
        let (head, body) = answer(&mut client).await.expect("no reset before the answer");
        assert!(head.starts_with("http/1.1 413"), "{head}");
        assert_eq!(body, b"too much");
    }
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused_with_its_status() {
    let small = settings(|s| (s.header_bytes, s.header_count) = (8 << 10, 4));
    let served = Served::start(&small, hello());
    let long = format!("GET /hello HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(100_000));
    let many = format!("GET /hello HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(5));
    for head in [long, many] {
        let mut client = served.connect().await;
        client.write_all(head.as_bytes()).await.unwrap();
        let (head, _) = answer(&mut client).await.expect("no reset before the answer");
        assert!(head.starts_with("http/1.1 431"), "{head}");
    }
}

/// Descriptors that a process has open.
fn descriptors(process: &Process) -> u64 {
    std::fs::read_dir(format!("/proc/{}/fd", process.id())).unwrap().count() as u64
}

/// Processor time that a process has used, in ticks of 10 ms.
fn ticks(process: &Process) -> u64 {
    let line = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap();
    let (_, fields) = line.rsplit_once(')').unwrap();
    fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn without_descriptors_health_is_still_told_and_accepting_does_not_spin() {
    let mut process = Process::start(&["--shutdown-delay-s".to_owned(), "0".to_owned()]);
    // Below what is checked at the start, so taken away only now.
    let pid = Pid::from_raw(process.id() as i32).unwrap();
    let limit = Some(descriptors(&process) + 4);
    rustix::process::prlimit(
        Some(pid),
        Resource::Nofile,
        Rlimit { current: limit, maximum: limit },
    )
    .unwrap();
    let address = process.address;
    let mut silent = Vec::new();
    for _ in 0..8 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    // A hurried client that the machine kept from sending in time is let go: it asks again.
    let health = async || {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < seconds(5.0), "no answer");
            let mut client = TcpStream::connect(address).await.unwrap();
            let request = b"GET /health HTTP/1.1\r\nhost: h\r\n\r\n";
            if client.write_all(request).await.is_err() {
                continue;
            }
            let Some((head, _)) = timeout(seconds(5.0), answer(&mut client)).await.unwrap() else {
                continue;
            };
            assert!(head.starts_with("http/1.1 200"), "{head}");
            return (head.contains("connection: close"), begun.elapsed());
        }
    };
    // The silent ones that did not get a descriptor are let go before it.
    let (last, after) = health().await;
    assert!(last, "a hurried connection is for one request");
    assert!(after < seconds(3.0), "{after:?}");
    // The log is written beside the work, so it may come a moment later.
    process.until_log("the shortage", |log| log.contains("cannot accept connections"));
    let waiting = TcpStream::connect(address).await.unwrap();
    let before = ticks(&process);
    sleep(seconds(1.0)).await;
    let used = ticks(&process) - before;
    assert!(used < 30, "{used} ticks in a second");
    assert_eq!(process.log().matches("cannot accept").count(), 1, "said once, not each time");
    drop((silent, waiting));
    let given_back = Instant::now();
    while health().await.0 {
        assert!(given_back.elapsed() < seconds(5.0), "connections are hurried for ever");
        sleep(seconds(0.05)).await;
    }
}
