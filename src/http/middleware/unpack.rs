//! Decompresses bodies on their way to the route, which reads them within its limits as if they had
//! been sent plain. Nothing is decompressed ahead of the reader.

use std::future::ready;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use async_compression::zstd::DParameter;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt};
use tokio::task::yield_now;
use tokio_util::io::{ReaderStream, StreamReader};

use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::auth::client::Client;
use crate::http::error::{ApiError, Code};
use crate::http::request::body::{BodyError, broken};

const PIECE: usize = 32 << 10;
/// Most bytes that a compressed byte may become, beyond the first piece. Answering decompressed
/// data costs as much as plain data; texts grow at most some 30 times, while gzip can compress a
/// thousand zeros into one byte.
const MAX_RATIO: u64 = 100;
/// Memory that a decompressor takes in addition to its window.
const STATE: usize = 256 << 10;
/// The largest window of zstd that RFC 9659 allows for HTTP; and its logarithm.
const MAX_WINDOW: u64 = 1 << MAX_WINDOW_LOG;
const MAX_WINDOW_LOG: u32 = 23;
/// Compressed bytes that may be read beyond the decompressed ones, and the share of these that may
/// be read as well: incompressible data grows a little, and data that decompresses to nothing has
/// no end.
const AHEAD: u64 = 1 << 20;
const SHARE_AHEAD: u64 = 8;
/// The beginning of a frame of zstd.
const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// Decompresses the body of a request with a supported `Content-Encoding`.
pub(super) fn unpacked(app: &Arc<App>, request: Request) -> Request {
    let mut encodings = request.headers().get_all(header::CONTENT_ENCODING).iter();
    let (Some(encoding), None) = (encodings.next(), encodings.next()) else { return request };
    let encoding = encoding.as_bytes();
    let is_gzip = [&b"gzip"[..], b"x-gzip"].iter().any(|name| encoding.eq_ignore_ascii_case(name));
    if !is_gzip && !encoding.eq_ignore_ascii_case(b"zstd") {
        return request;
    }
    let client = Caller::from_extensions(request.extensions())
        .map(|caller| caller.client)
        .unwrap_or_default();
    let (mut head, body) = request.into_parts();
    head.headers.remove(header::CONTENT_ENCODING);
    // The header holds the length of the compressed body, which nobody else reads.
    head.headers.remove(header::CONTENT_LENGTH);
    let lost = |_| io::Error::other(BodyError(broken()));
    let bytes = Arc::new(ByteCounts::default());
    let of_reader = Arc::clone(&bytes);
    let parts = body.into_data_stream().map_err(lost).and_then(move |part: Bytes| {
        let made = of_reader.unpacked.load(Ordering::Relaxed);
        let taken = of_reader.packed.fetch_add(part.len() as u64, Ordering::Relaxed);
        let too_much = taken > made + made / SHARE_AHEAD + AHEAD;
        ready(if too_much { Err(io::ErrorKind::InvalidData.into()) } else { Ok(part) })
    });
    let read = StreamReader::new(Box::pin(parts));
    let body = match is_gzip {
        true => {
            let mut decoder = GzipDecoder::new(read);
            decoder.multiple_members(true);
            Body::from_stream(pieces(decoder, bytes))
        }
        false => Body::from_stream(unpack_zstd(Arc::clone(app), client, read, bytes)),
    };
    Request::from_parts(head, body)
}

#[derive(Default)]
struct ByteCounts {
    packed: AtomicU64,
    unpacked: AtomicU64,
}

/// Pieces of a reader's data, up to the limit of their growth. Other tasks run between two pieces,
/// however many there are.
fn pieces(read: impl AsyncRead, bytes: Arc<ByteCounts>) -> impl Stream<Item = io::Result<Bytes>> {
    ReaderStream::with_capacity(read, PIECE).then(move |piece| {
        let piece = piece.and_then(|piece| {
            let more = piece.len() as u64;
            let made = bytes.unpacked.fetch_add(more, Ordering::Relaxed) + more;
            let most = bytes.packed.load(Ordering::Relaxed) * MAX_RATIO + PIECE as u64;
            let detail = "the body becomes more than 100 times as long when it is unpacked, which no text \
                          does; send it as it is, or in parts";
            if made > most { Err(refusal(detail)) } else { Ok(piece) }
        });
        async move {
            yield_now().await;
            piece
        }
    })
}

/// Decompresses frames of zstd. The memory for the first frame's window is charged as for answers,
/// and no later frame has a larger window.
fn unpack_zstd(
    app: Arc<App>,
    client: Client,
    read: impl AsyncBufRead + Unpin + Send + 'static,
    bytes: Arc<ByteCounts>,
) -> impl Stream<Item = io::Result<Bytes>> {
    let begun = async move {
        let (head, window, read) = first_head(read).await?;
        let window = window.max(1 << 10);
        if window > MAX_WINDOW {
            let detail = "the body asks for a window of more than 8 MiB to be unpacked (RFC 9659)";
            return Err(refusal(detail));
        }
        // A later frame may have a window as large as a whole power of two.
        let window = window.next_power_of_two();
        let memory = usize::try_from(window).unwrap_or(usize::MAX).saturating_add(STATE);
        let charge = app.unsent.of(&client).work(memory);
        let charge = charge.map_err(|error| io::Error::other(BodyError(error)))?;
        let log = window.ilog2();
        let whole = io::Cursor::new(head).chain(read);
        let mut decoder = ZstdDecoder::with_params(whole, &[DParameter::window_log_max(log)]);
        decoder.multiple_members(true);
        Ok(pieces(decoder, bytes).inspect(move |_| {
            // The charge lives as long as the stream.
            let _ = &charge;
        }))
    };
    stream::once(begun).try_flatten()
}

/// Reads the head of a frame (RFC 8878, section 3.1.1.1): its bytes, its window, and the rest.
async fn first_head<R: AsyncBufRead + Unpin>(mut read: R) -> io::Result<(Vec<u8>, u64, R)> {
    let mut head = vec![0; 5];
    read.read_exact(&mut head).await?;
    let Some((MAGIC, &[descriptor])) = head.split_first_chunk().map(|(magic, rest)| (*magic, rest))
    else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let is_single = descriptor & 0x20 != 0;
    let dictionary = match descriptor & 3 {
        3 => 4,
        bytes => usize::from(bytes),
    };
    let size = match descriptor >> 6 {
        0 => usize::from(is_single),
        log => 1 << log,
    };
    let mut fields = vec![0; usize::from(!is_single) + dictionary + size];
    read.read_exact(&mut fields).await?;
    let window = match (is_single, fields.first()) {
        (false, Some(window)) => {
            let base = 1_u64 << (10 + (window >> 3));
            base + base / 8 * u64::from(window & 7)
        }
        _ => {
            let number = fields.iter().skip(dictionary).rev();
            let number = number.fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
            number.saturating_add(if size == 2 { 256 } else { 0 })
        }
    };
    head.append(&mut fields);
    Ok((head, window, read))
}

fn refusal(detail: &'static str) -> io::Error {
    io::Error::other(BodyError(ApiError::new(Code::UnsupportedEncoding, detail)))
}
