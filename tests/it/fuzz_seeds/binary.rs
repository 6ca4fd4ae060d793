//! Seeds for the binary formats with words inside: word2vec, fastText, finalfusion.

use super::{Seed, with};

fn word2vec(header: &str, rows: &[(&[u8], [f32; 2])], row_end: &str) -> Vec<u8> {
    let mut file = format!("{header}\n").into_bytes();
    for (word, numbers) in rows {
        file.extend_from_slice(word);
        file.push(b' ');
        file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        file.extend_from_slice(row_end.as_bytes());
    }
    file
}

fn word2vec_seeds() -> Vec<Seed> {
    let line_ends = f32::from_le_bytes([b'\n'; 4]);
    let rows: [(&[u8], [f32; 2]); 2] =
        [(b"the", [1.0, line_ends]), ("café".as_bytes(), [f32::NAN, 0.5])];
    let whole = word2vec("2 2", &rows, "\n");
    let cut = word2vec("2 2", &[(&[b'x'; 20], [1.0, 2.0]), (b"of", [3.0, 4.0])], "");
    let named = [
        ("line-ends", whole.clone()),
        ("no-line-ends", word2vec("2 2", &rows, "")),
        ("cut-numbers", cut[..cut.len() - 3].to_vec()),
        ("cut-word", cut[..cut.len() - 9].to_vec()),
        ("cut-rows", whole[..18].to_vec()),
        ("header-low", word2vec("1 2", &rows, "\n")),
        ("header-high", word2vec("3 2", &rows, "\n")),
        ("header-absurd", word2vec("1000000000000000000 1000000000", &rows, "\n")),
        ("header-overflow", word2vec("123456789012345678901234 300", &rows, "\n")),
        ("header-largest", word2vec("18446744073709551615 1", &rows, "\n")),
        ("header-wrapping", word2vec("4611686018427387904 4", &rows, "\n")),
        ("header-alone", b"1 2".to_vec()),
        ("header-endless", vec![b'7'; 300]),
        ("no-header", b"no header\n".to_vec()),
        ("no-rows", b"0 2\n".to_vec()),
        ("empty-word", word2vec("1 2", &[(b"", [1.0, 2.0])], "\n")),
        ("not-utf8", word2vec("1 2", &[(b"\xff\xfe", [1.0, 2.0])], "\n")),
        ("twice", word2vec("2 2", &[(b"a", [1.0, 2.0]), (b"a", [0.0, 0.0])], "\n")),
        ("endless-word", [b"1 1\n".as_slice(), &[b'x'; 1100]].concat()),
        ("empty", Vec::new()),
    ];
    named.map(|(name, file)| ("import_w2v_bin", name, file)).into()
}

/// The numbers of a fastText model of two dimensions; every field is what the file says.
struct FastText {
    head: [i32; 17],
    entries: Vec<(&'static [u8], i64, u8)>,
    pruned: i64,
    quantised: u8,
    shape: (i64, i64),
}

/// Where fields stand in `FastText::head`.
const VERSION: usize = 1;
const DIM: usize = 2;
const LOSS: usize = 8;
const MODEL: usize = 9;
const BUCKET: usize = 10;
const MINN: usize = 11;
const MAXN: usize = 12;
const ENTRIES: usize = 14;
const WORDS: usize = 15;
const LABELS: usize = 16;

impl FastText {
    fn tiny() -> Self {
        let head = [793_712_314, 12, 2, 5, 5, 1, 5, 1, 2, 2, 4, 2, 3, 100, 4, 3, 1];
        let entries: Vec<(&[u8], i64, u8)> = vec![
            (b"</s>", 9, 0),
            (b"cat", 7, 0),
            ("größe".as_bytes(), 2, 0),
            (b"__label__x", 1, 1),
        ];
        Self { head, entries, pruned: -1, quantised: 0, shape: (7, 2) }
    }

    fn changed(change: impl FnOnce(&mut Self)) -> Vec<u8> {
        let mut model = Self::tiny();
        change(&mut model);
        let mut out: Vec<u8> = model.head[..14].iter().flat_map(|n| n.to_le_bytes()).collect();
        out.extend(0.0001_f64.to_le_bytes());
        out.extend(model.head[14..].iter().flat_map(|n| n.to_le_bytes()));
        out.extend(404_i64.to_le_bytes());
        out.extend(model.pruned.to_le_bytes());
        for (word, count, kind) in &model.entries {
            out.extend_from_slice(word);
            out.push(0);
            out.extend(count.to_le_bytes());
            out.push(*kind);
        }
        out.push(model.quantised);
        out.extend([model.shape.0, model.shape.1].iter().flat_map(|n| n.to_le_bytes()));
        out.extend((0..14).flat_map(|n| (n as f32 - 6.5).to_le_bytes()));
        out.push(0);
        out.extend([1_i64, 2].iter().flat_map(|n| n.to_le_bytes()));
        out.extend([0; 8]);
        out
    }
}

fn fasttext_seeds() -> Vec<Seed> {
    let whole = FastText::changed(|_| {});
    let named = [
        ("cut-output", whole[..whole.len() - 5].to_vec()),
        ("cut-matrix", whole[..whole.len() - 60].to_vec()),
        ("cut-dictionary", whole[..110].to_vec()),
        ("skip-gram", whole),
        ("supervised-11", FastText::changed(|m| (m.head[VERSION], m.head[MODEL]) = (11, 3))),
        ("version-13", FastText::changed(|m| m.head[VERSION] = 13)),
        ("no-magic", FastText::changed(|m| m.head[0] = 100)),
        ("dim-negative", FastText::changed(|m| m.head[DIM] = -1)),
        ("dim-largest", FastText::changed(|m| m.head[DIM] = i32::MAX)),
        ("loss-unknown", FastText::changed(|m| m.head[LOSS] = 9)),
        ("model-unknown", FastText::changed(|m| m.head[MODEL] = 0)),
        ("no-buckets", FastText::changed(|m| (m.head[BUCKET], m.shape.0) = (0, 3))),
        ("buckets-negative", FastText::changed(|m| m.head[BUCKET] = i32::MIN)),
        (
            "buckets-largest",
            FastText::changed(|m| {
                (m.head[BUCKET], m.shape.0) = (i32::MAX, i64::from(i32::MAX) + 3);
            }),
        ),
        ("no-ngrams", FastText::changed(|m| (m.head[MINN], m.head[MAXN]) = (0, 0))),
        ("ngrams-from-0", FastText::changed(|m| m.head[MINN] = 0)),
        ("ngrams-reversed", FastText::changed(|m| (m.head[MINN], m.head[MAXN]) = (6, 2))),
        ("ngrams-longest", FastText::changed(|m| m.head[MAXN] = i32::MAX)),
        ("entries-wrong", FastText::changed(|m| m.head[ENTRIES] = 5)),
        (
            "entries-largest",
            FastText::changed(|m| {
                (m.head[ENTRIES], m.head[WORDS]) = (i32::MAX, i32::MAX - 1);
            }),
        ),
        (
            "entries-overflow",
            FastText::changed(|m| {
                (m.head[ENTRIES], m.head[WORDS], m.head[LABELS]) = (-2, i32::MAX, i32::MAX);
            }),
        ),
        ("pruned", FastText::changed(|m| m.pruned = 12)),
        ("pruned-negative", FastText::changed(|m| m.pruned = i64::MIN)),
        ("quantised", FastText::changed(|m| m.quantised = 1)),
        (
            "ftz-pruned",
            include_bytes!("../../../crates/pack/tests/data/fasttext/pruned.ftz").to_vec(),
        ),
        (
            "ftz-whole",
            include_bytes!("../../../crates/pack/tests/data/fasttext/whole.ftz").to_vec(),
        ),
        ("shape-absurd", FastText::changed(|m| m.shape = (i64::MAX, i64::MAX))),
        ("shape-negative", FastText::changed(|m| m.shape = (-7, -2))),
        ("count-negative", FastText::changed(|m| m.entries[1].1 = -7)),
        ("label-among-words", FastText::changed(|m| m.entries[1].2 = 1)),
        ("empty-word", FastText::changed(|m| m.entries[1].0 = b"")),
        ("not-utf8", FastText::changed(|m| m.entries[1].0 = b"\xff\xc3\x80")),
        ("endless-word", FastText::changed(|m| m.entries[1].0 = &[b'x'; 1100])),
        ("empty", Vec::new()),
    ];
    named.map(|(name, file)| ("import_fasttext", name, file)).into()
}

fn finalfusion_seeds() -> Vec<Seed> {
    let simple =
        include_bytes!("../../../crates/pack/tests/data/finalfusion/simple.fifu").as_slice();
    let fasttext =
        include_bytes!("../../../crates/pack/tests/data/finalfusion/fasttext.fifu").as_slice();
    let hashed =
        include_bytes!("../../../crates/pack/tests/data/finalfusion/hashed.fifu").as_slice();
    // Words are counted in eight bytes and begin with `the`, behind its length in four.
    let words = [&4_u64.to_le_bytes()[..], &3_u32.to_le_bytes(), b"the"].concat();
    let counted = |count: u64| {
        with(simple, &words, &[&count.to_le_bytes()[..], &3_u32.to_le_bytes(), b"the"].concat())
    };
    let length = |length: u32| {
        let told = [&4_u64.to_le_bytes()[..], &length.to_le_bytes(), b"the"].concat();
        with(simple, &words, &told)
    };
    let matrix = [&4_u64.to_le_bytes()[..], &3_u32.to_le_bytes(), &10_u32.to_le_bytes()].concat();
    let shaped = |rows: u64, columns: u32| {
        let shape = [&rows.to_le_bytes()[..], &columns.to_le_bytes(), &10_u32.to_le_bytes()];
        with(simple, &matrix, &shape.concat())
    };
    let named = [
        ("words", simple.to_vec()),
        ("fasttext", fasttext.to_vec()),
        ("hashed", hashed.to_vec()),
        ("words-absurd", counted(1_000_000_000_000_000_000)),
        ("words-5-million", counted(5_000_000)),
        ("word-absurd", length(u32::MAX)),
        ("matrix-absurd", shaped(1_000_000_000_000_000_000, 1_000_000_000)),
        ("matrix-wrapping", shaped(1 << 62, 4)),
        ("matrix-no-columns", shaped(4, 0)),
        ("chunks-absurd", [b"FiFu\0\0\0\0".as_slice(), &u32::MAX.to_le_bytes()].concat()),
        ("no-chunks", b"FiFu\0\0\0\0\0\0\0\0".to_vec()),
        ("version-1", with(simple, b"FiFu\0", b"FiFu\x01")),
        ("cut-in-half", simple[..simple.len() / 2].to_vec()),
        ("cut-one-byte", fasttext[..fasttext.len() - 1].to_vec()),
        ("empty", Vec::new()),
    ];
    named.map(|(name, file)| ("import_finalfusion", name, file)).into()
}

pub(super) fn seeds() -> Vec<Seed> {
    [word2vec_seeds(), fasttext_seeds(), finalfusion_seeds()].concat()
}
