//! Packing that is killed, or runs out of room: the target stays whole, old or new.

use std::path::Path;
use std::process::{Command, Stdio};

use cognate::model::Model;

use crate::support;
use crate::support::Chance;

/// Vectors large enough that packing takes a few milliseconds; `shift` tells versions apart.
fn vectors(path: &Path, shift: f32) {
    let mut text = String::new();
    for word in 0..4000 {
        text.push_str(&format!("w{word}"));
        for place in 0..50 {
            text.push_str(&format!(" {}", (word * 7 + place) as f32 / 100.0 + shift));
        }
        text.push('\n');
    }
    std::fs::write(path, text).unwrap();
}

fn pack(folder: &Path, input: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cognate"));
    command.args(["pack", input, "-o", "m.safetensors"]).current_dir(folder);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn fingerprint(folder: &Path) -> String {
    let model = Model::open(&folder.join("m.safetensors"), &support::full()).unwrap();
    model.fingerprint().to_owned()
}

#[test]
fn a_killed_pack_leaves_the_old_model_or_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    vectors(&folder.join("a.txt"), 0.0);
    vectors(&folder.join("b.txt"), 0.25);
    let started = std::time::Instant::now();
    assert!(pack(folder, "b.txt").status().unwrap().success());
    let whole = started.elapsed();
    let new = fingerprint(folder);
    assert!(pack(folder, "a.txt").status().unwrap().success());
    let old = fingerprint(folder);
    let mut chance = Chance(42);
    let (mut kept, mut replaced) = (0, 0);
    for _ in 0..support::rounds(40, 200) {
        let mut child = pack(folder, "b.txt").spawn().unwrap();
        let share = chance.below(1200) as u32;
        std::thread::sleep(whole * share / 1000);
        child.kill().unwrap();
        child.wait().unwrap();
        match fingerprint(folder) {
            found if found == old => kept += 1,
            found if found == new => {
                replaced += 1;
                assert!(pack(folder, "a.txt").status().unwrap().success());
            }
            found => panic!("neither old nor new: {found}"),
        }
    }
    println!("{kept} kept the old model, {replaced} had the new one");
    assert!(kept > 0, "no kill came in time");
    // The next writer clears away what the killed ones left.
    assert!(pack(folder, "a.txt").status().unwrap().success());
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 3);
}

#[test]
fn a_full_disk_is_said_with_its_own_exit_code_and_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    vectors(&folder.join("a.txt"), 0.0);
    vectors(&folder.join("b.txt"), 0.25);
    assert!(pack(folder, "a.txt").status().unwrap().success());
    let old = fingerprint(folder);
    // Sizes in KiB at which writing rows, finishing rows, and writing the model runs out of room.
    for room in [1, 100, 700, 790] {
        let program = env!("CARGO_BIN_EXE_cognate");
        let script = format!("ulimit -f {room}; exec '{program}' pack b.txt -o m.safetensors");
        let output =
            Command::new("bash").args(["-c", &script]).current_dir(folder).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(74), "{room} KiB: {message}");
        assert!(message.contains("File too large"), "{message}");
        assert_eq!(fingerprint(folder), old);
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 3, "{room} KiB");
    }
}

#[test]
fn a_pack_whose_words_cannot_be_said_still_packs() {
    let folder = tempfile::tempdir().unwrap();
    vectors(&folder.path().join("a.txt"), 0.0);
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = pack(folder.path(), "a.txt");
    let status = command.stderr(full()).status().unwrap();
    assert!(status.success());
    let status = command.stdout(full()).status().unwrap();
    assert_eq!(status.code(), Some(74), "a result that cannot be printed is a failure");
    fingerprint(folder.path());
}
