//! Counts what a thread allocates, so that tests can hold code to a bound.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static TAKEN: Cell<isize> = const { Cell::new(0) };
}

fn change(bytes: isize) {
    // A thread being torn down has no counters any more, and nobody reads them.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

/// Bytes that the system's allocator takes for what it handed out, with the word that it keeps beside it.
fn taken_for(pointer: *mut u8) -> isize {
    if pointer.is_null() {
        return 0;
    }
    // SAFETY: the pointer came from the system's allocator and was not given back.
    let usable = unsafe { libc::malloc_usable_size(pointer.cast()) };
    (usable + size_of::<usize>()) as isize
}

fn take(bytes: isize) {
    let _ = TAKEN.try_with(|taken| taken.set(taken.get() + bytes));
}

// SAFETY: every call is handed to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        change(layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        let pointer = unsafe { System.alloc(layout) };
        take(taken_for(pointer));
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        change(-(layout.size() as isize));
        take(-taken_for(pointer));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

// Miri asks no system for the size of what it handed out.
#[cfg_attr(not(miri), global_allocator)]
#[cfg_attr(miri, allow(dead_code))]
static COUNTING: Counting = Counting;

/// Runs `work` and gives back the most it held at once on this thread, in bytes.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = LIVE.get();
    PEAK.set(before);
    let value = work();
    (value, (PEAK.get() - before).max(0) as u64)
}

/// Bytes that the allocator takes for what this thread has allocated, less what it has given back.
pub fn taken() -> isize {
    TAKEN.get()
}
