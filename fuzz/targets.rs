//! What the fuzzer runs, and what a test on stable replays: one function a target, bytes in.
//!
//! A body panics if a property fails; refused bytes are never a failure. How inputs are
//! found, changed and kept is not known here.

use std::cell::RefCell;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use std::{fs, io};

use axum::http::request::Parts;
use axum::http::{Request, Response};
use cognate::model::phrase::Found;
use cognate::model::{Model, OpenOptions, Phrase, Verify};
use cognate::text;
use cognate::text::{Kind, Normalisation, Tokens};
use cognate_collections::embedded::EmbeddedCollection;
use cognate_collections::{
    Attributes, CollectionError, Cut, EmbeddedHome, Filter, Id, Incoming, Item, Limits, Opening,
    ReplicaHome, Salvaged, Settings, check_logs,
};
use cognate_files::progress::Progress;
use cognate_pack::counts::{self, Documents};
use cognate_pack::readers::fasttext_bin::FastTextReader;
use cognate_pack::readers::finalfusion::FinalfusionReader;
use cognate_pack::readers::input::Input;
use cognate_pack::readers::matrix::{MatrixReader, Shape};
use cognate_pack::readers::positioned::Source;
use cognate_pack::readers::text::TextReader;
use cognate_pack::readers::word2vec_bin::Word2VecBinReader;
use cognate_pack::readers::{Budget, ReadError, Subword, VectorReader, format, npy, safetensors};
use cognate_server::http::api::collections;
use cognate_server::http::api::embed::EmbedRequest;
use cognate_server::http::api::rank::RankRequest;
use cognate_server::http::api::similarity::SimilarityRequest;
use cognate_server::http::auth::keys;
use cognate_server::http::auth::keys::Keys;
use cognate_server::http::compatible;
use cognate_server::http::error::ApiError;
use cognate_server::http::net::gate;
use cognate_server::http::request::json;
use http_body_util::BodyExt;
use hyper::body;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use xxhash_rust::xxh3::xxh3_64;

/// What a target does with the fuzzer's bytes.
pub type Body = fn(&[u8]);

/// Every target, under the name of its folder in `corpus`.
pub const TARGETS: [(&str, Body); 20] = [
    ("tokenizer", tokenizer),
    ("import_w2v_text", import_w2v_text),
    ("import_w2v_bin", import_w2v_bin),
    ("import_glove", import_glove),
    ("import_fasttext", import_fasttext),
    ("import_npy", import_npy),
    ("import_safetensors", import_safetensors),
    ("import_finalfusion", import_finalfusion),
    ("counts", counts),
    ("model_open", model_open),
    ("phrase", phrase),
    ("json_similarity", json_similarity),
    ("json_embed", json_embed),
    ("json_rank", json_rank),
    ("json_dialects", json_dialects),
    ("json_collections", json_collections),
    ("collection_filter", collection_filter),
    ("collection_log", collection_log),
    ("gate", gate),
    ("auth_header", auth_header),
];

const BUDGET: Budget = Budget::DEFAULT;

/// The first byte picks the preset, the rest is the text.
pub fn tokenizer(bytes: &[u8]) {
    let Some((&choice, text)) = bytes.split_first() else { return };
    let name = Normalisation::PRESETS[usize::from(choice) % Normalisation::PRESETS.len()];
    let rules = Normalisation::preset(name).expect("every listed preset exists");
    let input = &*String::from_utf8_lossy(text);
    let mut tokens = Tokens::new();
    text::tokenise(&rules, input, &mut tokens);
    let (mut output, mut last) = (0, 0..0);
    for (text, token) in tokens.iter() {
        let span = token.span.start as usize..token.span.end as usize;
        let source = input.get(span.clone());
        assert!(source.is_some_and(|source| !source.is_empty()), "{span:?} cuts a character");
        assert!(last.start <= span.start && last.end <= span.end, "{span:?} after {last:?}");
        assert!(!text.is_empty() && !text.contains(char::is_whitespace), "{text:?} is no token");
        output += if token.kind == Kind::Tag { 0 } else { text.len() };
        last = span;
    }
    assert!(output <= 4 * input.len(), "{} bytes became {output}", input.len());
    let once: Vec<String> = tokens.texts().map(str::to_owned).collect();
    text::tokenise(&rules, &once.join(" "), &mut tokens);
    let twice: Vec<&str> = tokens.texts().collect();
    assert_eq!(once, twice, "tokens joined by spaces are other tokens");
}

/// word2vec text, also as it is opened when nobody knows whether it has a header.
pub fn import_w2v_text(bytes: &[u8]) {
    read_through(input(bytes).and_then(|input| TextReader::new(input, BUDGET)));
}

/// word2vec binary.
pub fn import_w2v_bin(bytes: &[u8]) {
    read_through(input(bytes).and_then(|input| Word2VecBinReader::new(input, BUDGET)));
}

/// GloVe text.
pub fn import_glove(bytes: &[u8]) {
    read_through(input(bytes).and_then(|input| TextReader::new(input, BUDGET)));
}

/// fastText's binary models.
pub fn import_fasttext(bytes: &[u8]) {
    read_through(FastTextReader::over(source(bytes), BUDGET));
}

/// finalfusion's chunks.
pub fn import_finalfusion(bytes: &[u8]) {
    read_through(FinalfusionReader::over(source(bytes), BUDGET));
}

/// A NumPy matrix.
pub fn import_npy(bytes: &[u8]) {
    let Ok(mut input) = input(bytes) else { return };
    if let Ok(shape) = npy::find_matrix(&mut input) {
        read_matrix(input, shape);
    }
}

/// A matrix in a safetensors file, by name and by likelihood.
pub fn import_safetensors(bytes: &[u8]) {
    for tensor in [None, Some("vectors")] {
        let Ok(mut input) = input(bytes) else { return };
        if let Ok(shape) = safetensors::find_matrix(&mut input, tensor) {
            read_matrix(input, shape);
        }
    }
}

/// The first byte says what the rest is: a table of counts, or a corpus and how its documents
/// are separated.
pub fn counts(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let Ok(file) = input(rest) else { return };
    let model = &MODELS[0];
    let (words, bar) = (model.vocabulary(), Progress::hidden());
    let separator = match choice % 3 {
        0 => None,
        1 => Some(Documents::Line),
        _ => Some(Documents::Paragraph),
    };
    let counts = match separator {
        None => counts::of_table(file, &words, &bar),
        Some(separator) => counts::of_corpus(file, separator, &words, model.normalisation(), &bar),
    };
    let Ok(counts) = counts else { return };
    assert_eq!(counts.idf.len(), words.len());
    assert!(counts.idf.iter().chain([&counts.idf_unknown]).all(|idf| idf.is_finite()));
    let occurrences = counts.occurrences.expect("both kinds of file hold occurrences");
    let listed = occurrences.iter().fold(0_u64, |sum, &count| sum.saturating_add(count));
    assert!(counts.tokens.is_some_and(|tokens| listed <= tokens), "{listed} {:?}", counts.tokens);
    let total = counts.document_total.unwrap_or_default();
    for (&documents, &times) in counts.documents.iter().flatten().zip(&occurrences) {
        assert!(u64::from(documents) <= times.min(total), "{documents} {times} {total}");
    }
}

/// A model file, as it is and with its digests made true, so that what they guard is reached.
pub fn model_open(bytes: &[u8]) {
    for file in [Some(bytes.to_vec()), with_true_digests(bytes)].into_iter().flatten() {
        for verify in [Verify::Structure, Verify::Full] {
            let options = OpenOptions { verify, ..OpenOptions::default() };
            let Ok(model) = Model::from_bytes(&file, &options) else { continue };
            let vocabulary = model.vocabulary();
            for id in 0..(vocabulary.len() as u32).saturating_add(2) {
                let listed = (id as usize) < vocabulary.len();
                assert_eq!(model.vectors().row(id).is_some(), listed);
                assert_eq!(!vocabulary.word(id).is_empty(), listed);
                let (idf, share) = (vocabulary.idf(Some(id)), vocabulary.probability(id));
                assert!(verify == Verify::Structure || idf.is_none_or(f32::is_finite));
                assert!(share.is_finite() && share >= 0.0, "{share} of the corpus");
                let found = vocabulary.lookup(vocabulary.word(id));
                assert!(verify == Verify::Structure || found == listed.then_some(id));
            }
            let mut phrase = Phrase::new(&model);
            check_phrase(
                &mut phrase,
                "The quakes hit O'Neill's new city xyzzy! Sooo 東京 #NewYork",
            );
        }
    }
}

/// The first byte picks how unlisted words are treated, the rest is the text.
pub fn phrase(bytes: &[u8]) {
    let Some((&choice, text)) = bytes.split_first() else { return };
    let mut phrase = Phrase::new(&MODELS[usize::from(choice) % MODELS.len()]);
    let text = String::from_utf8_lossy(text);
    check_phrase(&mut phrase, &text);
    let keys = |phrase: &Phrase<'_>| phrase.words().iter().map(|&word| phrase.key(word)).collect();
    let once: Vec<u64> = keys(&phrase);
    phrase.read("quakes in town");
    phrase.read(&text);
    assert_eq!(keys(&phrase), once, "a phrase read again differs");
}

/// One model for each kind of rule for unlisted words.
static MODELS: LazyLock<[Model; 3]> = LazyLock::new(|| {
    let files: [&[u8]; 3] = [
        include_bytes!("corpus/model_open/fallback-f32"),
        include_bytes!("corpus/model_open/ngrams-i8"),
        include_bytes!("corpus/model_open/wordpiece-f16"),
    ];
    files.map(|file| {
        Model::from_bytes(file, &OpenOptions::default())
            .expect("the corpus holds whole models; a new file format needs them made again")
    })
});

fn input(bytes: &[u8]) -> Result<Input, ReadError> {
    let mut probe = Input::from_bytes("input", bytes.to_vec())?;
    let _ = format::recognise(&mut probe);
    Input::from_bytes("input", bytes.to_vec())
}

fn source(bytes: &[u8]) -> Source {
    Source::memory("input", bytes.to_vec())
}

/// Reads a matrix whose vocabulary fits it, as far as a small input can be large.
fn read_matrix(input: Input, shape: Shape) {
    let words: String = (0..shape.rows.min(10_000)).map(|row| format!("w{row}\n")).collect();
    let words = Input::from_bytes("words", words.into_bytes());
    read_through(words.and_then(|words| MatrixReader::new(input, words, shape, BUDGET)));
}

fn read_through<R: VectorReader>(opened: Result<R, ReadError>) {
    if let Ok(mut reader) = opened {
        check_reader(&mut reader);
    }
}

/// Reads to the end or the first error. What was promised must come, and nothing more.
fn check_reader(reader: &mut dyn VectorReader) {
    let dims = reader.dims();
    assert!((1..=BUDGET.dims).contains(&dims), "{dims} dimensions");
    let (mut word, mut row, mut rows) = (Vec::new(), vec![0.0; dims], 0_u64);
    loop {
        match reader.next_row(&mut word, &mut row) {
            Ok(true) => rows += 1,
            Ok(false) => break,
            Err(_) => return,
        }
        assert!(word.len() <= BUDGET.word_bytes, "a word of {} bytes", word.len());
        let (done, all) = reader.progress();
        assert!(done <= all, "{done} of {all} bytes are read");
    }
    assert!(rows <= BUDGET.words && reader.rows_hint().is_none_or(|promised| promised == rows));
    assert!(!matches!(reader.next_row(&mut word, &mut row), Ok(true)), "rows after the last");
    let promised = match reader.subword() {
        Some(Subword::NGrams { buckets, .. }) => {
            reader.kept_buckets().map_or(buckets, |kept| kept.len() as u64)
        }
        Some(Subword::WordPiece { .. } | Subword::Unigram { .. }) | None => 0,
    };
    let mut buckets = 0;
    loop {
        match reader.next_bucket(&mut row) {
            Ok(true) => buckets += 1,
            Ok(false) => break,
            Err(_) => return,
        }
    }
    assert_eq!(buckets, promised, "rows of n-grams");
}

/// Every token is either found or unknown, in order, and every word found has a row.
fn check_phrase(phrase: &mut Phrase<'_>, text: &str) {
    phrase.read(text);
    let tokens = phrase.tokens().len();
    let mut of_token = vec![0_usize; tokens];
    let dims = phrase.model().dims();
    for (origin, &word) in phrase.origins().zip(phrase.words()) {
        of_token[origin.token as usize] += 1;
        assert_eq!(phrase.row(word).len(), dims, "{word:?}");
        let made = matches!(origin.found, Found::Hash | Found::NGrams | Found::Pieces);
        assert_eq!(phrase.id(word).is_none(), made, "{origin:?}");
        let mut row = vec![0.0; dims];
        phrase.row(word).copy_to(&mut row);
        assert!(
            origin.found != Found::Hash || row.iter().all(|value| value.is_finite()),
            "{row:?}"
        );
    }
    assert_eq!(phrase.origins().count(), phrase.words().len());
    assert!(phrase.origins().is_sorted_by_key(|origin| origin.token));
    let unknown: Vec<usize> = (0..tokens).filter(|&token| of_token[token] == 0).collect();
    assert!(phrase.unknown().iter().map(|&token| token as usize).eq(unknown));
}

/// The same file with every digest that its header states replaced by the true one.
fn with_true_digests(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut file = bytes.to_vec();
    let length = usize::try_from(u64::from_le_bytes(*bytes.first_chunk()?)).ok()?;
    let data = length.checked_add(8)?;
    let header: serde_json::Value = serde_json::from_slice(bytes.get(8..data)?).ok()?;
    for (name, entry) in header.as_object()? {
        let offset = |end: usize| {
            let offset = usize::try_from(entry["data_offsets"][end].as_u64()?).ok()?;
            data.checked_add(offset)
        };
        let range = offset(0).zip(offset(1));
        if let Some(tensor) = range.and_then(|(from, to)| bytes.get(from..to)) {
            state(
                &mut file[8..data],
                &format!("b3.{name}"),
                blake3::hash(tensor).to_hex().as_str(),
            );
        }
    }
    // The header's own digest is taken with zeros in its place.
    state(&mut file[8..data], "b3.header", &"0".repeat(64));
    let digest = blake3::hash(&file[8..data]).to_hex();
    state(&mut file[8..data], "b3.header", digest.as_str());
    Some(file)
}

/// Overwrites the digest stated under `key`, if there is one.
fn state(header: &mut [u8], key: &str, digest: &str) {
    let key = format!("\"{key}\":\"");
    let at = header.windows(key.len()).position(|window| window == key.as_bytes());
    let place = at.map(|at| at + key.len()).and_then(|at| header.get_mut(at..at + digest.len()));
    if let Some(place) = place {
        place.copy_from_slice(digest.as_bytes());
    }
}

/// A body is read or refused.
fn question<'b, T: serde::Deserialize<'b>>(bytes: &'b [u8]) {
    if let Err(refusal) = json::read_object::<T>(bytes) {
        refused(&refusal);
    }
}

/// A refusal has a place in the body, or none, and never repeats it.
fn refused(refusal: &ApiError) {
    for fault in &refusal.faults {
        let pointer = fault.pointer.to_string();
        assert!(pointer.is_empty() || pointer.starts_with('/'));
        assert!(pointer.len() < 64 * 4 * 2 + 64, "a pointer as long as its body");
    }
    let detail = refusal.detail.to_string();
    assert!(detail.len() < 600, "{detail}");
}

/// Bodies of `/similarity`.
pub fn json_similarity(bytes: &[u8]) {
    question::<SimilarityRequest<'_>>(bytes);
}

/// Bodies of `/embed`.
pub fn json_embed(bytes: &[u8]) {
    question::<EmbedRequest<'_>>(bytes);
}

/// Bodies of `/rank`.
pub fn json_rank(bytes: &[u8]) {
    question::<RankRequest<'_>>(bytes);
}

/// Bodies of every dialect of another server.
pub fn json_dialects(bytes: &[u8]) {
    compatible::refusals(bytes).iter().for_each(refused);
}

/// Bodies and lines of every question to a collection.
pub fn json_collections(bytes: &[u8]) {
    collections::refusals(bytes).iter().for_each(refused);
}

/// Filters of collections: one that is read admits an item or does not, and within `not` the other way
/// round.
pub fn collection_filter(bytes: &[u8]) {
    static ITEMS: LazyLock<[Attributes; 3]> = LazyLock::new(|| {
        let written = [
            "{}",
            r#"{"lang": "en", "year": 2021, "open": true}"#,
            r#"{"lang": "", "year": -0.5, "n": 18446744073709551615}"#,
        ];
        written.map(|item| serde_json::from_str(item).expect("attributes"))
    });
    let Ok(written) = str::from_utf8(bytes) else { return };
    let filter = match Filter::read(written) {
        Ok(filter) => filter,
        Err(problem) => {
            let plain = problem.pointer.is_empty() || problem.pointer.starts_with('/');
            assert!(plain && problem.pointer.len() < 64 * 4 * 2 * 8, "{}", problem.pointer);
            return;
        }
    };
    assert!(filter.questions() <= 1024, "{} questions", filter.questions());
    // The deepest and the largest have no room for another.
    if let Ok(not) = Filter::read(&format!(r#"{{"not": {written}}}"#)) {
        for item in &*ITEMS {
            assert_ne!(filter.admits(item, 0), not.admits(item, 0), "{written}");
        }
    }
}

/// A log of a collection, as it is and with the head of each frame made true, so that what checksums guard is
/// reached. A log that is opened opens again with the same items, and takes another.
pub fn collection_log(bytes: &[u8]) {
    for log in [bytes.to_vec(), with_true_heads(bytes)] {
        let folder = folder_in_memory();
        let path = folder.path();
        fs::create_dir(path.join("one")).expect("an empty folder takes another");
        fs::write(path.join("one/items.log"), log).expect("memory takes a small file");
        // None of these changes anything.
        let salvaged = Salvaged::read(path, "one");
        let _ = check_logs(path, true);
        let _ = ReplicaHome::open(path, Limits::DEFAULT);
        let Ok((home, _)) = opened(path) else { continue };
        let one = home.named("one").expect("the folder holds it");
        let before = items_of(&one);
        let salvaged = salvaged.expect("what is opened is read");
        if salvaged.gaps.is_empty() && one.settings() == Settings::default() {
            let salvaged: Vec<String> = salvaged.items().map(shown).collect();
            assert_eq!(before, salvaged, "salvage of a whole log");
        }
        drop((home, one));
        let (home, cuts) = opened(path).expect("what was opened once is opened again");
        assert!(cuts.is_empty(), "cut once more: {cuts:?}");
        let one = home.named("one").expect("the folder holds it");
        assert_eq!(items_of(&one), before, "other items when opened again");
        let item = Incoming {
            id: Id("fuzz-last".into()),
            text: "a quake".into(),
            time: None,
            attributes: None,
            data: None,
            event: None,
        };
        if one.put(vec![item.into_item(0)], 0).is_ok() {
            let after = items_of(&one);
            drop((home, one));
            let (home, _) = opened(path).expect("it was opened twice");
            let one = home.named("one").expect("the folder holds it");
            assert_eq!(items_of(&one), after, "what was added is lost");
        }
    }
}

/// The collections of a folder. Where a test beside this one starts a process, that has the lock too, until it is
/// another program.
fn opened(path: &Path) -> Result<(EmbeddedHome, Vec<Cut>), CollectionError> {
    let opening = Opening { patience: Duration::from_secs(5), serve_others: false };
    EmbeddedHome::open_with(path, Limits::DEFAULT, opening)
}

/// The items of a collection at the beginning of time, with all their fields.
fn items_of(one: &EmbeddedCollection) -> Vec<String> {
    one.view(0).iter().map(shown).collect()
}

fn shown(item: &Arc<Item>) -> String {
    format!("{item:?}")
}

/// A folder that no disk has to be waited for, where the system has one.
fn folder_in_memory() -> tempfile::TempDir {
    let made = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    made.expect("there is room for an empty folder")
}

/// The same log with the length and both checksums of each frame made true. A frame ends where the next mark
/// stands.
fn with_true_heads(bytes: &[u8]) -> Vec<u8> {
    const MARK: &[u8] = b"cgc2";
    const HEAD: usize = 40;
    let mut log = bytes.to_vec();
    let marks = bytes.windows(MARK.len()).enumerate().filter(|(_, four)| *four == MARK);
    let starts: Vec<usize> = marks.map(|(at, _)| at).collect();
    for (at, &start) in starts.iter().enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(log.len());
        let Some((head, changes)) = log[start..end].split_at_mut_checked(HEAD) else { continue };
        head[4..8].copy_from_slice(&(changes.len() as u32).to_le_bytes());
        head[24..32].copy_from_slice(&xxh3_64(changes).to_le_bytes());
        let sum = xxh3_64(&head[..32]);
        head[32..].copy_from_slice(&sum.to_le_bytes());
    }
    log
}

/// Bytes of a connection: where they begin with a request that may be refused by its head and skipped, hyper
/// reads the same request, and finds the next one behind it.
pub fn gate(bytes: &[u8]) {
    const NEXT: &[u8] = b"POST /next HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n";
    let Some((expected, whole)) = gate::skippable(bytes) else { return };
    let whole = whole as usize;
    // What follows the request is another one; only a request that nothing follows is refused.
    let mut sent = bytes.to_vec();
    sent.resize(whole, b'x');
    sent.extend_from_slice(NEXT);
    let seen = requests_of(&sent);
    assert_eq!(seen.len(), 2, "requests seen: {seen:?}");
    let (first, body) = &seen[0];
    assert_eq!(first.method, *expected.method());
    assert_eq!(first.uri, *expected.uri());
    assert_eq!(first.headers, *expected.headers());
    let length = expected.headers()["content-length"].to_str().expect("digits alone");
    assert_eq!(length.parse(), Ok(*body), "bytes of the body");
    assert_eq!(seen[1].0.uri, "/next");
}

/// The heads of the requests that hyper reads of these bytes, and how long the bodies are.
fn requests_of(bytes: &[u8]) -> Vec<(Parts, usize)> {
    let (seen, wire) = (RefCell::new(Vec::new()), Wire { unread: bytes });
    let service = service_fn(async |request: Request<body::Incoming>| {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        seen.borrow_mut().push((head, body.len()));
        Ok::<_, hyper::Error>(Response::new(String::new()))
    });
    {
        let served = http1::Builder::new().half_close(true).serve_connection(wire, service);
        let mut served = std::pin::pin!(served);
        let mut context = Context::from_waker(Waker::noop());
        // Nothing is waited for, so that each look gets on.
        let ended = (0..1000).any(|_| served.as_mut().poll(&mut context).is_ready());
        assert!(ended, "hyper waits for more");
    }
    seen.into_inner()
}

/// A connection whose bytes have all arrived, and which takes whatever is answered.
struct Wire<'b> {
    unread: &'b [u8],
}

impl Read for Wire<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let (now, later) = self.unread.split_at(self.unread.len().min(into.remaining()));
        into.put_slice(now);
        self.unread = later;
        Poll::Ready(Ok(()))
    }
}

impl Write for Wire<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// What a client sends as its key: only the one key there is lets it in.
pub fn auth_header(bytes: &[u8]) {
    static KEYS: LazyLock<Keys> = LazyLock::new(|| {
        let line = keys::line("one", keys::Scope::Query, "the-key").expect("a plain id");
        Keys::parse(&line, "keys".as_ref()).expect("a line of its own making")
    });
    let let_in = KEYS.check(Some(bytes)).is_some();
    let bare = bytes.trim_ascii();
    let presented = match bare.split_at_checked(6) {
        Some((scheme, rest))
            if scheme.eq_ignore_ascii_case(b"bearer") && rest.starts_with(b" ") =>
        {
            rest.trim_ascii()
        }
        _ => bare,
    };
    assert_eq!(let_in, bytes.len() <= keys::HEADER_BYTES && presented == b"the-key");
}
