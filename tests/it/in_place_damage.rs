//! A model file cut short or overwritten under a running service: loud where it is mapped, without
//! effect where it was copied.

use std::fs::File;
use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use cognate::model::Model;
use cognate::model::OpenOptions;
use cognate::model::Storage;
use cognate::model::format::Dtype;

use crate::process_shared::Process;
use crate::support;

/// SIGBUS on every machine of the kind.
const SIGBUS: i32 = 7;
const WORDS: &str = "was cut short";

fn held(storage: &str) -> Vec<String> {
    vec!["--model-storage".to_owned(), storage.to_owned()]
}

/// Sends one request; the whole answer, or nothing if the connection broke.
fn ask(address: SocketAddr, request: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut read = String::new();
    stream.read_to_string(&mut read).ok()?;
    Some(read).filter(|read| !read.is_empty())
}

/// The scores of two pairs, as they were written.
fn scores(address: SocketAddr) -> Option<serde_json::Value> {
    let body = r#"{"pairs":[["the quake hits","earthquake shakes"],["new york","the town"]]}"#;
    let answer = ask(
        address,
        &format!(
            "POST /similarity HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ),
    )?;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let mut answer: serde_json::Value = serde_json::from_str(body).ok()?;
    Some(answer.get_mut("scores").expect("scores").take())
}

fn is_ready(address: SocketAddr) -> bool {
    let request = "GET /ready HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    ask(address, request).unwrap().starts_with("HTTP/1.1 200")
}

fn cut(path: &Path) {
    File::options().write(true).open(path).unwrap().set_len(0).unwrap();
}

#[test]
fn a_mapped_file_cut_short_ends_the_process_with_a_line_that_names_it() {
    let mut process = Process::start(&held("map"));
    assert!(scores(process.address).is_some());
    cut(process.model());
    assert_eq!(scores(process.address), None);
    let status = process.wait(Duration::from_secs(5));
    assert_eq!(status.signal(), Some(SIGBUS), "{status}");
    let log = process.log();
    let line = log.lines().find(|line| line.contains(WORDS)).unwrap_or_else(|| panic!("{log}"));
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["file"], process.model().to_str().unwrap());
    assert_eq!(line["level"], "ERROR");
    // Nothing serves the remains.
    let mut again = Process::start_with(process.model(), &held("map"));
    assert_eq!(again.wait(Duration::from_secs(5)).code(), Some(1), "{}", again.log());
}

#[test]
fn a_copied_file_may_be_cut_short_or_overwritten() {
    for storage in ["copy", "auto"] {
        let process = Process::start(&held(storage));
        let before = scores(process.address).unwrap();
        let file = File::options().write(true).open(process.model()).unwrap();
        file.write_all_at(&[0x55; 4096], 512).unwrap();
        assert_eq!(scores(process.address), Some(before.clone()));
        cut(process.model());
        assert_eq!(scores(process.address), Some(before));
        assert!(is_ready(process.address));
    }
}

#[test]
fn a_mapped_file_overwritten_in_place_makes_the_service_unready() {
    let process = Process::start(&held("map"));
    assert!(is_ready(process.address));
    let size = process.model().metadata().unwrap().len();
    let file = File::options().write(true).open(process.model()).unwrap();
    file.write_all_at(&[0x55], size - 1).unwrap();
    let begun = Instant::now();
    while is_ready(process.address) {
        assert!(begun.elapsed() < Duration::from_secs(7), "{}", process.log());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(process.log().contains("changed in place"), "{}", process.log());
}

#[test]
fn a_signal_that_somebody_sent_ends_the_process_without_blaming_a_file() {
    let mut process = Process::start(&held("map"));
    process.signal("BUS");
    assert_eq!(process.wait(Duration::from_secs(5)).signal(), Some(SIGBUS));
    assert!(!process.log().contains(WORDS), "{}", process.log());
}

#[test]
fn a_model_knows_whether_its_file_is_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let bytes = support::tiny(Dtype::F32);
    std::fs::write(&path, &bytes).unwrap();
    let open =
        |storage| Model::open(&path, &OpenOptions { storage, ..OpenOptions::default() }).unwrap();
    let (mapped, copied) = (open(Storage::Map), open(Storage::Copy));
    assert!(mapped.intact() && copied.intact() && !mapped.damaged());
    // File times are as fine as the kernel's clock ticks.
    std::thread::sleep(Duration::from_millis(20));
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&bytes[bytes.len() - 1..], bytes.len() as u64 - 1).unwrap();
    assert!(!mapped.intact() && mapped.damaged());
    assert!(!copied.damaged(), "a copy has nothing to fear");
    // Another file at the same path is how models are replaced, and harms nothing.
    let mapped = open(Storage::Map);
    let other = folder.path().join("other");
    std::fs::write(&other, &bytes).unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert!(!mapped.damaged());
}
