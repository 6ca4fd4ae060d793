//! `cognate healthcheck`: one HTTP request to a service, for images without another client.

use std::io;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;

use crate::cli::{Failure, machine};
use crate::http::Settings;
use crate::http::settings::Loaded;

/// Longest first line of an answer.
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
        // Problems of settings are the service's to tell; it listens where it could read it.
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

/// Where a service of these settings says whether it is ready.
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

/// The status that a GET is answered with.
fn ask(url: &str, timeout: Duration) -> anyhow::Result<u16> {
    let deadline = Instant::now() + timeout;
    let target = Target::of(url)?;
    let mut stream = target.connect(deadline)?;
    let head = format!(
        "GET {} HTTP/1.1\r\nhost: {}\r\nuser-agent: cognate-healthcheck\r\nconnection: close\r\n\r\n",
        target.path, target.authority
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

/// The status in an answer's first line.
fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|&byte| byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let (version, rest) = line.split_once(' ')?;
    let status = rest.get(..3).filter(|_| version.starts_with("HTTP/1."))?;
    status.parse().ok()
}

/// A timeout is told in one way, whichever step it ended.
fn failed(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => anyhow::anyhow!("it took too long"),
        _ => error.into(),
    }
}

/// What is left until then.
fn left(deadline: Instant) -> anyhow::Result<Duration> {
    match deadline.checked_duration_since(Instant::now()) {
        Some(left) if !left.is_zero() => Ok(left),
        _ => bail!("it took too long"),
    }
}

/// A URL in parts.
#[derive(Debug, PartialEq, Eq)]
struct Target<'u> {
    authority: &'u str,
    host: &'u str,
    port: u16,
    path: &'u str,
}

impl<'u> Target<'u> {
    fn of(url: &'u str) -> anyhow::Result<Self> {
        let rest = url.strip_prefix("http://").context("only http:// can be asked")?;
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let visible = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if !visible(rest) || authority.contains('@') {
            bail!("the URL is not http://host:port/path");
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !authority.ends_with(']') => {
                (host, port.parse().context("the port is no number")?)
            }
            _ => (authority, 80),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            bail!("the URL names no host");
        }
        Ok(Self { authority, host, port, path })
    }

    /// Connects to the first address that accepts the connection.
    fn connect(&self, deadline: Instant) -> anyhow::Result<TcpStream> {
        let found: Vec<SocketAddr> = (self.host, self.port).to_socket_addrs()?.collect();
        let mut last = anyhow::anyhow!("the host has no address");
        for address in found {
            match TcpStream::connect_timeout(&address, left(deadline)?) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = failed(error),
            }
        }
        Err(last)
    }
}
