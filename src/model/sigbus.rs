//! The last words of a process whose mapped model file was cut short: which file it was.
//!
//! A touch of a page that the file no longer has is a SIGBUS. There is nothing to go on with (pages
//! of zeros would be silent wrong scores, and a jump out of the handler leaves every lock as it
//! was), so the handler writes one line and lets the signal end the process. A handler may call
//! almost nothing; it reads this table, which mappings keep, and writes bytes made beforehand.
//! What the file means is not known here.

#![allow(unsafe_code)]

use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::ptr;
use std::slice;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::Ordering::Release;

/// Maps that can be told apart. Of more, the signal still ends the process, without the line.
const PLACES: usize = 64;

static MAPS: [Place; PLACES] = [const { Place::empty() }; PLACES];
/// One keeper of [`MAPS`] at a time, and the line of each file seen so far: a file that is loaded
/// again and again costs its line once.
static LINES: Mutex<Vec<(PathBuf, &'static [u8])>> = Mutex::new(Vec::new());

/// Where one map lies and what to say of it; no map while `start` is 0.
struct Place {
    start: AtomicUsize,
    end: AtomicUsize,
    line: AtomicPtr<u8>,
    length: AtomicUsize,
}

impl Place {
    const fn empty() -> Self {
        Self {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            line: AtomicPtr::new(ptr::null_mut()),
            length: AtomicUsize::new(0),
        }
    }
}

/// A map in the table, until dropped. To be dropped before the map itself.
#[derive(Debug)]
pub(super) struct Known(Option<usize>);

impl Known {
    /// Enters the bytes mapped from `path`.
    pub(super) fn new(path: &Path, map: &[u8]) -> Self {
        let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        let free = MAPS.iter().position(|place| place.start.load(Relaxed) == 0);
        let Some((index, place)) = free.and_then(|index| Some((index, MAPS.get(index)?))) else {
            return Self(None);
        };
        let known = lines.iter().find(|(known, _)| known == path).map(|&(_, line)| line);
        let line = known.unwrap_or_else(|| {
            let line: &'static [u8] = Vec::leak(line_of(path));
            lines.push((path.to_owned(), line));
            line
        });
        place.line.store(line.as_ptr().cast_mut(), Relaxed);
        place.length.store(line.len(), Relaxed);
        place.end.store(map.as_ptr_range().end as usize, Relaxed);
        // Last, since from here on the handler believes the rest.
        place.start.store(map.as_ptr() as usize, Release);
        Self(Some(index))
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        let _keeper = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = self.0.and_then(|index| MAPS.get(index)) {
            place.start.store(0, Release);
        }
    }
}

/// In the form of the service's log, so that whoever collects that can read this too.
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
    // SAFETY: `action` is initialised, and its handler calls only what a handler may call.
    match unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
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
    for place in MAPS.iter().filter(|_| !sent) {
        let start = place.start.load(Acquire);
        if start == 0 || !(start..place.end.load(Relaxed)).contains(&address) {
            continue;
        }
        let (line, length) = (place.line.load(Relaxed), place.length.load(Relaxed));
        // SAFETY: line and length were stored before `start`, from a leaked slice.
        let line = unsafe { slice::from_raw_parts(line, length) };
        // SAFETY: writes from a valid slice; a handler may call `write`. If it fails there is
        // nobody left to tell.
        unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
        break;
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
