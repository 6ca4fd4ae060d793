//! Every setting of the service: one flat struct, a field a key. Where values come from is not
//! known here.

use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::model::Storage;
use crate::model::Verify;

/// A model file and the name requests choose it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedModel {
    /// The name.
    pub name: String,
    /// The file.
    pub path: PathBuf,
}

/// What `cognate serve` can be told.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// Where metrics, readiness and reload are served instead, if anywhere.
    pub admin_listen: Option<SocketAddr>,
    /// Models by name; the first is the default.
    pub model: Vec<NamedModel>,
    /// File of API keys, a line each.
    pub keys_file: Option<PathBuf>,
    /// Serve without keys on an address that others can reach.
    pub allow_no_auth: bool,
    /// Origins that browsers may call from.
    pub cors_origins: Vec<String>,
    /// Requests a second for each key; none means no quota.
    pub rate_limit_per_key: Option<u32>,
    /// Open connections at once.
    pub max_connections: usize,
    /// Connections the kernel holds before they are accepted.
    pub accept_backlog: u32,
    /// Seconds until a request's head must be complete; also how long an idle connection is kept.
    pub header_timeout_s: u64,
    /// Largest request head.
    pub header_bytes: usize,
    /// Most header fields.
    pub header_count: usize,
    /// Largest request body.
    pub body_bytes: usize,
    /// Seconds until a body must have arrived.
    pub body_timeout_s: u64,
    /// Seconds a client may take without reading anything.
    pub write_timeout_s: u64,
    /// Milliseconds that computing one answer may take.
    pub compute_deadline_ms: u64,
    /// Requests on one connection before it is closed.
    pub requests_per_connection: u64,
    /// Texts, pairs and candidates in the house at once.
    pub admission_units: usize,
    /// Threads that compute; none means one a core.
    pub compute_threads: Option<usize>,
    /// Large requests that wait for a compute thread.
    pub compute_queue: usize,
    /// Texts in one request.
    pub max_texts: usize,
    /// Pairs in one request.
    pub max_pairs: usize,
    /// Candidates in one request.
    pub max_candidates: usize,
    /// Characters of a text.
    pub text_chars: usize,
    /// Bytes of a text.
    pub text_bytes: usize,
    /// Tokens of a text.
    pub tokens_per_text: usize,
    /// Tokens of a request.
    pub tokens_total: usize,
    /// Largest answer.
    pub response_bytes: usize,
    /// Largest model file.
    pub model_bytes: u64,
    /// How much of a model file is checked when it is opened.
    pub verify: Verify,
    /// How model files are held.
    pub model_storage: Storage,
    /// Refuse model files that this process could write to.
    pub strict: bool,
    /// BLAKE3 digest that the default model's file must have.
    pub model_digest: Option<String>,
    /// Seconds of serving on after the order to stop, so that load balancers notice.
    pub shutdown_delay_s: u64,
    /// Seconds that requests in flight get to finish.
    pub shutdown_grace_s: u64,
    /// What is logged: `error`, `warn`, `info`, `debug` or a filter such as `info,cognate=debug`.
    pub log: String,
    /// Milliseconds between two looks at how late the runtime's timers are.
    pub lateness_tick_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            admin_listen: None,
            model: vec![NamedModel {
                name: "default".to_owned(),
                path: PathBuf::from("models/default.safetensors"),
            }],
            keys_file: None,
            allow_no_auth: false,
            cors_origins: Vec::new(),
            rate_limit_per_key: None,
            max_connections: 2048,
            accept_backlog: 1024,
            header_timeout_s: 15,
            header_bytes: 32 << 10,
            header_count: 64,
            body_bytes: 8 << 20,
            body_timeout_s: 5,
            write_timeout_s: 30,
            compute_deadline_ms: 2000,
            requests_per_connection: 10_000,
            admission_units: 65_536,
            compute_threads: None,
            compute_queue: 64,
            max_texts: 10_000,
            max_pairs: 10_000,
            max_candidates: 10_000,
            text_chars: 8192,
            text_bytes: 32 << 10,
            tokens_per_text: 512,
            tokens_total: 1_000_000,
            response_bytes: 64 << 20,
            model_bytes: 4 << 30,
            verify: Verify::Full,
            model_storage: Storage::Auto,
            strict: false,
            model_digest: None,
            shutdown_delay_s: 3,
            shutdown_grace_s: 20,
            log: "info".to_owned(),
            lateness_tick_ms: 100,
        }
    }
}
