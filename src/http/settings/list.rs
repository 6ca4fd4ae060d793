//! The list of settings. Where values come from is not known here.

use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::http::settings::NamedModel;
use crate::http::settings::rule::Rule;
use crate::http::settings::rule::Setting;
use crate::http::settings::value::Value;
use crate::model::Storage;
use crate::model::Verify;

/// Declares the struct, its defaults and the list from one text: `/// help`, then
/// `key: type = default, rule;`.
macro_rules! settings {
    ($($(#[doc = $help:literal])+ $key:ident: $kind:ty = $default:expr, $rule:expr;)+) => {
        /// What `cognate serve` can be told.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Settings {
            $($(#[doc = $help])+ pub $key: $kind,)+
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }

        /// Every setting, in the order in which they are shown.
        pub const LIST: &[Setting] = &[$(Setting {
            key: stringify!($key),
            help: concat!($($help),+),
            rule: $rule,
            write: |settings, written, rule| {
                settings.$key = Value::parse(written, rule)?;
                Ok(())
            },
            read: |settings, rule| settings.$key.write(rule),
        }),+];
    };
}

settings! {
    /// Address and port to listen on; on others than loopback, keys are asked for, so that nothing
    /// is exposed by accident.
    listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)), Rule::text("ADDRESS:PORT");
    /// Address and port where metrics, readiness and reload are served instead, so that the public
    /// one does not show them.
    admin_listen: Option<SocketAddr> = None, Rule::text("ADDRESS:PORT").or("none");
    /// Models by name; requests choose by it and get the first otherwise.
    model: Vec<NamedModel> = vec![NamedModel {
        name: "default".to_owned(),
        path: PathBuf::from("models/default.safetensors"),
    }], Rule::list("NAME=FILE");
    /// File of API keys, a line each, as `cognate keygen` prints them; keeps strangers out.
    keys_file: Option<PathBuf> = None, Rule::text("FILE").or("none");
    /// Serve without keys on an address that others can reach.
    allow_no_auth: bool = false, Rule::switch();
    /// Origins whose pages may call from a browser, each exactly as browsers write it; no other
    /// site can use a visitor's access.
    cors_origins: Vec<String> = Vec::new(), Rule::list("ORIGIN");
    /// Requests a second for each key; keeps one client from taking everybody's share.
    rate_limit_per_key: Option<u32> = None, Rule::count(1, 1_000_000).or("off");
    /// Open connections at once; keeps file descriptors from running out.
    max_connections: usize = 2048, Rule::count(1, 65_536);
    /// Connections that the kernel holds before they are accepted; carries over short bursts.
    accept_backlog: u32 = 1024, Rule::count(1, 65_535);
    /// Seconds until a request's head must be complete, and that an idle connection is kept; ends
    /// clients that dribble. A load balancer must give up idle connections sooner.
    header_timeout_s: u64 = 15, Rule::count(1, 120);
    /// Largest request head; bounds the memory of a connection.
    header_bytes: usize = 32 << 10, Rule::bytes(8 << 10, 1 << 20);
    /// Most header fields; bounds the work of reading a head.
    header_count: usize = 64, Rule::count(8, 1024);
    /// Largest request body; bounds the memory of a request.
    body_bytes: usize = 8 << 20, Rule::bytes(1 << 10, 64 << 20);
    /// Seconds until a body must have arrived; ends clients that send slowly.
    body_timeout_s: u64 = 5, Rule::count(1, 300);
    /// Seconds that a client may read nothing of its answer; ends clients that read slowly.
    write_timeout_s: u64 = 30, Rule::count(1, 600);
    /// Milliseconds that computing one answer may take; frees the cores from what nobody awaits.
    compute_deadline_ms: u64 = 2000, Rule::count(1, 60_000);
    /// Requests on one connection before it is closed; lets load balancers spread clients anew.
    requests_per_connection: u64 = 10_000, Rule::count(1, 1_000_000_000);
    /// Texts, pairs and candidates in the house at once; more are refused at once, so that queues
    /// cannot grow.
    admission_units: usize = 65_536, Rule::count(1, 16_777_216);
    /// Threads that compute large requests; keeps them from taking every core.
    compute_threads: Option<usize> = None, Rule::count(1, 1024).or("cores");
    /// Large requests that wait for a compute thread; more are refused, so that waits stay short.
    compute_queue: usize = 64, Rule::count(1, 65_536);
    /// Texts in one request; bounds the work that one body can ask for.
    max_texts: usize = 10_000, Rule::count(1, 100_000);
    /// Pairs in one request; bounds the work that one body can ask for.
    max_pairs: usize = 10_000, Rule::count(1, 100_000);
    /// Candidates in one request; bounds the work that one body can ask for.
    max_candidates: usize = 10_000, Rule::count(1, 100_000);
    /// Characters of a text; this service is for short ones.
    text_chars: usize = 8192, Rule::count(1, 65_536);
    /// Bytes of a text, looked at before anything else is.
    text_bytes: usize = 32 << 10, Rule::bytes(1, 256 << 10);
    /// Tokens of a text; some methods cost the square of it, and none is made for more than 512.
    tokens_per_text: usize = 512, Rule::count(1, 512);
    /// Tokens of all texts of a request; bounds the memory of looking them up.
    tokens_total: usize = 1_000_000, Rule::count(1, 100_000_000);
    /// Largest answer, known before work begins; bounds what slow readers hold.
    response_bytes: usize = 64 << 20, Rule::bytes(1 << 10, 1 << 30);
    /// Largest model file; refuses absurd ones before they are read.
    model_bytes: u64 = 4 << 30, Rule::bytes(1 << 10, 1 << 40);
    /// How much of a model file is checked when it is opened: every byte, or what keeps look-ups
    /// within bounds.
    verify: Verify = Verify::Full, Rule::choice(&["full", "structure"]);
    /// How model files are held: mapped, copied so that nobody can damage them while they are
    /// used, or copied up to 64 MiB.
    model_storage: Storage = Storage::Auto, Rule::choice(&["map", "copy", "auto"]);
    /// Refuse model files that this process could write to.
    strict: bool = false, Rule::switch();
    /// BLAKE3 digest that the first model's file must have; tells a file that was exchanged.
    model_digest: Option<String> = None, Rule::text("HEX").or("none");
    /// Seconds of serving on after the order to stop, so that load balancers notice before
    /// connections are refused.
    shutdown_delay_s: u64 = 3, Rule::count(0, 300);
    /// Seconds that requests in flight get to finish after that; then they are dropped.
    shutdown_grace_s: u64 = 20, Rule::count(0, 3600);
    /// What is logged: error, warn, info, debug, trace or off, or a filter such as
    /// `info,cognate=debug`.
    log: String = "info".to_owned(), Rule::text("FILTER");
    /// Collector that spans of requests are sent to, over plain HTTP; for builds with the feature
    /// `otlp`.
    otlp_endpoint: Option<String> = None, Rule::text("http://HOST:PORT").or("none");
    /// Milliseconds between two looks at how late the runtime's timers are.
    lateness_tick_ms: u64 = 100, Rule::count(1, 10_000);
}
