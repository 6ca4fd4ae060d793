//! A pool of connections to a database: opened on demand, returned after use, waited for when all
//! are in use. Statements that failed for a passing reason are repeated.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use postgres::{Client, Config, Error};

use crate::postgres::session;
use crate::postgres::session::{Session, Statements};
use crate::{CallCounts, CollectionError, Result};

const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(50);
const CONNECT: Duration = Duration::from_secs(5);
/// After this long without an acknowledgement a connection counts as lost.
const UNANSWERED: Duration = Duration::from_secs(15);

struct Connection {
    client: Client,
    statements: Statements,
}

pub(super) struct Pool {
    config: Config,
    idle: Mutex<Idle>,
    given_back: Condvar,
    /// Timeout of a statement, and of the wait for a connection.
    patience: Duration,
    calls: AtomicU64,
    failed: AtomicU64,
}

struct Idle {
    connections: Vec<Connection>,
    free: usize,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The settings of the connection have a password.
        f.write_str("Pool")
    }
}

impl Pool {
    pub(super) fn new(url: &str, most: usize, patience: Duration) -> Result<Self> {
        let mut config: Config = url.parse().map_err(|error: Error| {
            // The URL may hold a password, so only the problem is reported.
            CollectionError::NotSetUp { problem: error.to_string() }
        })?;
        if config.get_application_name().is_none() {
            config.application_name("cognate");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(UNANSWERED);
        }
        // Detects that an idle connection is broken before it is needed.
        config.keepalives_idle(UNANSWERED);
        let idle = Mutex::new(Idle { connections: Vec::new(), free: most });
        let (calls, failed) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self { config, idle, given_back: Condvar::new(), patience, calls, failed })
    }

    /// Runs `ask` in one transaction, which is committed on success. If the connection was lost
    /// before that, or on a conflict, it is repeated.
    pub(super) fn ask<T>(
        &self,
        mut question: impl FnMut(&mut Session<'_>) -> Result<T>,
    ) -> Result<T> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut attempt = 1;
        let error = loop {
            match self.attempt(&mut question) {
                Err(CollectionError::Unreachable { .. }) if attempt < ATTEMPTS => {
                    std::thread::sleep(PAUSE * attempt);
                }
                Err(error) => break error,
                answer => return answer,
            }
            attempt += 1;
        };
        let is_outage = matches!(
            error,
            CollectionError::Unreachable { .. }
                | CollectionError::Slow { .. }
                | CollectionError::Uncertain { .. }
                | CollectionError::Unwritable { .. }
        );
        self.failed.fetch_add(u64::from(is_outage), Ordering::Relaxed);
        Err(error)
    }

    pub(super) fn calls(&self) -> CallCounts {
        let [all, failed] = [&self.calls, &self.failed].map(|count| count.load(Ordering::Relaxed));
        CallCounts { all, failed }
    }

    fn attempt<T>(&self, question: &mut impl FnMut(&mut Session<'_>) -> Result<T>) -> Result<T> {
        let mut lent = self.lend()?;
        let Some(Connection { client, statements }) = &mut lent.connection else {
            return Err(CollectionError::Unknown);
        };
        let mut session = Session::new(client.transaction()?, statements);
        let answer = question(&mut session)?;
        match session.transaction.commit() {
            // The connection was lost during the commit: nobody knows whether the transaction took
            // place.
            Err(error) if session::is_lost(&error) => {
                Err(CollectionError::Uncertain { problem: error.to_string() })
            }
            done => Ok(done.map(|()| answer)?),
        }
    }

    /// Runs statements that cannot be in a transaction, without a time limit.
    pub(super) fn run_alone(&self, texts: &[&str]) -> Result<()> {
        let mut client = self.connect(None)?;
        Ok(texts.iter().try_for_each(|text| client.batch_execute(text))?)
    }

    fn lend(&self) -> Result<Lent<'_>> {
        let until = Instant::now() + self.patience;
        let mut idle = self.idle.lock();
        loop {
            while let Some(connection) = idle.connections.pop() {
                if !connection.client.is_closed() {
                    return Ok(Lent { pool: self, connection: Some(connection) });
                }
                idle.free += 1;
            }
            if idle.free > 0 {
                idle.free -= 1;
                drop(idle);
                let mut lent = Lent { pool: self, connection: None };
                let client = self.connect(Some(self.patience))?;
                lent.connection = Some(Connection { client, statements: Statements::default() });
                return Ok(lent);
            }
            if Instant::now() >= until {
                let problem = "all connections to the database are in use".to_owned();
                return Err(CollectionError::Slow { problem });
            }
            self.given_back.wait_until(&mut idle, until);
        }
    }

    fn connect(&self, patience: Option<Duration>) -> Result<Client, Error> {
        let mut client = self.config.connect(session::connector())?;
        let limit = patience.map_or(0, |patience| patience.as_millis());
        client.batch_execute(&format!("SET statement_timeout = {limit}"))?;
        Ok(client)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let connections = std::mem::take(&mut self.idle.get_mut().connections);
        // Closing a connection blocks, which the thread that drops this may not do.
        drop(std::thread::spawn(move || drop(connections)));
    }
}

struct Lent<'p> {
    pool: &'p Pool,
    connection: Option<Connection>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut idle = self.pool.idle.lock();
        match self.connection.take().filter(|connection| !connection.client.is_closed()) {
            Some(connection) => idle.connections.push(connection),
            None => idle.free += 1,
        }
        drop(idle);
        self.pool.given_back.notify_one();
    }
}
