//! The flags of the program.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Puts load and faults on `cognate serve` and checks what it promises.
#[derive(Debug, Clone, Parser)]
#[command(name = "load")]
pub struct Options {
    /// What to run
    #[arg(long, value_enum, default_value = "all")]
    pub scenario: Choice,
    /// Seed of everything that is left to chance
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Seconds of load in each measurement; 60 for the figures of record
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
    /// Minutes of the soak, otherwise six times the seconds
    #[arg(long)]
    pub minutes: Option<f64>,
    /// Rounds of `stop` and `reload`, otherwise as many as fit
    #[arg(long)]
    pub rounds: Option<usize>,
    /// The binary to start, otherwise the one just built
    #[arg(long)]
    pub binary: Option<PathBuf>,
    /// The model file, otherwise the default model of this repository
    #[arg(long)]
    pub model: Option<PathBuf>,
    /// Keep the server to the first core and the generator to the second
    #[arg(long)]
    pub pin: bool,
    /// Given by `cargo bench`; means nothing here
    #[arg(long, hide = true)]
    pub bench: bool,
}

/// One scenario, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// Every one
    All,
    /// Load held (P1)
    Held,
    /// Overload sheds, and the runtime is never blocked (P2, P4)
    Overload,
    /// Fair to small requests (P3)
    Fair,
    /// Work is bounded and ends with its deadline (P5)
    Jobs,
    /// Slow headers (P6)
    SlowHeaders,
    /// Slow bodies (P7)
    SlowBodies,
    /// Slow readers (P8)
    SlowReaders,
    /// Half-open peers and a faulty network (P9)
    HalfOpen,
    /// Reload loses nothing (P14)
    Reload,
    /// A bad reload is harmless (P15)
    BadReload,
    /// Damage of the file in place is loud (P16)
    Damage,
    /// An order to stop loses nothing accepted (P17)
    Stop,
    /// The memory guard (P18)
    MemoryGuard,
    /// A wall clock that jumps (P22)
    Clock,
    /// Answers that nobody reads are bounded (P31)
    UnreadAnswers,
    /// Bodies are paid for as they come (P32)
    UnannouncedBodies,
    /// Refusals before the body was read lose nothing (P33)
    EarlyRefusals,
    /// Streams that drip end (P34)
    Dripping,
    /// A revoked key is out, whatever else fails (P35)
    RevokedKey,
    /// What cannot be done in time is refused at once (P36)
    CertainTimeouts,
    /// Replicas restarted in turn behind a balancer
    RestartStorm,
    /// Replicas killed in turn behind a balancer
    KillStorm,
    /// Half load with chaos (P29)
    Soak,
}

impl Options {
    /// Under what circumstances figures are taken.
    pub fn setting(&self) -> &'static str {
        match self.pin {
            true => "server on core 0, generator on core 1; loopback",
            false => "server and generator share this machine's cores; loopback",
        }
    }
}

impl Choice {
    /// The scenarios meant.
    pub fn scenarios(self) -> Vec<Self> {
        match self {
            Self::All => Self::value_variants().iter().copied().filter(|c| *c != self).collect(),
            one => vec![one],
        }
    }

    /// Its name in files and flags.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The promise it checks.
    pub fn promise(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Held => "P1",
            Self::Overload => "P2, P4",
            Self::Fair => "P3",
            Self::Jobs => "P5",
            Self::SlowHeaders => "P6",
            Self::SlowBodies => "P7",
            Self::SlowReaders => "P8",
            Self::HalfOpen => "P9",
            Self::Reload => "P14",
            Self::BadReload => "P15",
            Self::Damage => "P16",
            Self::Stop => "P17",
            Self::MemoryGuard => "P18",
            Self::Clock => "P22",
            Self::UnreadAnswers => "P31",
            Self::UnannouncedBodies => "P32",
            Self::EarlyRefusals => "P33",
            Self::Dripping => "P34",
            Self::RevokedKey => "P35",
            Self::CertainTimeouts => "P36",
            Self::RestartStorm => "restart storm",
            Self::KillStorm => "kill storm",
            Self::Soak => "P29",
        }
    }
}
