//! The last words of a process whose mapped model file was cut short: which file it was.
//!
//! A touch of a page that the file no longer has is a SIGBUS. There is nothing to go on with (pages
//! of zeros would be silent wrong scores, and a jump out of the handler leaves every lock as it
//! was), so the handler writes one line and lets the signal end the process. A handler may call
//! almost nothing; it reads this table, which mappings keep, and writes bytes made beforehand.
//! What the file means is not known here.

#![allow(unsafe_code)]

use std::path::Path;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, PoisonError};
use std::{io, ptr};

/// Most registered maps. For a map beyond that the process ends without the line.
const PLACES: usize = 64;

/// The maps there are. A handler may look while a place is given to another map, so what belongs
/// together stands behind one pointer: it finds the one map whole or the other.
static MAPS: [AtomicPtr<Entry>; PLACES] = [const { AtomicPtr::new(ptr::null_mut()) }; PLACES];
/// One keeper of [`MAPS`] at a time, and every entry so far. A handler may still read an entry
/// whose map is gone, so none is freed; a file that is mapped where it was before costs nothing.
static ENTRIES: Mutex<Vec<&'static Entry>> = Mutex::new(Vec::new());

/// The extent of a map, and the message about it.
#[derive(PartialEq, Eq)]
struct Entry {
    start: usize,
    end: usize,
    line: Vec<u8>,
}

/// A map in the table, until dropped. To be dropped before the map itself.
#[derive(Debug)]
pub(super) struct RegisteredMap(Option<usize>);

impl RegisteredMap {
    pub(super) fn new(path: &Path, map: &[u8]) -> Self {
        let mut entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
        let free = MAPS.iter().position(|place| place.load(Relaxed).is_null());
        let Some((index, place)) = free.and_then(|index| Some((index, MAPS.get(index)?))) else {
            return Self(None);
        };
        let addresses = map.as_ptr_range();
        let (start, end) = (addresses.start as usize, addresses.end as usize);
        let entry = Entry { start, end, line: line_of(path) };
        let known = entries.iter().copied().find(|known| **known == entry);
        let entry = known.unwrap_or_else(|| {
            let entry: &'static Entry = Box::leak(Box::new(entry));
            entries.push(entry);
            entry
        });
        place.store(ptr::from_ref(entry).cast_mut(), Release);
        Self(Some(index))
    }
}

impl Drop for RegisteredMap {
    fn drop(&mut self) {
        let _keeper = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = self.0.and_then(|index| MAPS.get(index)) {
            place.store(ptr::null_mut(), Release);
        }
    }
}

/// In the form of the service's log, so that log collectors can read it.
fn line_of(path: &Path) -> Vec<u8> {
    let line = serde_json::json!({
        "level": "ERROR",
        "message": "a mapped model file was cut short or cannot be read any more; the process ends \
            by SIGBUS. Replace model files by renaming new ones over them, or serve copies with \
            `model_storage = \"copy\"`",
        "file": path.to_string_lossy(),
    });
    format!("{line}\n").into_bytes()
}

/// Makes SIGBUS within a mapped model file say which one before it ends the process. For programs
/// that own their signals; the library itself changes none.
pub fn report() -> io::Result<()> {
    // SAFETY: all zeros is a valid value of this plain C struct.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = last_words;
    action.sa_sigaction = handler as usize;
    // On the stack that the standard library keeps for signals, should the usual one be full.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: `action` is initialised, and its handler calls only async-signal-safe functions.
    match unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes a write beyond the largest file that the process may have (RLIMIT_FSIZE) an error, as on a
/// full disk, where a signal (SIGXFSZ) would end the process without a word. For programs that own
/// their signals, too.
pub fn ignore_file_size_signal() -> io::Result<()> {
    // SAFETY: ignoring a signal installs no handler, so no code of ours ever runs in one.
    match unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The message about the map that an address lies in. A handler may call it: it takes no lock and no memory.
fn line_at(address: usize) -> Option<&'static [u8]> {
    MAPS.iter().find_map(|place| {
        // SAFETY: null, or an entry that was written before its pointer was stored, and that is
        // never written again and never freed.
        let entry: &'static Entry = unsafe { place.load(Acquire).as_ref() }?;
        (entry.start..entry.end).contains(&address).then_some(entry.line.as_slice())
    })
}

extern "C" fn last_words(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid `info` to handlers installed with SA_SIGINFO, and for
    // SIGBUS its address is set; where somebody sent the signal it is some number that is only
    // compared, and `code` tells.
    let (address, code) = unsafe { ((*info).si_addr() as usize, (*info).si_code) };
    let sent = code <= 0;
    if let Some(line) = line_at(address).filter(|_| !sent) {
        // SAFETY: writes from a valid slice; a handler may call `write`. An error has no receiver.
        unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
    }
    // SAFETY: a handler may call both. The touch that raised the signal is tried again on return
    // and then ends the process; a signal that was sent has to be sent again.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        if sent {
            libc::raise(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_mapped_where_it_was_before_costs_nothing_and_another_is_told_apart() {
        let bytes = [0; 64];
        let entered = |path: &str| {
            let known = RegisteredMap::new(Path::new(path), &bytes);
            let place = &MAPS[known.0.unwrap()];
            let entry = place.load(Acquire);
            drop(known);
            entry
        };
        let first = entered("models/one");
        assert_eq!(first, entered("models/one"));
        assert_ne!(first, entered("models/two"));
        // SAFETY: entries are never freed.
        let line = unsafe { &(*first).line };
        assert!(String::from_utf8_lossy(line).contains("models/one"));
    }

    #[test]
    fn a_map_is_found_whole_while_places_change_hands() {
        let (steady, other) = ([0; 64], [0; 64]);
        let _steady = RegisteredMap::new(Path::new("models/steady"), &steady);
        let told = |bytes: &[u8; 64]| line_at(bytes.as_ptr() as usize).map(String::from_utf8_lossy);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..20 {
                    drop(RegisteredMap::new(Path::new(&format!("models/round-{round}")), &other));
                }
            });
            for _ in 0..20 {
                assert!(told(&steady).is_some_and(|line| line.contains("models/steady")));
                assert!(told(&other).is_none_or(|line| line.contains("models/round-")));
            }
        });
        assert_eq!(told(&other), None);
    }
}
