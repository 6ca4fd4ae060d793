//! A network that misbehaves: passes bytes between a client and the server, slowly, in pieces, or
//! not to the end. No rights are needed for it. HTTP is not known here.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens to the bytes of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// How long each piece is held up.
    pub latency: Duration,
    /// Bytes let through in a second.
    pub bytes_per_second: Option<u64>,
    /// Whether each byte travels alone.
    pub one_byte_writes: bool,
    /// After how many bytes, and how, it ends.
    pub cut: Option<(u64, Cut)>,
    /// Whether an end is kept from the other side.
    pub never_fin: bool,
}

/// How a direction ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The proxy passes nothing more on, and neither side is told.
    Stall,
    /// The proxy resets the connection on both sides.
    Reset,
    /// The receiver sees an end, the other direction goes on.
    HalfClose,
    /// Both sides see an end.
    Close,
}

/// A proxy in front of a server.
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddr,
    frozen: watch::Sender<bool>,
}

impl Proxy {
    /// Starts one; `up` is what happens on the way to the server, `down` on the way back.
    pub async fn start(server: SocketAddr, up: Faults, down: Faults) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (frozen, watched) = watch::channel(false);
        tokio::task::spawn_local(async move {
            while let Ok((client, _)) = listener.accept().await {
                let watched = watched.clone();
                tokio::task::spawn_local(async move {
                    if let Ok(upstream) = TcpStream::connect(server).await {
                        carry(client, upstream, [up, down], watched).await;
                    }
                });
            }
        });
        Ok(Self { address, frozen })
    }

    /// From now on nothing passes, and neither side hears that the other is gone.
    pub fn freeze(&self) {
        self.frozen.send_replace(true);
    }
}

async fn carry(
    mut client: TcpStream,
    mut server: TcpStream,
    [up, down]: [Faults; 2],
    frozen: watch::Receiver<bool>,
) {
    let cut = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        // A direction that merely ended waits for the other; a cut ends both.
        tokio::try_join!(
            pump(from_client, to_server, up, frozen.clone()),
            pump(from_server, to_client, down, frozen),
        )
    };
    if cut == Err(Cut::Reset) {
        for stream in [&client, &server] {
            // With no time to linger, closing sends RST instead of FIN.
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }
}

async fn pump(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    faults: Faults,
    mut frozen: watch::Receiver<bool>,
) -> Result<(), Cut> {
    let mut buffer = vec![0; 16 << 10];
    let mut passed = 0;
    loop {
        let read = tokio::select! {
            biased;
            _ = frozen.wait_for(|&frozen| frozen) => return stall().await,
            read = from.read(&mut buffer) => read.map_err(|_| Cut::Reset)?,
        };
        if read == 0 && faults.never_fin {
            return stall().await;
        }
        if read == 0 {
            return end(&mut to).await;
        }
        tokio::time::sleep(faults.latency).await;
        let left = faults.cut.map_or(u64::MAX, |(after, _)| after - passed);
        let taken = read.min(usize::try_from(left).unwrap_or(usize::MAX));
        let piece = buffer.get(..taken).unwrap_or_default();
        pass(&mut to, piece, &faults).await.map_err(|_| Cut::Reset)?;
        passed += taken as u64;
        match faults.cut {
            Some((after, cut)) if passed >= after => match cut {
                Cut::Stall => return stall().await,
                Cut::HalfClose => return end(&mut to).await,
                Cut::Reset | Cut::Close => return Err(cut),
            },
            _ => {}
        }
    }
}

async fn pass(to: &mut WriteHalf<'_>, piece: &[u8], faults: &Faults) -> io::Result<()> {
    let step = if faults.one_byte_writes { 1 } else { 512 };
    for bytes in piece.chunks(step) {
        to.write_all(bytes).await?;
        if let Some(rate) = faults.bytes_per_second {
            tokio::time::sleep(Duration::from_secs_f64(bytes.len() as f64 / rate as f64)).await;
        } else {
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

async fn end(to: &mut WriteHalf<'_>) -> Result<(), Cut> {
    to.shutdown().await.map_err(|_| Cut::Reset)
}

async fn stall() -> Result<(), Cut> {
    std::future::pending().await
}
