//! A bar with rate and time left on a terminal; nothing where nobody looks.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use crate::input::Input;

/// How far a long step is, in bytes of its input or in rows.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar for a step that counts bytes.
    pub fn bytes(step: &'static str) -> Self {
        let line = "{prefix:12} {wide_bar} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left";
        Self::new(step, line)
    }

    /// A bar for a step that counts things.
    pub fn count(step: &'static str) -> Self {
        Self::new(step, "{prefix:12} {wide_bar} {human_pos}/{human_len}  {per_sec}  {eta} left")
    }

    /// No bar, for a step that nobody waits for.
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden() }
    }

    /// A bar for a run that counts things and has something to say on the way.
    pub fn run(step: &'static str) -> Self {
        Self::new(step, "{prefix:12} {wide_bar} {percent}%  {msg}  {eta} left")
    }

    fn new(step: &'static str, line: &str) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::hidden();
        }
        let style = ProgressStyle::with_template(line);
        let bar = ProgressBar::new(0).with_prefix(step);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar }
    }

    /// Says something beside the bar, such as the loss.
    pub fn say(&self, what: String) {
        self.bar.set_message(what);
    }

    pub fn at(&self, done: u64, all: u64) {
        self.bar.set_length(all);
        self.bar.set_position(done);
    }
}

impl Progress {
    /// How far a file read by lines is, looked at now and then.
    pub fn follow(&self, input: &Input) {
        if input.lines().is_multiple_of(4096) {
            let (done, all) = input.progress();
            self.at(done, all);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
