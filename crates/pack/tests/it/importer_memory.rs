//! Small files that claim to be enormous: every importer says no, at once and without the memory.

use std::io::Write;
use std::time::{Duration, Instant};

use cognate_pack::readers::{Format, ReadError, Source, format};
use cognate_testing::allocation;
use flate2::Compression;
use flate2::write::GzEncoder;

/// How long a refusal may take.
const PATIENCE: Duration = Duration::from_millis(500);
/// What a refusal may hold besides four times the file.
const ROOM: u64 = 16 << 20;

/// A file under the name of its format, and a part of the message it is refused with.
type Case = (&'static str, Vec<u8>, &'static str);

/// Opens the file and reads it to its end or the first error, which is what there is to say. The
/// words of matrices lie beside it.
fn read(source: &Source) -> Result<(), ReadError> {
    let mut reader = format::open(source)?;
    let (mut word, mut row) = (Vec::new(), vec![0.0; reader.dims()]);
    while reader.next_row(&mut word, &mut row)? {}
    while reader.next_bucket(&mut row)? {}
    Ok(())
}

/// Reading must end in an error, soon and small. Of three times the shortest counts, because the
/// machine may be busy with something else in one of them.
fn refused(source: &Source, (what, bytes, expected): &Case) {
    let mut shortest = Duration::MAX;
    for _ in 0..3 {
        let began = Instant::now();
        let (outcome, peak) = allocation::peak_of(|| read(source));
        shortest = shortest.min(began.elapsed());
        let problem = outcome.expect_err(what).to_string();
        assert!(problem.contains(expected), "{what}: `{expected}` is not in: {problem}");
        assert!(problem.len() < 1000, "{what}: {problem}");
        let most = 4 * bytes.len() as u64 + ROOM;
        assert!(peak <= most, "{what}: {peak} bytes held for {}", bytes.len());
    }
    assert!(shortest <= PATIENCE, "{what}: refused after {shortest:?}");
}

fn all_refused(format: Format, cases: &[Case]) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("vocab.txt"), "the\nof\n").unwrap();
    let path = folder.path().join("claims");
    for case in cases {
        std::fs::write(&path, &case.1).unwrap();
        refused(&Source { format: Some(format), ..Source::at(&path) }, case);
    }
}

/// A file of a megabyte that unpacks to a gigabyte of the same byte.
fn bomb(before: &[u8], byte: u8) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(before).unwrap();
    let mut file = packed.finish().unwrap();
    let mut block = GzEncoder::new(Vec::new(), Compression::best());
    block.write_all(&vec![byte; 16 << 20]).unwrap();
    file.extend(block.finish().unwrap().repeat(64));
    file
}

/// A zstd frame that asks for a window of two tebibytes.
const ENDLESS_WINDOW: [u8; 9] = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 0x01, 0x00, 0x00];

fn endless(before: &[u8], byte: u8) -> Vec<u8> {
    [before, &vec![byte; 4 << 20]].concat()
}

#[test]
fn rows_of_text() {
    let headed: [Case; 8] = [
        ("10^18 rows of 10^9", b"1000000000000000000 1000000000\na 1\n".to_vec(), "promises"),
        ("most rows", b"18446744073709551615 1\na 1\n".to_vec(), "promises"),
        ("most of both", b"18446744073709551615 18446744073709551615\n".to_vec(), "promises"),
        ("beyond 64 bits", b"99999999999999999999 3\na 1 2 3\n".to_vec(), "absurd"),
        ("packed, 10^18 rows", bomb(b"1000000000000000000 300\n", b'x'), "at most 5000000"),
        ("packed, 10^9 dimensions", bomb(b"1 1000000000\n", b'x'), "at most 4096"),
        ("a header without end", endless(b"1", b'1'), "longer than"),
        ("a row without end", endless(b"2 2\n", b'x'), "longer than"),
    ];
    let bare: [Case; 6] = [
        ("a word without end", endless(b"", b'x'), "longer than"),
        (
            "numbers without end",
            b"a".iter().chain(&b" 1".repeat(60_000)).copied().collect(),
            "at most 4096",
        ),
        ("a packed word without end", bomb(b"a 1\n", b'x'), "longer than 1056 bytes"),
        ("packed blanks without end", bomb(b"a 1\n", b' '), "longer than 1056 bytes"),
        ("an endless window", ENDLESS_WINDOW.to_vec(), "zstd"),
        ("no end of nothing", endless(b"a 1\n", 0), "longer than 1056 bytes"),
    ];
    all_refused(Format::Word2VecText, &headed);
    all_refused(Format::Word2VecText, &bare);
    all_refused(Format::Glove, &bare);
}

#[test]
fn rows_of_word2vec_binary() {
    all_refused(
        Format::Word2VecBin,
        &[
            ("10^18 rows of 10^9", b"1000000000000000000 1000000000\na ....".to_vec(), "promises"),
            ("most rows", b"18446744073709551615 1\na ....".to_vec(), "promises"),
            ("a product that wraps", b"4611686018427387904 4\na ....".to_vec(), "promises"),
            ("beyond 64 bits", b"99999999999999999999 1\na ....".to_vec(), "absurd"),
            ("packed, 10^18 rows", bomb(b"1000000000000000000 300\n", b'x'), "at most 5000000"),
            ("packed, 10^9 dimensions", bomb(b"1 1000000000\n", b'x'), "at most 4096"),
            ("a header without end", endless(b"1", b'1'), "longer than 256"),
            ("a word without end", endless(b"2 2\n", b'x'), "not ended within 1024"),
            ("a packed word without end", bomb(b"2 2\n", b'x'), "not ended within 1024"),
        ],
    );
}

/// Fields of a fastText model in the order of the file, up to its dictionary.
fn fasttext(dims: i32, buckets: i32, entries: [i32; 3], rest: &[u8]) -> Vec<u8> {
    let head = [793_712_314, 12, dims, 5, 5, 1, 5, 1, 2, 2, buckets, 3, 6, 100];
    let mut file: Vec<u8> = head.iter().flat_map(|number| number.to_le_bytes()).collect();
    file.extend(0.0001_f64.to_le_bytes());
    file.extend(entries.iter().flat_map(|number| number.to_le_bytes()));
    file.extend([1_i64, -1].iter().flat_map(|number| number.to_le_bytes()));
    file.extend(rest);
    file
}

#[test]
fn models_of_fasttext() {
    let most = i32::MAX;
    let word = [b"a\0".as_slice(), &1_i64.to_le_bytes(), &[0, 0]].concat();
    let shape = |rows: i64, columns: i64| {
        [&word[..], &rows.to_le_bytes(), &columns.to_le_bytes(), &[0; 8]].concat()
    };
    let buckets = i64::from(most) + 1;
    all_refused(
        Format::FastText,
        &[
            ("10^9 dimensions", fasttext(1_000_000_000, 0, [1, 1, 0], &word), "at most 4096"),
            ("most words", fasttext(2, 0, [most, most, 0], &word), "at most 5000000"),
            ("most labels", fasttext(2, 0, [most, 1, most - 1], &word), "cannot fit"),
            ("most words taken", fasttext(2, 0, [5_000_000, 5_000_000, 0], &word), "cannot fit"),
            ("most buckets", fasttext(4, most, [1, 1, 0], &shape(buckets, 4)), "cannot fit"),
            (
                "10^18 x 10^9",
                fasttext(4, 0, [1, 1, 0], &shape(1 << 60, 1 << 30)),
                "expected an input",
            ),
            ("a word without end", fasttext(2, 0, [1, 1, 0], &endless(b"", b'x')), "within 1024"),
            ("a negative shape", fasttext(4, 0, [1, 1, 0], &shape(-1, -4)), "expected an input"),
        ],
    );
}

#[test]
fn matrices_of_numpy() {
    let npy = |shape: &str| {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let length = (header.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\0", &length[..], header.as_bytes(), &[0; 64]].concat()
    };
    let long = |length: u32| {
        [b"\x93NUMPY\x02\0".as_slice(), &length.to_le_bytes(), &vec![b' '; 4 << 20]].concat()
    };
    all_refused(
        Format::Npy,
        &[
            ("10^18 x 10^9", npy("1000000000000000000, 1000000000"), "promises"),
            ("a product that wraps", npy("4611686018427387904, 4"), "promises"),
            ("beyond 64 bits", npy("99999999999999999999, 1"), "below 2^64"),
            ("no columns", npy("18446744073709551615, 0"), ""),
            ("a header of 4 GiB", long(u32::MAX), "more than 65536"),
            ("a header of 4 MiB", long(4 << 20), "more than 65536"),
        ],
    );
}

#[test]
fn matrices_of_safetensors() {
    let header = |length: u64, json: &[u8], data: usize| {
        [&length.to_le_bytes()[..], json, &vec![0; data]].concat()
    };
    let shaped = |shape: &str, end: u64| {
        let json = format!(
            "{{\"vectors\":{{\"dtype\":\"F32\",\"shape\":[{shape}],\"data_offsets\":[0,{end}]}}}}"
        );
        header(json.len() as u64, json.as_bytes(), 64)
    };
    let tensors: Vec<String> = (0..40_000)
        .map(|n| format!("\"{n}\":{{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}"))
        .collect();
    let many = format!("{{{}}}", tensors.join(","));
    let axes = "1,".repeat(1 << 20);
    let nested = "{\"a\":[".repeat(1 << 18);
    all_refused(
        Format::Safetensors,
        &[
            ("10^18 x 10^9", shaped("1000000000000000000,1000000000", 64), "reaches from"),
            ("10^27 bytes", shaped("1000000000000000000,1000000000", u64::MAX), "64 follow"),
            ("a product that wraps", shaped("4611686018427387904,4", 64), "reaches from"),
            ("most axes", shaped(&format!("{axes}1"), 64), "no tensor is a matrix"),
            ("a header of 2^64", header(u64::MAX, b"{}", 64), "a header of"),
            ("a header of 100 MB", header(100_000_000, b"{}", 64), "a header of"),
            ("nothing but tensors", header(many.len() as u64, many.as_bytes(), 4), "no tensor"),
            ("a deep nest", header(nested.len() as u64, nested.as_bytes(), 0), "the header"),
        ],
    );
}

#[test]
fn chunks_of_finalfusion() {
    let chunk = |kind: u32, length: u64, content: &[u8]| {
        [&kind.to_le_bytes()[..], &length.to_le_bytes(), content].concat()
    };
    let file = |chunks: &[u8]| [b"FiFu\0\0\0\0\0\0\0\0", chunks].concat();
    let whole = |kind: u32, content: &[u8]| file(&chunk(kind, content.len() as u64, content));
    let words = |words: u64, rest: &[u8]| whole(1, &[&words.to_le_bytes()[..], rest].concat());
    let matrix = |rows: u64, columns: u32| {
        let shape = [&rows.to_le_bytes()[..], &columns.to_le_bytes(), &10_u32.to_le_bytes()];
        whole(2, &[&shape.concat()[..], &[0; 64]].concat())
    };
    all_refused(
        Format::Finalfusion,
        &[
            ("10^18 words", words(1_000_000_000_000_000_000, &[0; 64]), "at most 5000000"),
            ("most words taken", words(5_000_000, &[0; 64]), ""),
            ("a word of 4 GiB", words(1, &u32::MAX.to_le_bytes()), "at most 1024"),
            ("10^9 columns", matrix(1_000_000_000_000_000_000, 1_000_000_000), "1 to 4096"),
            ("10^18 rows", matrix(1_000_000_000_000_000_000, 300), "end at byte"),
            ("a product that wraps", matrix(1 << 62, 4), "beyond 64 bits"),
            ("a chunk of 2^64", file(&chunk(1, u64::MAX, &[0; 64])), "expected a chunk of"),
            ("most chunks", [b"FiFu\0\0\0\0".as_slice(), &[0xff; 64]].concat(), "at most 64"),
            (
                "norms of 2^64",
                whole(6, &[&[0xff; 8][..], &10_u32.to_le_bytes()].concat()),
                "beyond",
            ),
        ],
    );
}

#[cfg(feature = "model2vec")]
#[test]
fn folders_of_model2vec() {
    let tokenizer = "{\"version\":\"1.0\",\"added_tokens\":[],\"model\":{\"type\":\"WordLevel\",\
                     \"vocab\":{\"the\":0,\"of\":1},\"unk_token\":\"the\"}}";
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("config.json"), "{}").unwrap();
    std::fs::write(at("tokenizer.json"), tokenizer).unwrap();
    let shaped = |shape: &str, end: u64| {
        let json = format!(
            "{{\"embeddings\":{{\"dtype\":\"F32\",\"shape\":[{shape}],\"data_offsets\":[0,{end}]}}}}"
        );
        [&(json.len() as u64).to_le_bytes()[..], json.as_bytes(), &[0; 64]].concat()
    };
    let cases: [Case; 5] = [
        ("10^18 x 10^9", shaped("1000000000000000000,1000000000", 64), "a header"),
        ("a product that wraps", shaped("4611686018427387904,4", 64), "a header"),
        ("offsets of 2^64", shaped("2,8", u64::MAX), "a header"),
        ("a header of 2^64", [&u64::MAX.to_le_bytes()[..], b"{}"].concat(), "does not fit"),
        ("a header of 1 MiB", [&(1_u64 << 20).to_le_bytes()[..], b"{}"].concat(), "does not fit"),
    ];
    for case in &cases {
        std::fs::write(at("model.safetensors"), &case.1).unwrap();
        refused(&Source::at(folder.path()), case);
    }
}
