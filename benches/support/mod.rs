//! What the benches share: interleaved rounds, medians, real text when it is there, a JSON record.

#![allow(dead_code)]

use std::fs;
use std::io::Read;
use std::path::PathBuf;

/// One contestant: its name and what it does; the number it returns keeps the work from vanishing.
pub type Contestant<'a> = (&'a str, Box<dyn FnMut() -> u64 + 'a>);

/// What time is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The wall clock: for work on several threads.
    Wall,
    /// The processor time of this thread: the sound figure for work on one thread while others
    /// use the machine.
    Thread,
    /// What all threads of this process were given together.
    Process,
}

impl Clock {
    /// Seconds on this clock.
    pub fn now(self) -> f64 {
        let id = match self {
            Self::Wall => rustix::time::ClockId::Monotonic,
            Self::Thread => rustix::time::ClockId::ThreadCPUTime,
            Self::Process => rustix::time::ClockId::ProcessCPUTime,
        };
        let now = rustix::time::clock_gettime(id);
        now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
    }
}

/// Times every contestant in turn, `rounds` times after one warm-up, and gives back the median
/// seconds of each. Taking turns lets a slow moment of the machine fall on all alike.
pub fn interleaved(contestants: &mut [Contestant<'_>], rounds: usize) -> Vec<f64> {
    interleaved_by(Clock::Wall, contestants, rounds)
}

/// [`interleaved`] by a clock of choice.
pub fn interleaved_by(clock: Clock, contestants: &mut [Contestant<'_>], rounds: usize) -> Vec<f64> {
    let mut seconds = vec![Vec::with_capacity(rounds); contestants.len()];
    for round in 0..=rounds {
        for (place, (_, work)) in contestants.iter_mut().enumerate() {
            let start = clock.now();
            std::hint::black_box(work());
            if round > 0 {
                seconds[place].push(clock.now() - start);
            }
        }
    }
    seconds.into_iter().map(median).collect()
}

/// The middle value.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the folder of public data beside the checkout, if it exists.
pub fn shared_data() -> Option<PathBuf> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data"));
    folder.is_dir().then_some(folder)
}

/// Lines of running text: the shared corpora, or made-up ones of the same word lengths.
pub fn running_text() -> Vec<String> {
    let Some(folder) = shared_data() else {
        let mut state = 1_u64;
        let mut word = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let rank = 1.0 / ((state >> 40) as f64 / 16_777_216.0 + 1e-5);
            format!("w{:x}", rank as u64)
        };
        return (0..60_000)
            .map(|_| (0..22).map(|_| word()).collect::<Vec<_>>().join(" "))
            .collect();
    };
    let names = ["wiki-train-1", "wiki-train-2", "fiction", "speeches", "brown"];
    let mut lines = Vec::new();
    for name in names {
        let path = folder.join(format!("text/{name}.txt.gz"));
        let mut text = String::new();
        let file = fs::File::open(path).expect("the shared text is readable");
        flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).expect("it is text");
        lines.extend(text.lines().filter(|line| !line.is_empty()).map(str::to_owned));
    }
    lines
}

/// Keeps a bench's figures beside its other output.
pub fn record(name: &str, figures: &serde_json::Value) {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/target/bench"));
    fs::create_dir_all(&folder).expect("target is writable");
    let path = folder.join(format!("{name}.json"));
    fs::write(&path, format!("{figures:#}\n")).expect("target is writable");
    println!("recorded in target/bench/{name}.json");
}
