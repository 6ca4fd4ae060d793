//! A model file cut short or overwritten under a running service: loud where it is mapped, without
//! effect where it was copied.

use std::fs::{File, Permissions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use cognate::model::format::Dtype;
use cognate::model::{FileState, Model, OpenOptions, Storage};

use crate::support;
use crate::support::process::Process;

/// SIGBUS on every machine of the kind.
const SIGBUS: i32 = 7;
const WORDS: &str = "was cut short";

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
    let mut process = Process::start(&[]);
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
    let mut again = Process::start_with(process.model(), &[]);
    assert_eq!(again.wait(Duration::from_secs(5)).code(), Some(1), "{}", again.log());
}

#[test]
fn a_copied_file_may_be_cut_short_or_overwritten() {
    let process = Process::start(&["--model-storage".to_owned(), "copy".to_owned()]);
    let before = scores(process.address).unwrap();
    let file = File::options().write(true).open(process.model()).unwrap();
    file.write_all_at(&[0x55; 4096], 512).unwrap();
    assert_eq!(scores(process.address), Some(before.clone()));
    cut(process.model());
    assert_eq!(scores(process.address), Some(before));
    assert!(is_ready(process.address));
}

#[test]
fn a_mapped_file_overwritten_in_place_makes_the_service_unready() {
    let process = Process::start(&[]);
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
    let mut process = Process::start(&[]);
    process.signal("BUS");
    assert_eq!(process.wait(Duration::from_secs(5)).signal(), Some(SIGBUS));
    assert!(!process.log().contains(WORDS), "{}", process.log());
}

/// A folder with the tiny model in it, and its bytes.
fn written() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let bytes = support::tiny(Dtype::F32);
    std::fs::write(&path, &bytes).unwrap();
    (folder, path, bytes)
}

fn open(path: &Path, storage: Storage) -> Model {
    Model::open(path, &OpenOptions { storage, ..OpenOptions::default() }).unwrap()
}

/// Gives a file another time, as `touch` does.
fn touch(path: &Path, seconds: u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

#[test]
fn a_model_knows_whether_its_file_has_the_bytes_it_was_opened_with() {
    let (folder, path, bytes) = written();
    let (mapped, copied) = (open(&path, Storage::Map), open(&path, Storage::Copy));
    assert_eq!((mapped.look_again(), mapped.untouched()), (FileState::Same, true));
    let file = File::options().write(true).open(&path).unwrap();
    let write = |byte: u8, at: usize, seconds: u64| {
        file.write_all_at(&[byte], at as u64).unwrap();
        touch(&path, seconds);
    };
    // The last byte of a tensor, one of the header, one of the padding between tensors.
    let padding = (0..bytes.len()).rev().find(|&at| bytes[at..].starts_with(&[0; 9])).unwrap();
    for (turn, at) in (1..).zip([bytes.len() - 1, 100, padding]) {
        write(bytes[at] ^ 1, at, turn * 10);
        assert!(!mapped.untouched() && !mapped.damaged(), "nobody looked yet");
        assert_eq!((mapped.look_again(), mapped.damaged()), (FileState::Damaged, true), "{at}");
        assert_eq!((mapped.look_again(), mapped.damaged()), (FileState::Same, true));
        write(bytes[at], at, turn * 10 + 1);
        assert_eq!((mapped.look_again(), mapped.damaged()), (FileState::Sound, false), "{at}");
    }
    touch(&path, 1000);
    assert_eq!((mapped.look_again(), mapped.look_again()), (FileState::Sound, FileState::Same));
    file.set_len(bytes.len() as u64 - 1).unwrap();
    assert_eq!((mapped.look_again(), mapped.damaged()), (FileState::Damaged, true));
    assert_eq!(
        (copied.look_again(), copied.damaged()),
        (FileState::Same, false),
        "nothing to fear"
    );
    drop(folder);
}

/// Another file at the same path is how models are replaced; links and modes are no bytes.
#[test]
fn what_is_done_to_names_and_modes_of_a_file_is_not_done_to_its_bytes() {
    let (folder, path, bytes) = written();
    let mapped = open(&path, Storage::Map);
    let link = folder.path().join("link");
    std::fs::hard_link(&path, &link).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    assert!(mapped.untouched());
    std::fs::rename(&link, folder.path().join("moved")).unwrap();
    let other = folder.path().join("other");
    std::fs::write(&other, &bytes).unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert!(mapped.untouched() && mapped.look_again() == FileState::Same);
}

#[test]
fn a_file_opens_while_others_link_it_and_change_its_mode() {
    let (folder, path, _) = written();
    let link = folder.path().join("link");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::fs::hard_link(&path, &link).unwrap();
                std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
                std::fs::remove_file(&link).unwrap();
            }
        });
        let opened = std::panic::catch_unwind(|| {
            for storage in [Storage::Map, Storage::Copy].into_iter().cycle().take(400) {
                open(&path, storage);
            }
        });
        done.store(true, Ordering::Relaxed);
        opened.unwrap();
    });
}
