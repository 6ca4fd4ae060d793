//! Shows a progress bar with rate and remaining time, if standard error is a terminal.

#[cfg(feature = "bars")]
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(not(feature = "bars"))]
use absent::ProgressBar;
#[cfg(feature = "bars")]
use indicatif::{ProgressBar, ProgressStyle};

use crate::input::Input;

static HIDDEN: AtomicBool = AtomicBool::new(false);

/// Hides all progress bars from now on.
pub fn hide() {
    HIDDEN.store(true, Ordering::Relaxed);
}

/// The progress of a long step, in bytes of its input or in items.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub fn bytes(step: &'static str) -> Self {
        let line = "{prefix:12} {wide_bar} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left";
        Self::new(step, line)
    }

    pub fn count(step: &'static str) -> Self {
        Self::new(step, "{prefix:12} {wide_bar} {human_pos}/{human_len}  {per_sec}  {eta} left")
    }

    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden() }
    }

    pub fn run(step: &'static str) -> Self {
        Self::new(step, "{prefix:12} {wide_bar} {percent}%  {msg}  {eta} left")
    }

    #[cfg(not(feature = "bars"))]
    fn new(_step: &'static str, _line: &str) -> Self {
        Self::hidden()
    }

    #[cfg(feature = "bars")]
    fn new(step: &'static str, line: &str) -> Self {
        if HIDDEN.load(Ordering::Relaxed) || !std::io::stderr().is_terminal() {
            return Self::hidden();
        }
        let style = ProgressStyle::with_template(line);
        let bar = ProgressBar::new(0).with_prefix(step);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar }
    }

    pub fn say(&self, what: String) {
        self.bar.set_message(what);
    }

    pub fn at(&self, done: u64, all: u64) {
        self.bar.set_length(all);
        self.bar.set_position(done);
    }
}

impl Progress {
    /// Updates the bar for a file that is read by lines, once in a while.
    pub fn follow(&self, input: &Input) {
        if input.lines().is_multiple_of(4096) {
            let (done, all) = input.progress();
            self.at(done, all);
        }
    }
}

/// The interface of a bar, for builds without bars.
#[cfg(not(feature = "bars"))]
mod absent {
    #[derive(Debug)]
    pub struct ProgressBar;

    impl ProgressBar {
        pub fn hidden() -> Self {
            Self
        }

        pub fn set_message(&self, _what: String) {}

        pub fn set_length(&self, _all: u64) {}

        pub fn set_position(&self, _done: u64) {}

        pub fn finish_and_clear(&self) {}
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
