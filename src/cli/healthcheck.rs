//! `cognate healthcheck`: one HTTP request to a service, for images without another client.

use std::io;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use axum::http::Uri;
use axum::http::uri::Authority;
use clap::Args;

use crate::cli::{Failure, machine};
use crate::http::Settings;
use crate::http::settings::Loaded;

const STATUS_BYTES: usize = 256;

#[derive(Debug, Args)]
pub(super) struct HealthcheckArgs {
    /// URL to check [default: /ready where the service listens by file and environment]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Timeout in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3,
          value_parser = clap::value_parser!(u64).range(1..=60))]
    timeout_s: u64,
}

pub(super) fn run(args: HealthcheckArgs) -> Result<(), Failure> {
    let url = args.url.unwrap_or_else(|| {
        // The service itself reports problems of its settings; it listens where it could read the
        // address.
        let (layers, _) = machine::layers(None, Vec::new());
        default_url(&Loaded::read(&layers).settings)
    });
    let status = ask(&url, Duration::from_secs(args.timeout_s))
        .with_context(|| format!("no answer from {url}"))
        .map_err(|error| anyhow::anyhow!("{error:#}"))?;
    if status != 200 {
        return Err(anyhow::anyhow!("{url} answers {status}").into());
    }
    Ok(())
}

/// The address at which a service of these settings reports its readiness.
fn default_url(settings: &Settings) -> String {
    let mut address = settings.admin_listen.unwrap_or(settings.listen);
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{address}/ready")
}

fn ask(url: &str, timeout: Duration) -> anyhow::Result<u16> {
    let deadline = Instant::now() + timeout;
    let target: Uri = url.parse().context("the URL is not http://host:port/path")?;
    let authority = target.authority().filter(|_| target.scheme_str() == Some("http"));
    let authority = authority.context("only http:// can be asked")?;
    let port = authority.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    if authority.as_str() != format!("{}{port}", authority.host()) {
        bail!("the URL is not http://host:port/path");
    }
    let mut stream = connect(authority, deadline)?;
    let head = format!(
        "GET {} HTTP/1.1\r\nhost: {}\r\nuser-agent: cognate-healthcheck\r\nconnection: close\r\n\r\n",
        target.path_and_query().map_or("/", |path| path.as_str()),
        authority
    );
    stream.set_write_timeout(Some(left(deadline)?))?;
    stream.write_all(head.as_bytes()).map_err(failed)?;
    let mut answer = Vec::new();
    while !answer.contains(&b'\n') && answer.len() < STATUS_BYTES {
        let mut part = [0; STATUS_BYTES];
        stream.set_read_timeout(Some(left(deadline)?))?;
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(count) => answer.extend(&part[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    status(&answer).context("what came is not HTTP/1.1")
}

fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|&byte| byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let (version, rest) = line.split_once(' ')?;
    let status = rest.get(..3).filter(|_| version.starts_with("HTTP/1."))?;
    status.parse().ok()
}

/// Reports a timeout alike, whichever step it ended.
fn failed(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => anyhow::anyhow!("it took too long"),
        _ => error.into(),
    }
}

fn left(deadline: Instant) -> anyhow::Result<Duration> {
    match deadline.checked_duration_since(Instant::now()) {
        Some(left) if !left.is_zero() => Ok(left),
        _ => bail!("it took too long"),
    }
}

/// Connects to the first address that accepts the connection.
fn connect(authority: &Authority, deadline: Instant) -> anyhow::Result<TcpStream> {
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let found: Vec<SocketAddr> =
        (host, authority.port_u16().unwrap_or(80)).to_socket_addrs()?.collect();
    let mut last = anyhow::anyhow!("the host has no address");
    for address in found {
        match TcpStream::connect_timeout(&address, left(deadline)?) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = failed(error),
        }
    }
    Err(last)
}
