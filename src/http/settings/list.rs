//! The list of settings. Where values come from is not known here.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use cognate::model::{Storage, Verify};

use crate::http::dialect::{Dialect, StandIn};
use crate::http::observe::request_log::LoggedRequests;
use crate::http::settings::value::ValueShape::{Bytes, Choice, Count, List, Switch, Text};
use crate::http::settings::value::{RawValue, Rule, VARIABLES, Value};
use crate::http::settings::{Damaged, DatabaseUrl, NamedModel};

/// Longest summary that is not shortened: with the longest flag it fits on a line.
const SUMMARY: usize = 58;

/// Declares the struct, its defaults and the list from one text: sections, `"name":`, of settings,
/// `/// help`, then `key: type = default, shape;`, followed by the word for no value.
macro_rules! settings {
    ($($section:literal:
        $($(#[doc = $help:literal])+ $key:ident: $kind:ty = $default:expr, $shape:expr $(, or $unset:literal)?;)+
    )+) => {
        /// The settings of `cognate serve`.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Settings {
            $($($(#[doc = $help])+ pub $key: $kind,)+)+
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($($key: $default,)+)+ }
            }
        }

        /// Every setting, in the order in which they are shown.
        pub const LIST: &[Setting] = &[$($({
            const RULE: Rule = Rule { shape: $shape, unset: [$(Some($unset),)? None][0] };
            Setting {
                section: $section,
                key: stringify!($key),
                help: concat!($($help),+),
                rule: RULE,
                write: |settings, written| {
                    settings.$key = Value::parse(written, &RULE)?;
                    Ok(())
                },
                read: |settings| settings.$key.write(&RULE),
            }
        }),+),+];
    };
}

settings! {
    "Network":
    /// Address and port to listen on; an address that other machines can reach requires keys_file
    /// or allow_no_auth, so that nothing is exposed by accident.
    listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)), Text("ADDRESS:PORT");
    /// Own address and port for metrics, readiness and reload; the public one then does not
    /// serve them.
    admin_listen: Option<SocketAddr> = None, Text("ADDRESS:PORT"), or "none";
    /// Maximum open connections; keeps file descriptors from running out.
    max_connections: usize = 2048, Count(1, 65_536);
    /// Maximum open NDJSON streams, less than max_connections: a stream lasts as long as its client
    /// sends, and other requests need connections too. `quarter` is a quarter of max_connections.
    max_streams: Option<usize> = None, Count(1, 65_535), or "quarter";
    /// Requests on one connection before it is closed, so that load balancers redistribute clients.
    requests_per_connection: u64 = 10_000, Count(1, 1_000_000_000);
    /// Maximum size of a request's head; bounds the memory of a connection.
    header_bytes: usize = 32 << 10, Bytes(8 << 10, 1 << 20);
    /// Maximum number of header fields in a request.
    header_count: usize = 64, Count(8, 1024);

    /// Compress answers for clients that accept gzip or zstd: those of more than 1 KiB, which are less to
    /// send and more to compute. Streams are sent as they are.
    compress_answers: bool = false, Switch;

    "Models":
    /// Models by name; a request chooses one by its name and gets the first without one. The first
    /// may be a file alone, which is then called `default`. If none is named, default.safetensors is
    /// looked for beside the program, in models/ and in the user's data folder.
    model: Vec<NamedModel> = vec![NamedModel {
        name: NamedModel::UNNAMED.to_owned(),
        path: PathBuf::from("models/default.safetensors"),
    }], List("[NAME=]FILE");
    /// How a model file is checked when it is opened: `full` reads every byte, `structure` only what
    /// keeps look-ups within bounds.
    verify: Verify = Verify::Full, Choice(&["full", "structure"]);
    /// How model files are held: `map` maps them, so that all processes share them, `copy` copies
    /// them, for file systems on which others write into files.
    model_storage: Storage = Storage::Map, Choice(&["map", "copy"]);
    /// Refuse model files that this process can write to.
    strict: bool = false, Switch;
    /// BLAKE3 digest that the first model's file must have.
    model_digest: Option<String> = None, Text("HEX"), or "none";

    "Keys and origins":
    /// File of API keys, one a line, as `cognate keygen` prints them.
    keys_file: Option<PathBuf> = None, Text("FILE"), or "none";
    /// Serve without keys on an address that others can reach.
    allow_no_auth: bool = false, Switch;
    /// Maximum requests a second for each key; a line of a stream counts as a request.
    rate_limit_per_key: Option<u32> = None, Count(1, 1_000_000), or "off";
    /// Maximum collections of a key that is limited to some: all that its names reach are counted,
    /// whoever made them.
    collections_per_key: Option<usize> = None, Count(1, 10_000), or "none";
    /// Maximum items of all collections of such a key together.
    collection_items_per_key: Option<usize> = None, Count(1, 100_000_000), or "none";
    /// Maximum bytes of all items of such a key, as `GET /collections` counts them.
    collection_bytes_per_key: Option<usize> = None, Bytes(1 << 10, 1 << 40), or "none";
    /// More names of this service, beside addresses, names without a dot, and what ends in .localhost
    /// or .internal. Without keys, collections are not shown to pages that came by any other name: who
    /// owns it may have pointed it here (DNS rebinding).
    allowed_hosts: Vec<String> = Vec::new(), List("NAME");
    /// Origins whose pages may call this service from a browser (CORS), each exactly as browsers
    /// send it.
    cors_origins: Vec<String> = Vec::new(), List("ORIGIN");

    "Other dialects":
    /// Dialects of other servers that clients may speak: `all`, `none`, or some of openai, rerank,
    /// tei, hub, ollama, vllm, weaviate.
    dialects: Vec<Dialect> = Dialect::others().collect(), List("NAME");
    /// What these dialects give for a text without known words; their clients cannot take null:
    /// `zero` zeros, `hash` a vector made from the text, `error` a refusal, `auto` hash where the
    /// model makes such vectors of unknown words, else zero.
    dialect_unknown: StandIn = StandIn::Auto, Choice(&["auto", "zero", "hash", "error"]);

    "Limits of a request":
    /// Maximum size of a request's body; bounds the memory of a request.
    body_bytes: usize = 8 << 20, Bytes(1 << 10, 64 << 20);
    /// Maximum texts in one request.
    max_texts: usize = 10_000, Count(1, 100_000);
    /// Maximum pairs in one request.
    max_pairs: usize = 10_000, Count(1, 100_000);
    /// Maximum candidates in one request.
    max_candidates: usize = 10_000, Count(1, 100_000);
    /// Maximum queries of one ranking, liked texts, and disliked texts.
    max_queries: usize = 100, Count(1, 10_000);
    /// Maximum characters of a text.
    text_chars: usize = 8192, Count(1, 65_536);
    /// Maximum bytes of a text, checked before anything else.
    text_bytes: usize = 32 << 10, Bytes(1, 256 << 10);
    /// Maximum tokens of a text; the cost of some methods grows with its square.
    tokens_per_text: usize = 512, Count(1, 512);
    /// Maximum tokens of all texts of a request together.
    tokens_total: usize = 1_000_000, Count(1, 100_000_000);
    /// Maximum size of a response, estimated before work begins.
    response_bytes: usize = 64 << 20, Bytes(1 << 10, 1 << 30);

    "Collections":
    /// Folder that collections are kept in, by one process at a time; without it they end with the
    /// process.
    data: Option<PathBuf> = None, Text("FOLDER"), or "none";
    /// What a log that cannot be read stops: `refuse` the start, `serve-others` its own collection
    /// alone.
    damaged: Damaged = Damaged::Refuse, Choice(&["refuse", "serve-others"]);
    /// Seconds that a start waits while another process has `data` open. A process that stops hands
    /// the folder over to a waiting process at once.
    wait_for_data_s: u64 = 0, Count(0, 86_400);
    /// Folder whose collections another process keeps: this one reads along as they grow, and takes no
    /// changes.
    replica_of: Option<PathBuf> = None, Text("FOLDER"), or "none";
    /// Folder that `POST /-/backup` copies the collections of `data`, or of `replica_of`, to; it is not
    /// among them.
    backups: Option<PathBuf> = None, Text("FOLDER"), or "none";
    /// Number of copies to keep: after a new copy, the oldest copies beyond this number are removed.
    backups_kept: Option<usize> = None, Count(1, 10_000), or "all";
    /// Seconds that a copy may take; beyond it nothing of it is left.
    backup_timeout_s: u64 = 600, Count(1, 86_400);
    /// PostgreSQL database that collections are kept in instead; it has pgvector, cognate collection
    /// init makes its tables, and any number of servers share it.
    postgres: Option<DatabaseUrl> = None, Text("URL"), or "none";
    /// Maximum collections.
    max_collections: usize = 100, Count(1, 10_000);
    /// Maximum items of a collection.
    collection_items: usize = 1_000_000, Count(1, 100_000_000);
    /// Maximum memory of all collections: of their items, and of the windows that texts are matched
    /// against.
    collection_bytes: usize = 1 << 30, Bytes(1 << 20, 1 << 40);
    /// Collections that have series of their own on /metrics, by name; all further ones count as
    /// `_other`. `auto` is 100 where admin_listen is set, else 0: whoever reaches the public address
    /// reads its metrics without a key.
    collection_series: Option<usize> = None, Count(0, 1000), or "auto";

    "Limits of all requests":
    /// Maximum texts, pairs and candidates in progress; requests beyond it wait for admission_wait_ms
    /// at most, or get 503 at once if they would have to wait longer.
    admission_units: usize = 65_536, Count(1, 16_777_216);
    /// Milliseconds that a request may wait for admission_units; 0 refuses it at once. At most
    /// compute_queue requests wait, and never more than 1024.
    admission_wait_ms: u64 = 1000, Count(0, 60_000);
    /// Threads that compute large requests.
    compute_threads: Option<usize> = None, Count(1, 1024), or "cores";
    /// Maximum large requests that wait for a compute thread, and as many for admission; requests
    /// beyond it get 503.
    compute_queue: usize = 64, Count(1, 65_536);
    /// Milliseconds that computing one response may take; beyond it the request gets 503.
    compute_deadline_ms: u64 = 2000, Count(1, 60_000);
    /// Percentage of these limits that one client may have: of admission_units, compute_queue,
    /// max_streams and unsent_bytes. A client is a key, where there are several; without keys an
    /// address that is not this machine's. 100 lets one have all.
    client_share: usize = 50, Count(1, 100);
    /// Maximum memory of all responses that wait to be read; requests beyond it get 503.
    /// `auto` is a quarter of the memory that the process may use, at most 256 MiB.
    unsent_bytes: Option<usize> = None, Bytes(1 << 20, 64 << 30), or "auto";
    /// Maximum temporary files for a stream's unread responses; beyond it the stream waits, and ends
    /// if its client does not read. `off` keeps 64 KiB of them in memory and writes no files.
    stream_spool_bytes: Option<u64> = Some(256 << 20), Bytes(64 << 10, 1 << 40), or "off";
    /// Maximum temporary files for all unread responses of streams.
    spool_bytes: u64 = 1 << 30, Bytes(64 << 10, 1 << 40);
    /// Folder of those files, in which they have no name; `temp` is the system's for temporary files.
    spool_folder: Option<PathBuf> = None, Text("FOLDER"), or "temp";

    "Slow clients":
    /// Seconds within which a request's head must be complete, and after which an idle connection is
    /// closed. A load balancer must close idle connections sooner.
    header_timeout_s: u64 = 15, Count(1, 120);
    /// Seconds within which a body must arrive, and within which a line of a stream must that was begun.
    body_timeout_s: u64 = 5, Count(1, 300);
    /// Seconds that a stream may send nothing between two lines; an empty line counts as one.
    stream_idle_s: u64 = 300, Count(1, 86_400);
    /// Seconds within which a client must read 64 KiB, or a sixty-fourth, of its response.
    write_timeout_s: u64 = 30, Count(1, 600);

    "Shutdown":
    /// Seconds to accept requests after SIGTERM, so that load balancers notice before connections are
    /// refused.
    shutdown_delay_s: u64 = 3, Count(0, 300);
    /// Seconds that requests then get to finish; then their connections are dropped.
    shutdown_grace_s: u64 = 20, Count(0, 3600);

    "Logs and traces":
    /// Log level (error, warn, info, debug, trace or off) or a filter such as `info,cognate=debug`.
    log: String = "info".to_owned(), Text("FILTER");
    /// Requests that get a line in the log at level info: `all`, `refused` or `none`. Of more than 100
    /// lines a second a sample is written, and a line says how many were left out.
    log_requests: LoggedRequests = LoggedRequests::All, Choice(&["all", "refused", "none"]);
    /// OTLP collector that spans of requests are sent to, over plain HTTP; in builds with the feature
    /// `otlp`.
    otlp_endpoint: Option<String> = None, Text("http://HOST:PORT"), or "none";
    /// Milliseconds between measurements of how late timers are.
    lateness_tick_ms: u64 = 100, Count(1, 10_000);
}

pub struct Setting {
    pub section: &'static str,
    /// Its key in the file; flag and variable are derived from it.
    pub key: &'static str,
    /// The help text: what it does and what it prevents.
    pub help: &'static str,
    pub rule: Rule,
    /// Sets the value, or returns the problem.
    pub write: fn(&mut Settings, &RawValue) -> Result<(), String>,
    /// Its value as it would be written.
    pub read: fn(&Settings) -> RawValue,
}

impl Setting {
    /// The first sentence of the help.
    pub fn summary(&self) -> &'static str {
        let up_to = |text: &'static str, ends: &[&str]| {
            let end = ends.iter().filter_map(|end| text.find(end)).min();
            text.get(..end.unwrap_or(text.len())).unwrap_or(text)
        };
        let clause = up_to(self.help.trim().trim_end_matches('.'), &["; ", ": ", ". "]);
        if clause.len() <= SUMMARY { clause } else { up_to(clause, &[", ", " ("]) }
    }

    pub fn flag(&self) -> String {
        self.key.replace('_', "-")
    }

    pub fn variable(&self) -> String {
        format!("{VARIABLES}{}", self.key.to_uppercase())
    }
}
