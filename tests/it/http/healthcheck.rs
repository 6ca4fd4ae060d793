//! `cognate healthcheck` against servers that answer well, badly, slowly or not at all.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

fn ask(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cognate"));
    for name in ["COGNATE_LISTEN", "COGNATE_ADMIN_LISTEN", "COGNATE_CONFIG"] {
        command.env_remove(name);
    }
    command.arg("healthcheck").args(arguments).envs(environment.iter().copied());
    command.current_dir(folder.path()).output().unwrap()
}

/// A server that takes one request and gives these parts of an answer; hands back the request.
fn server(
    listener: TcpListener,
    parts: &'static [&'static str],
) -> (u16, thread::JoinHandle<String>) {
    let port = listener.local_addr().unwrap().port();
    let served = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (mut request, mut part) = (Vec::new(), [0; 512]);
        while !request.ends_with(b"\r\n\r\n") {
            let count = stream.read(&mut part).unwrap();
            assert_ne!(count, 0, "closed early");
            request.extend(&part[..count]);
        }
        for part in parts {
            stream.write_all(part.as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(20));
        }
        let _ = stream.shutdown(Shutdown::Write);
        String::from_utf8(request).unwrap()
    });
    (port, served)
}

fn loopback() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

#[test]
fn only_200_is_healthy() {
    let table: [(&'static [&'static str], i32, &str); 7] = [
        (&["HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"], 0, ""),
        (&["HT", "TP/1.", "1 20", "0 OK\r\n", "\r\n"], 0, ""),
        (&["HTTP/1.1 503 Service Unavailable\r\n\r\n"], 1, "answers 503"),
        (&["HTTP/1.1 204 No Content\r\n\r\n"], 1, "answers 204"),
        (&["SSH-2.0-OpenSSH\r\n"], 1, "not HTTP"),
        (&["HTTP/1.1 "], 1, "not HTTP"),
        (&[], 1, "not HTTP"),
    ];
    for (parts, code, told) in table {
        let (port, served) = server(loopback(), parts);
        let output = ask(&["--url", &format!("http://127.0.0.1:{port}/a?b=c")], &[]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{parts:?}: {stderr}");
        assert!(stderr.contains(told), "{parts:?}: {stderr}");
        assert_eq!(stderr.lines().count(), usize::from(code != 0), "{stderr}");
        let request = served.join().unwrap();
        assert!(request.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{request}");
        assert!(request.contains(&format!("\r\nhost: 127.0.0.1:{port}\r\n")), "{request}");
    }
}

#[test]
fn the_service_is_found_by_its_own_settings() {
    const GOOD: &[&str] = &["HTTP/1.1 200 OK\r\n\r\n"];
    let (port, served) = server(loopback(), GOOD);
    let output = ask(&[], &[("COGNATE_LISTEN", &format!("0.0.0.0:{port}"))]);
    assert!(output.status.success(), "{output:?}");
    assert!(served.join().unwrap().starts_with("GET /ready HTTP/1.1\r\n"));
    let (port, served) = server(loopback(), GOOD);
    let admin = format!("127.0.0.1:{port}");
    let environment = [("COGNATE_LISTEN", "0.0.0.0:1"), ("COGNATE_ADMIN_LISTEN", &*admin)];
    assert!(ask(&[], &environment).status.success());
    served.join().unwrap();
}

#[test]
fn silence_and_absence_are_told_in_time() {
    // Taken by the kernel, never answered.
    let silent = loopback();
    let url = format!("http://{}/ready", silent.local_addr().unwrap());
    let begun = Instant::now();
    let output = ask(&["--url", &url, "--timeout-s", "1"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("it took too long"), "{told}");
    drop(silent);
    let output = ask(&["--url", &url], &[]);
    assert_eq!(output.status.code(), Some(1), "nobody listens");
}

#[test]
fn only_plain_http_is_asked() {
    for wrong in [
        "https://127.0.0.1/ready",
        "127.0.0.1:8080",
        "http://",
        "http://:8080/",
        "http://127.0.0.1:http/",
        "http://127.0.0.1:99999/",
        "http://user@127.0.0.1/",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/\r\nx: y",
    ] {
        let output = ask(&["--url", wrong], &[]);
        assert_eq!(output.status.code(), Some(1), "{wrong}");
    }
    assert_eq!(ask(&["--timeout-s", "0"], &[]).status.code(), Some(2));
}
