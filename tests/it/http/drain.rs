//! Stopping: whoever got a connection and sent a request gets the answer, and the exit code tells
//! whether that held.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::support::listener::{Served, answer, ask, closed_within, settings};
use crate::support::process::Process;
use crate::support::{Chance, rounds};

/// What a client saw while the service stopped.
#[derive(Debug, Default)]
struct Seen {
    answered: usize,
    /// Connected and asked, and got no answer or only a part of one.
    lost: Vec<&'static str>,
}

/// How a client asks.
#[derive(Debug, Clone, Copy)]
enum Habit {
    /// A connection for each request.
    Anew,
    /// One connection, a request at once after each answer.
    Eager,
    /// One connection, with pauses.
    Leisurely,
    /// A connection for each request, which goes out in pieces.
    Piecemeal,
}

const HABITS: [Habit; 4] = [Habit::Anew, Habit::Eager, Habit::Leisurely, Habit::Piecemeal];

fn questions() -> [String; 2] {
    let body = r#"{"pairs":[["the quake hits the city","the earthquake shakes the town"]]}"#;
    let length = body.len();
    [
        "GET /health HTTP/1.1\r\nhost: h\r\n\r\n".to_owned(),
        format!(
            "POST /similarity HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        ),
    ]
}

/// Asks until nobody lets it in any more.
async fn client(address: SocketAddr, habit: Habit, seed: u64) -> Seen {
    let mut chance = Chance(seed);
    let questions = questions();
    let mut seen = Seen::default();
    'connections: while let Ok(mut stream) = TcpStream::connect(address).await {
        stream.set_nodelay(true).unwrap();
        for turn in 0.. {
            let question = questions[chance.below(2)].as_bytes();
            let sent = match habit {
                Habit::Piecemeal => {
                    let (first, second) = question.split_at(1 + chance.below(question.len() - 1));
                    let begun = stream.write_all(first).await;
                    sleep(Duration::from_millis(chance.below(8) as u64)).await;
                    begun.and(stream.write_all(second).await)
                }
                _ => stream.write_all(question).await,
            };
            if sent.is_err() {
                seen.lost.push(if turn == 0 {
                    "before a first request"
                } else {
                    "before a request"
                });
                break;
            }
            let answered = timeout(Duration::from_secs(20), answer(&mut stream)).await;
            let Ok(Some((head, _))) = answered else {
                seen.lost.push(if turn == 0 { "a first answer" } else { "an answer" });
                break;
            };
            assert!(head.starts_with("http/1.1 200"), "{head}");
            seen.answered += 1;
            match habit {
                Habit::Anew | Habit::Piecemeal => continue 'connections,
                _ if head.contains("connection: close") => continue 'connections,
                Habit::Eager => {}
                Habit::Leisurely => sleep(Duration::from_millis(chance.below(300) as u64)).await,
            }
        }
    }
    seen
}

/// Clients of all habits, until the last one found the door closed.
async fn crowd(address: SocketAddr, size: usize, seed: u64) -> Seen {
    let clients: Vec<_> = (0..size)
        .map(|index| tokio::spawn(client(address, HABITS[index % 4], seed ^ (index as u64) << 32)))
        .collect();
    let mut all = Seen::default();
    for client in clients {
        let seen = client.await.unwrap();
        all.answered += seen.answered;
        all.lost.extend(seen.lost);
    }
    all
}

fn router() -> Router {
    async fn similarity(_: Bytes) -> &'static str {
        sleep(Duration::from_millis(20)).await;
        "alike"
    }
    Router::new().route("/health", get(|| async { "well" })).route("/similarity", post(similarity))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_at_any_time_loses_nobody_who_got_in() {
    let mut chance = Chance(20);
    let mut answered = 0;
    // Several at once, since most of a round is waiting for silence.
    for _ in 0..rounds(20, 200) / 10 {
        let round = |seed: u64, after: Duration| async move {
            let served = Served::start(&settings(|_| ()), router());
            let crowd = tokio::spawn(crowd(served.address, 32, seed));
            sleep(after).await;
            let drained = served.stop(Duration::from_secs(15)).await;
            let seen = crowd.await.unwrap();
            assert_eq!(seen.lost, Vec::<&str>::new(), "seed {seed}, stopped after {after:?}");
            assert_eq!(drained.dropped, 0, "seed {seed}");
            seen.answered
        };
        let round: Vec<_> = (0..10)
            .map(|_| {
                let after = Duration::from_micros(chance.below(200_000) as u64);
                tokio::spawn(round(chance.next(), after))
            })
            .collect();
        for round in round {
            answered += round.await.unwrap();
        }
    }
    assert!(answered > 1000, "{answered} answers: too little went on to lose anything");
}

#[tokio::test]
async fn clients_that_the_kernel_let_in_are_served_although_nobody_accepted_them_yet() {
    let served = Served::start(&settings(|s| s.max_connections = 1), router());
    let mut first = served.connect().await;
    first.write_all(questions()[1].as_bytes()).await.unwrap();
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let mut stream = served.connect().await;
        stream.write_all(questions()[0].as_bytes()).await.unwrap();
        waiting.push(stream);
    }
    let address = served.address;
    let stopped = tokio::spawn(served.stop(Duration::from_secs(10)));
    for stream in std::iter::once(&mut first).chain(&mut waiting) {
        let answered = timeout(Duration::from_secs(5), answer(stream)).await.unwrap();
        let (head, _) = answered.expect("reset although let in");
        assert!(head.contains("connection: close"), "{head}");
    }
    assert_eq!(stopped.await.unwrap().dropped, 0);
    assert!(TcpStream::connect(address).await.is_err(), "still listening");
}

#[tokio::test]
async fn what_is_idle_is_closed_soon_and_what_is_unfinished_is_counted() {
    let slow = Router::new()
        .route("/health", get(|| async { "well" }))
        .route("/hello", get(|| async { "hello" }))
        .route("/stuck", get(std::future::pending::<()>));
    let served = Served::start(&settings(|_| ()), slow);
    let mut kept = served.connect().await;
    assert!(ask(&mut kept).await.is_some());
    let mut fresh = served.connect().await;
    let mut stuck = served.connect().await;
    stuck.write_all(b"GET /stuck HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
    let mut half = served.connect().await;
    half.write_all(b"GET /hel").await.unwrap();
    served.until_open(4).await;
    let stopped = tokio::spawn(served.stop(Duration::from_secs(3)));
    for idle in [&mut kept, &mut fresh, &mut half] {
        assert!(closed_within(idle, Duration::from_secs(2)).await.is_some());
    }
    assert_eq!(stopped.await.unwrap().dropped, 1);
}

/// Arguments under which nothing waits for load balancers.
fn at_once(grace_s: u64) -> Vec<String> {
    let all = ["--shutdown-delay-s", "0", "--shutdown-grace-s", &grace_s.to_string()];
    all.map(str::to_owned).into()
}

fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| panic!("ended by a signal: {status}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_told_to_stop_loses_nobody_and_exits_with_0() {
    let mut chance = Chance(17);
    let (mut clients, mut answers) = (0, 0);
    for _ in 0..rounds(3, 200) {
        let mut process = Process::start(&at_once(20));
        let size = rounds(64, 256);
        let seed = chance.next();
        let crowd = tokio::spawn(crowd(process.address, size, seed));
        sleep(Duration::from_millis(50 + chance.below(500) as u64)).await;
        let told = Instant::now();
        process.signal("TERM");
        let status = process.wait(Duration::from_secs(30));
        // Clients end later: the kernel asks again for a connection that it was refused, less and less often.
        let ended = told.elapsed();
        let seen = crowd.await.unwrap();
        assert_eq!(seen.lost, Vec::<&str>::new(), "seed {seed}");
        clients += size;
        answers += seen.answered;
        assert_eq!(exit_code(status), 0, "{}", process.log());
        assert!(ended < Duration::from_secs(10), "{ended:?}");
    }
    // On a busy machine a round may end before its clients have begun; most are stopped in the midst of them.
    assert!(answers > clients, "{answers} answers to {clients} clients");
}

#[tokio::test]
async fn between_the_signal_and_the_closed_port_requests_are_answered_and_ready_says_no() {
    let mut process = Process::start(&["--shutdown-delay-s".to_owned(), "2".to_owned()]);
    let ready = async || {
        let mut stream = TcpStream::connect(process.address).await.unwrap();
        stream.write_all(b"GET /ready HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
        answer(&mut stream).await.unwrap().0
    };
    assert!(ready().await.starts_with("http/1.1 200"));
    process.signal("TERM");
    let told = Instant::now();
    while !ready().await.starts_with("http/1.1 503") {
        assert!(told.elapsed() < Duration::from_secs(1), "ready although it stops");
    }
    let mut stream = TcpStream::connect(process.address).await.unwrap();
    stream.write_all(questions()[1].as_bytes()).await.unwrap();
    let (head, _) = answer(&mut stream).await.unwrap();
    assert!(head.starts_with("http/1.1 200") && head.contains("connection: close"), "{head}");
    assert_eq!(exit_code(process.wait(Duration::from_secs(8))), 0, "{}", process.log());
}

/// Ctrl-C at a terminal: nobody is waited for who asks nothing, and who has asked is answered.
#[tokio::test]
async fn an_interrupt_waits_for_requests_and_for_nothing_else() {
    let arguments = ["--shutdown-delay-s", "300", "--shutdown-grace-s", "300"];
    let mut process = Process::start(&arguments.map(str::to_owned));
    let mut idle = TcpStream::connect(process.address).await.unwrap();
    idle.write_all(b"GET /health HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
    answer(&mut idle).await.unwrap();
    let _silent = TcpStream::connect(process.address).await.unwrap();
    let mut asking = unfinished(process.address, 1).await.pop().unwrap();
    process.signal("INT");
    assert!(closed_within(&mut idle, Duration::from_secs(8)).await.is_some());
    // The rest of the body, 99 bytes after the first.
    let rest = r#""a":"quake","b":"city"}"#;
    asking.write_all(format!("{rest}{}", " ".repeat(99 - rest.len())).as_bytes()).await.unwrap();
    let (head, _) = answer(&mut asking).await.expect("who has asked is answered");
    assert!(head.starts_with("http/1.1 200") && head.contains("connection: close"), "{head}");
    assert_eq!(exit_code(process.wait(Duration::from_secs(8))), 0, "{}", process.log());
    assert!(process.log().contains("stopped, everything answered"), "{}", process.log());
}

/// Requests whose bodies never come, as many as are asked for, when the service waits for all of them.
async fn unfinished(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    let head = "POST /similarity HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n\
                content-length: 100\r\n\r\n{";
    let mut unfinished = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        unfinished.push(stream);
    }
    // Each holds a unit while its body is waited for.
    let held = format!("cognate_admission_units_in_use {count}\n");
    let begun = Instant::now();
    let mut operator = TcpStream::connect(address).await.unwrap();
    loop {
        operator.write_all(b"GET /metrics HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
        let (_, page) = answer(&mut operator).await.unwrap();
        if String::from_utf8_lossy(&page).contains(&held) {
            return unfinished;
        }
        assert!(begun.elapsed() < Duration::from_secs(8), "a request did not arrive");
    }
}

#[tokio::test]
async fn what_is_not_finished_in_time_is_dropped_and_said() {
    let mut process = Process::start(&at_once(1));
    let _stuck = unfinished(process.address, 2).await;
    process.signal("TERM");
    assert_eq!(exit_code(process.wait(Duration::from_secs(8))), 1);
    assert!(process.log().contains("2 connections were dropped"), "{}", process.log());
}

#[tokio::test]
async fn a_second_order_ends_it_at_once() {
    let mut process = Process::start(&["--shutdown-delay-s".to_owned(), "60".to_owned()]);
    let _stuck = unfinished(process.address, 1).await;
    process.signal("TERM");
    process.until_log("the first order", |log| log.contains("\"stopping\""));
    let told = Instant::now();
    process.signal("TERM");
    assert_eq!(exit_code(process.wait(Duration::from_secs(8))), 1);
    assert!(told.elapsed() < Duration::from_secs(3), "{:?}", told.elapsed());
    assert!(process.log().contains("a second signal to stop; 1 "), "{}", process.log());
}

#[test]
fn a_hangup_loads_the_models_again_and_stops_nothing() {
    let mut process = Process::start(&at_once(5));
    let loads = |log: String| log.matches("models loaded").count();
    assert_eq!(loads(process.log()), 1);
    process.signal("HUP");
    process.until_log("a second load", |log| loads(log.to_owned()) == 2);
    std::fs::write(process.model(), "no model").unwrap();
    process.signal("HUP");
    let refusal = "models not loaded; the models before serve on";
    process.until_log("a refusal", |log| log.contains(refusal));
    process.signal("TERM");
    assert_eq!(exit_code(process.wait(Duration::from_secs(8))), 0);
}

#[test]
fn what_cannot_be_served_ends_the_process_with_1() {
    let mut process = Process::start_with(Path::new("/dev/null"), &[]);
    assert_ne!(exit_code(process.wait(Duration::from_secs(8))), 0);
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("bad.safetensors");
    std::fs::write(&model, "no model").unwrap();
    let mut process = Process::start_with(&model, &[]);
    assert_eq!(exit_code(process.wait(Duration::from_secs(8))), 1);
    let log = process.log();
    assert!(log.contains("models not loaded") && !log.contains("serve on"), "{log}");
    let running = Process::start(&[]);
    let address = running.address.to_string();
    let mut second = Process::start_with(running.model(), &["--listen".to_owned(), address]);
    assert_eq!(exit_code(second.wait(Duration::from_secs(8))), 1);
    assert!(second.log().contains("cannot listen on"), "{}", second.log());
}
