//! Tests of a spool's two ends: order, bounds, and readers that come late or never.

use super::*;
use crate::http::auth::client::Client;
use crate::http::work::streams::Places;

const PATIENCE: Duration = Duration::from_secs(30);

fn spools(each: u64, all: u64) -> Arc<Spools> {
    Arc::new(Spools::new(None, each, all, 128 << 10))
}

fn unsent() -> Unsent {
    Unsent::new(1 << 20, 1 << 20, 50)
}

fn piece(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (number * 31 + at * 7) as u8).collect()
}

async fn rest(reader: &mut Reader) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(bytes) = reader.next().await {
        all.extend_from_slice(&bytes.unwrap());
    }
    all
}

#[tokio::test]
async fn what_is_read_late_comes_in_the_order_in_which_it_was_written() {
    let (spools, unsent) = (spools(4 << 20, 8 << 20), unsent());
    let (mut writer, mut reader) = spools.open(&unsent, PATIENCE);
    let mut place = Places::new(1, 50).take(&Client::default()).unwrap();
    let (mut expected, mut read) = (Vec::new(), Vec::new());
    for number in 0..600 {
        let piece = piece(number, 1 + number * 37 % 9000);
        expected.extend_from_slice(&piece);
        writer.push(piece, &mut place).await.unwrap();
        if number % 100 > 95 {
            read.extend_from_slice(&reader.next().await.unwrap().unwrap());
        }
    }
    assert!(spools.in_use().0 > 1 << 20, "{} bytes of files", spools.in_use().0);
    assert!(unsent.in_use().0 <= IN_MEMORY, "{} bytes of memory", unsent.in_use().0);
    writer.finish(b"end".to_vec());
    expected.extend_from_slice(b"end");
    read.extend(rest(&mut reader).await);
    assert!(read == expected, "{} of {} bytes", read.len(), expected.len());
    drop(reader);
    assert!(writer.was_read());
    assert_eq!((spools.in_use().0, unsent.in_use().0), (0, 0));
}

/// Room that was read is free again, so an answer may be far longer than the limit of unread bytes.
#[tokio::test]
async fn a_reader_that_lags_behind_never_fills_the_spool() {
    let spools = spools(1 << 20, 1 << 20);
    let (mut writer, mut reader) = spools.open(&unsent(), PATIENCE);
    let mut place = Places::new(1, 50).take(&Client::default()).unwrap();
    let (mut written, mut read) = (0, 0);
    for number in 0..1000 {
        writer.push(piece(number, 16 << 10), &mut place).await.unwrap();
        written += 16 << 10;
        while written - read > 512 << 10 {
            read += reader.next().await.unwrap().unwrap().len();
        }
        assert!(spools.in_use().0 <= 1 << 20);
    }
}

#[tokio::test(start_paused = true)]
async fn a_spool_that_nobody_reads_is_full_at_its_limit() {
    let spools = spools(1 << 20, 3 << 20);
    let unsent = unsent();
    let fill = async |writer: &mut Writer| {
        let mut place = Places::new(1, 50).take(&Client::default()).unwrap();
        loop {
            if let Err(stopped) = writer.push(vec![7; 10_000], &mut place).await {
                return stopped;
            }
        }
    };
    let (mut first, mut reader) = spools.open(&unsent, PATIENCE);
    assert_eq!(fill(&mut first).await, Stopped::Full(Full::Each(1 << 20)));
    let used = spools.in_use().0;
    assert!(used <= 1 << 20 && used > (1 << 20) - 10_000, "{used} bytes");
    // All streams together have less room than each may have.
    let others: Vec<_> = (0..2).map(|_| spools.open(&unsent, PATIENCE)).collect();
    let (mut others, readers): (Vec<_>, Vec<_>) = others.into_iter().unzip();
    assert_eq!(fill(&mut others[0]).await, Stopped::Full(Full::Each(1 << 20)));
    assert_eq!(fill(&mut others[1]).await, Stopped::Full(Full::Each(1 << 20)));
    let (mut last, _reader) = spools.open(&unsent, PATIENCE);
    assert_eq!(fill(&mut last).await, Stopped::Full(Full::All(3 << 20)));
    drop(readers);
    first.finish(b"full".to_vec());
    assert!(rest(&mut reader).await.ends_with(b"\x07full"));
    drop(reader);
    assert!(spools.in_use().0 < 100_000, "{} bytes", spools.in_use().0);
}

#[tokio::test(start_paused = true)]
async fn without_a_folder_answers_wait_in_memory_alone() {
    let folder = tempfile::tempdir().unwrap().path().join("gone");
    let spools = Arc::new(Spools::new(Some(folder), 1 << 20, 1 << 20, 1 << 20));
    let (mut writer, mut reader) = spools.open(&unsent(), PATIENCE);
    let mut place = Places::new(1, 50).take(&Client::default()).unwrap();
    let pushed = tokio::join!(
        async {
            for number in 0..100 {
                writer.push(piece(number, 5000), &mut place).await.unwrap();
            }
            writer.finish(Vec::new());
        },
        rest(&mut reader),
    );
    assert_eq!(pushed.1.len(), 500_000);
    let (mut writer, _reader) = spools.open(&unsent(), PATIENCE);
    let full = async {
        loop {
            if let Err(stopped) = writer.push(vec![1; 5000], &mut place).await {
                return stopped;
            }
        }
    };
    assert_eq!(full.await, Stopped::Full(Full::Folder));
}

/// The writer waits because other answers hold the memory, although this client reads all its bytes.
#[tokio::test(start_paused = true)]
async fn a_client_that_reads_is_not_blamed_for_memory_that_others_take() {
    let (spools, unsent) = (Arc::new(Spools::new(None, 0, 1 << 20, 1 << 20)), unsent());
    let (mut writer, mut reader) = spools.open(&unsent, PATIENCE);
    let mut place = Places::new(1, 50).take(&Client::default()).unwrap();
    let held = unsent.charge(vec![0; 1 << 20]).unwrap();
    let given_back = async {
        tokio::time::sleep(PATIENCE * 3).await;
        drop(held);
    };
    let (pushed, (), read) =
        tokio::join!(writer.push(vec![1; 50_000], &mut place), given_back, reader.next());
    assert_eq!((pushed, read.unwrap().unwrap().len()), (Ok(()), 50_000));
}

#[tokio::test(start_paused = true)]
async fn who_neither_reads_nor_sends_is_stuck() {
    let spools = spools(64 << 20, 64 << 20);
    let (mut writer, mut reader) = spools.open(&unsent(), PATIENCE);
    let mut place = Places::new(1, 50).take(&Client::default()).unwrap();
    for _ in 0..10 {
        writer.push(vec![1; 40_000], &mut place).await.unwrap();
    }
    assert!(!writer.is_stuck());
    tokio::time::advance(PATIENCE).await;
    assert!(writer.is_stuck());
    for _ in 0..5 {
        reader.next().await.unwrap().unwrap();
    }
    assert!(!writer.is_stuck(), "the client reads");
    tokio::time::advance(PATIENCE).await;
    writer.push(vec![1; 70_000], &mut place).await.unwrap();
    assert!(!writer.is_stuck(), "the client sends");
}

#[tokio::test]
async fn an_answer_that_is_given_up_is_not_whole() {
    let spools = spools(1 << 20, 1 << 20);
    let (mut writer, reader) = spools.open(&unsent(), PATIENCE);
    let mut place = Places::new(1, 50).take(&Client::default()).unwrap();
    drop(reader);
    assert_eq!(writer.push(vec![1], &mut place).await, Err(Stopped::Gone));
    writer.closed().await;
    assert!(!writer.was_read());
    let (writer, mut reader) = spools.open(&unsent(), PATIENCE);
    drop(writer);
    assert!(reader.next().await.unwrap().is_err(), "nobody may take this for an end");
}
