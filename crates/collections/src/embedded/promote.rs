//! Prepares a folder whose writer is gone for another one: no process locks it, all of its logs
//! open, and replicas see all that is in them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::embedded::home::{LOCK, LOG, LOOK};
use crate::embedded::log::Log;
use crate::embedded::storage::{LocalStorage, Storage, modified};
use crate::embedded::{Cut, EmbeddedHome};
use crate::{Collection, CollectionError, Item, Limits, Result, check_name};

/// A lock that was touched longer ago has no owner: a writer touches its lock every few seconds.
const STILL_MS: i64 = 60_000;

/// A collection that another process may write from now on.
#[derive(Debug)]
pub struct Promoted {
    pub name: String,
    pub items: usize,
    pub log_bytes: u64,
    pub written: i64,
    pub newest: Option<Arc<Item>>,
}

/// Takes a folder over from a writer that is gone, and releases it to the next one. If it was
/// written to less than a minute ago, its lock is watched for `watch`, after a call of `tell`: the
/// lock of a process on another machine may not be visible, but its touches are.
pub fn promote(
    path: &Path,
    limits: Limits,
    watch: Duration,
    tell: impl FnOnce(),
) -> Result<(Vec<Promoted>, Vec<Cut>)> {
    let logs = logs(path)?;
    check_still(path, watch, tell)?;
    let written: Vec<i64> = logs.iter().map(|log| modified(log).unwrap_or(0)).collect();
    let (home, cuts) = EmbeddedHome::open(path, limits)?;
    let (now, mut promoted) = (crate::now(), Vec::new());
    for one in home.each() {
        let mut turn = one.turn();
        turn.with_log(Log::seal)?;
        turn.with_log(Log::record)?;
        let log_bytes = turn.log_bytes().unwrap_or(0);
        drop(turn);
        let log = path.join(one.name()).join(LOG);
        let place = logs.iter().position(|known| *known == log);
        promoted.push(Promoted {
            name: one.name().to_owned(),
            items: one.count(now),
            log_bytes,
            written: place.and_then(|place| written.get(place).copied()).unwrap_or(0),
            newest: one.view(now).iter().next_back().cloned(),
        });
    }
    Ok((promoted, cuts))
}

/// The logs in a folder. A folder without logs that no writer ever used is refused as the wrong
/// folder.
fn logs(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = |source| CollectionError::Read { path: path.to_owned(), source };
    let names = LocalStorage.names(path).map_err(failed)?;
    let logs = names.iter().filter(|name| check_name(name).is_ok());
    let logs = logs.map(|name| path.join(name).join(LOG)).filter(|log| log.exists());
    let logs: Vec<PathBuf> = logs.collect();
    match logs.is_empty() && !names.iter().any(|name| name == LOCK) {
        true => Err(CollectionError::NoCollections { path: path.to_owned() }),
        false => Ok(logs),
    }
}

fn check_still(path: &Path, watch: Duration, tell: impl FnOnce()) -> Result<()> {
    let lock = path.join(LOCK);
    let Ok(touched) = modified(&lock) else { return Ok(()) };
    match LocalStorage.open(&lock) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            return Err(CollectionError::InUse { path: path.to_owned() });
        }
        // Any other error is reported where the folder is opened.
        _ => {}
    }
    if crate::now().abs_diff(touched) > STILL_MS as u64 {
        return Ok(());
    }
    tell();
    let until = Instant::now() + watch;
    while Instant::now() < until {
        if modified(&lock).is_ok_and(|now| now != touched) {
            return Err(CollectionError::Alive { path: path.to_owned() });
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
