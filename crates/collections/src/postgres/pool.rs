//! Connections to a database: made when they are needed, given back, waited for when all are in use, and
//! what is asked of them asked again where it may pass.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use postgres::{Client, Config, Error};

use crate::postgres::session;
use crate::postgres::session::{Session, Statements};
use crate::{Calls, CollectionError};

/// Most attempts of a statement that may succeed when repeated.
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
    /// Number of connections that may still be made.
    free: usize,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The settings of the connection have a password.
        f.write_str("Pool")
    }
}

pub(super) enum Failed {
    /// The database said no, or nothing.
    Database(Error),
    Other(CollectionError),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl From<CollectionError> for Failed {
    fn from(error: CollectionError) -> Self {
        Self::Other(error)
    }
}

impl From<Failed> for CollectionError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Database(error) => error.into(),
            Failed::Other(error) => error,
        }
    }
}

enum Attempt<T> {
    Done(T),
    Again(CollectionError),
    Failed(CollectionError),
}

impl Pool {
    /// A pool of at most `most` connections; none is made yet.
    pub(super) fn new(url: &str, most: usize, patience: Duration) -> Result<Self, CollectionError> {
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
        // An idle connection whose other end is gone is found out before it is needed.
        config.keepalives_idle(UNANSWERED);
        let idle = Mutex::new(Idle { connections: Vec::new(), free: most });
        let (calls, failed) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self { config, idle, given_back: Condvar::new(), patience, calls, failed })
    }

    /// Asks in one transaction, which is committed if all went well. Where the connection was lost
    /// before that, or others were in the way, it is asked again.
    pub(super) fn ask<T>(
        &self,
        mut question: impl FnMut(&mut Session<'_>) -> Result<T, Failed>,
    ) -> Result<T, CollectionError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut attempt = 1;
        let error = loop {
            match self.attempt(&mut question) {
                Attempt::Done(answer) => return Ok(answer),
                Attempt::Again(_) if attempt < ATTEMPTS => std::thread::sleep(PAUSE * attempt),
                Attempt::Again(error) | Attempt::Failed(error) => break error,
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

    pub(super) fn calls(&self) -> Calls {
        let [all, failed] = [&self.calls, &self.failed].map(|count| count.load(Ordering::Relaxed));
        Calls { all, failed }
    }

    fn attempt<T>(
        &self,
        question: &mut impl FnMut(&mut Session<'_>) -> Result<T, Failed>,
    ) -> Attempt<T> {
        let mut lent = match self.lend() {
            Ok(lent) => lent,
            Err(Failed::Database(error)) if session::is_passing(&error) => {
                return Attempt::Again(error.into());
            }
            Err(failed) => return Attempt::Failed(failed.into()),
        };
        let again = |error: Error| match session::is_passing(&error) {
            true => Attempt::Again(error.into()),
            false => Attempt::Failed(error.into()),
        };
        let Some(Connection { client, statements }) = &mut lent.connection else {
            return Attempt::Failed(CollectionError::Unknown);
        };
        let transaction = match client.transaction() {
            Ok(transaction) => transaction,
            Err(error) => return again(error),
        };
        let mut session = Session::of(transaction, statements);
        match question(&mut session) {
            Ok(answer) => match session.transaction.commit() {
                Ok(()) => Attempt::Done(answer),
                // The connection was lost during the commit: nobody knows whether the transaction took
                // place.
                Err(error) if session::is_lost(&error) => {
                    Attempt::Failed(CollectionError::Uncertain { problem: error.to_string() })
                }
                Err(error) => again(error),
            },
            Err(Failed::Database(error)) => again(error),
            Err(Failed::Other(error @ CollectionError::Unreachable { .. })) => {
                Attempt::Again(error)
            }
            Err(Failed::Other(error)) => Attempt::Failed(error),
        }
    }

    /// Does statements that no transaction may be around, without a limit of time.
    pub(super) fn run_alone(&self, texts: &[&str]) -> Result<(), CollectionError> {
        let mut client = self.connect(None)?;
        Ok(texts.iter().try_for_each(|text| client.batch_execute(text))?)
    }

    fn lend(&self) -> Result<Lent<'_>, Failed> {
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
                // From here on the connection's place is returned, whatever happens.
                let mut lent = Lent { pool: self, connection: None };
                let client = self.connect(Some(self.patience))?;
                lent.connection = Some(Connection { client, statements: Statements::default() });
                return Ok(lent);
            }
            if Instant::now() >= until {
                let problem = "all connections to the database are in use".to_owned();
                return Err(CollectionError::Slow { problem }.into());
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
        // To end a connection blocks, which the thread that drops this may not be allowed to.
        drop(std::thread::spawn(move || drop(connections)));
    }
}

/// A connection that is given back when this is dropped.
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
