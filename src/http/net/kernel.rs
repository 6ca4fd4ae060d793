//! Socket options. Linux has all of them; elsewhere there is no equal, and each function says what
//! the service does without it.

use std::io;
use std::time::Duration;

#[cfg(target_os = "linux")]
use socket2::SockFilter;
use socket2::SockRef;

/// Ends a connection whose peer has not acknowledged sent bytes for this long; `None` switches this
/// off. Elsewhere such a connection lasts until its keep-alive probes or its retransmissions fail.
#[cfg(target_os = "linux")]
pub(super) fn end_unacknowledged(socket: SockRef<'_>, after: Option<Duration>) -> io::Result<()> {
    socket.set_tcp_user_timeout(after)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn end_unacknowledged(_: SockRef<'_>, _: Option<Duration>) -> io::Result<()> {
    Ok(())
}

/// Bounds the unsent bytes in the kernel. Elsewhere these are unbounded: there a slow reader
/// differs from a client that does not read only once it has read all of them.
#[cfg(target_os = "linux")]
pub(super) fn limit_unsent(socket: SockRef<'_>, bytes: u32) -> io::Result<()> {
    socket.set_tcp_notsent_lowat(bytes)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn limit_unsent(_: SockRef<'_>, _: u32) -> io::Result<()> {
    Ok(())
}

/// Makes the kernel ignore new handshakes; returns whether it will. Handshakes that have begun
/// complete: otherwise a client could consider a connection open that this side never saw. An
/// ignored client retries a second later, and finds the port closed or its next owner. Elsewhere a
/// client that connects at the moment when the port is closed may see its connection reset.
#[cfg(target_os = "linux")]
pub(super) fn refuse_handshakes(socket: SockRef<'_>) -> bool {
    // A filter sees the TCP header; the flags are in its byte 13.
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    let (load_byte, jump_if_set, give_back) = (0x30, 0x45, 0x06);
    let program = [
        SockFilter::new(load_byte, 0, 0, FLAGS),
        SockFilter::new(jump_if_set, 0, 1, SYN),
        SockFilter::new(give_back, 0, 0, 0),
        SockFilter::new(give_back, 0, 0, u32::MAX),
    ];
    let attached = socket.attach_filter(&program);
    if let Err(error) = &attached {
        tracing::debug!(%error, "new connections cannot be held off while the listener closes");
    }
    attached.is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn refuse_handshakes(_: SockRef<'_>) -> bool {
    false
}
