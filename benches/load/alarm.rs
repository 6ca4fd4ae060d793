//! Waits to the microsecond. The runtime's own timers round up to a whole millisecond, which would
//! turn evenly spread arrivals into bursts.

use std::io;
use std::time::Instant;

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// A kernel timer. It is read like a pipe, so the runtime's pipe takes it; the runtime's type for
/// any descriptor would ask for `unsafe`.
pub struct Alarm(Receiver);

impl Alarm {
    /// A new one.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self(Receiver::from_owned_fd_unchecked(timer)?))
    }

    /// Returns at the time, never before; at once when it has passed.
    pub async fn wait_until(&mut self, time: Instant) -> io::Result<()> {
        let wait = time.saturating_duration_since(Instant::now());
        if wait.is_zero() {
            return Ok(());
        }
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let (tv_sec, tv_nsec) = (wait.as_secs() as i64, i64::from(wait.subsec_nanos()).max(1));
        let once = Itimerspec { it_interval: zero, it_value: Timespec { tv_sec, tv_nsec } };
        rustix::time::timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        // A timer that has gone off gives the number of times it did.
        self.0.read_u64_le().await?;
        Ok(())
    }
}
