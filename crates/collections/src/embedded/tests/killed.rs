//! Kills a process that rewrites its log: all acknowledged changes are there, and the next process
//! removes the unfinished copy.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::{env, io, thread};

use crate::embedded::EmbeddedHome;
use crate::embedded::log::UNWHOLE;
use crate::embedded::tests::{item, log_of};
use crate::{Collection, Limits, Settings};

const FOLDER: &str = "TEST_COGNATE_KILLED_IN";
const NAME: &str = "embedded::tests::killed::what_a_killed_compaction_acknowledged_is_there";
const ACKNOWLEDGED: &str = "acknowledged ";
const MET: usize = 3;
const MAX_KILLS: usize = 60;

fn write_and_compact(folder: &Path) {
    let (home, _) = EmbeddedHome::open(folder, Limits::DEFAULT).unwrap();
    let (news, _) = home.make("news", Settings::default(), 0).unwrap();
    let first = news.told(0).unwrap().items;
    if first == 0 {
        news.put((0..4000).map(|at| item(at, "there from the beginning", 0)).collect(), 0).unwrap();
    }
    let compacted = Arc::clone(&news);
    thread::spawn(move || while compacted.compact(0).is_ok() {});
    for at in first.max(4000).. {
        news.put(vec![item(at, "added during a copy", 0)], 0).unwrap();
        writeln!(io::stdout(), "{ACKNOWLEDGED}{at}").unwrap();
    }
}

#[test]
fn what_a_killed_compaction_acknowledged_is_there() {
    if let Some(folder) = env::var_os(FOLDER) {
        return write_and_compact(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = log_of(&folder).with_extension(UNWHOLE);
    let (mut acknowledged, mut met) = (Vec::new(), 0);
    for round in 0..MAX_KILLS {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let of_line = |line: io::Result<String>| {
            line.unwrap().split_once(ACKNOWLEDGED).map(|(_, at)| at.parse::<usize>().unwrap())
        };
        let mut numbers = lines.filter_map(of_line);
        acknowledged.extend(numbers.by_ref().take(5 + round % 7));
        process.kill().unwrap();
        acknowledged.extend(numbers);
        assert!(!process.wait().unwrap().success());
        met += usize::from(copy.exists());
        let (home, _) = EmbeddedHome::open(folder.path(), Limits::DEFAULT).unwrap();
        let news = home.named("news").unwrap();
        for at in (0..4000).step_by(97).chain(acknowledged.iter().copied()) {
            assert!(news.get(&format!("n{at}"), 0).is_some(), "n{at} after kill {round}");
        }
        assert!(!copy.exists(), "after kill {round}");
        if met == MET {
            return;
        }
    }
    panic!("{met} of {MAX_KILLS} kills met a copy");
}
