//! Seeds that are text: for the tokeniser, phrases, counts, and rows a line.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::Seed;

/// Preset 0 to 7 in the first byte, then a text.
#[rustfmt::skip]
const TOKENIZER: [(&str, u8, &str); 22] = [
    ("tweet", 1, "RT @user: Don’t miss #NewYork2020 http://t.co/x &amp; more… :) <3"),
    ("tags", 2, "<url> <user> sooooo LOUD!!! 1,234.5 :-p #tag_A1 @me bit.ly/x"),
    ("penn", 1, "don't we'll he's I'd cannot 's n't o'neill’s"),
    ("digits", 3, "In 2013 1st 3.14 ½ ٣ 1.000.000"),
    ("bert", 6, "Café \u{301}é naïve 東京 がか\u{3099} ﷺ ŉ ﬁ"),
    ("xlm-r", 7, "L'été à Zürich, «Größe» 日本語。 #Tag @x_y"),
    ("deboom", 5, "Don't #HashTag 007 x-ray"),
    ("fasttext", 4, "Größe СЛОВО İstanbul ΣΑΣ ẞ ǅ"),
    ("emoji", 2, "👩\u{200D}🚀👍🏽🇩🇪❤\u{FE0F}🏴\u{E0067}\u{E007F}1\u{20E3}😀"),
    ("entities", 0, "&#39;&#x27;&nbsp;&lt;3 &amp;amp; &#39 &#xFFFFFFFF; &#0;"),
    ("marks", 6, "a\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}"),
    ("hangul", 0, "\u{1100}\u{1161}\u{11A8} 가 ᄀ"),
    ("controls", 6, "a\0b\u{7}c\u{AD}d\u{200B}e\u{85}f\u{A0}g\tx\r\ny"),
    ("full-width", 2, "＃ｔａｇ ＠ｎａｍｅ ＆ａｍｐ； Ａ１"),
    ("addresses", 0, "www.example.com/a?b=c#d https://x.y ://z t.co/ http:// a@b.c"),
    ("elongated", 0, "soooooo goooood yaaaay !!!!????"),
    ("only-marks", 5, "... --- ''' \"\" ‼ ⁉ €™©"),
    ("apostrophes", 0, "'''a'b''c''' 'tis rock'n'roll l'été"),
    ("initials", 0, "U.S.'Σ i.e.'12"),
    ("smileys", 2, ":) :-( 8-D ;p :d xD <3 </3 (: :'("),
    ("hash-marks", 2, "## #_ #1 #日本語 #a日1 ##a"),
    ("nothing", 0, ""),
];

#[rustfmt::skip]
const PHRASES: [(&str, u8, &str); 9] = [
    ("listed", 0, "The quake hits the new city of York"),
    ("stems", 0, "Quakes hitting cities, o'neill's town's ÜBER"),
    ("hashed", 0, "xyzzy sooo 東京"),
    ("ngrams", 1, "unseen größer words </s> quakequake"),
    ("pieces", 2, "earthquakes newtown yorkcity zzz"),
    ("pieces-fail", 2, "newx xnew 東"),
    ("elongated", 1, "theee quaaaake!!"),
    ("long-word", 1, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("nothing", 0, "!!!"),
];

/// 0 a table, 1 lines as documents, 2 paragraphs as documents.
#[rustfmt::skip]
const COUNTS: [(&str, u8, &[u8]); 12] = [
    ("table", 0, b"the\t900\nquake\t60\nzebra\t40\n"),
    ("table-spaces", 0, b"new york 7\nthe 1\r\nthe 2\r\n"),
    ("table-largest", 0, b"the\t18446744073709551615\nquake\t18446744073709551615\n"),
    ("table-zeros", 0, b"the\t0\nquake\t0\n"),
    ("table-odd-lines", 0, b"the\nthe\t\nthe\tx\nthe\t-1\n\t5\nthe\t1.5\n\nquake\t3\n"),
    ("table-not-utf8", 0, b"caf\xe9\t3\nthe\t\xff\n\xf0\x9f\x98 4\n"),
    ("corpus-lines", 1, b"The quake hit the CITY.\nNew York: the city!\n\nquake quake\n"),
    ("corpus-paragraphs", 2, b"the quake\nthe city\n\n\n \nnew york\n"),
    ("corpus-not-utf8", 1, b"the \xff\xfe quake \xe6\x9d\xb1\n"),
    ("corpus-unlisted", 1, b"zebra zebra\n"),
    ("corpus-empty", 2, b"\n \n\n"),
    ("nothing", 0, b""),
];

/// Rows for both text formats: what has no header is GloVe's.
#[rustfmt::skip]
const ROWS: [(&str, &[u8]); 22] = [
    ("plain", b"the 0.5 -1\nof 1e-3 2\n"),
    ("header", b"2 2\nthe 0.5 -1\nof 1e-3 2\n"),
    ("header-low", b"1 2\nthe 0.5 -1\nof 1e-3 2\n"),
    ("header-high", b"3 2\nthe 0.5 -1\nof 1000 2000\n"),
    ("header-absurd", b"1000000000000000000 1000000000\na 1\n"),
    ("header-overflow", b"99999999999999999999 99999999999999999999\na 1\n"),
    ("header-largest", b"18446744073709551615 4294967295\na 1 2 3 4\n"),
    ("header-no-dims", b"3 0\na\nb\nc\n"),
    ("header-no-rows", b"0 2\n"),
    ("returns", b"\xef\xbb\xbf2 2 \r\nthe 0.5 -1 \r\nof 1e-3 2 \r\n\r\n"),
    ("blanks-in-words", b". . . 1 2\na\xc2\xa0b 1 2\n\xc2\x85 1 2\nat name@domain.com 1 2\n"),
    ("unknown-word", b"<unk> 1 2\n10 1 2\n\tx 3 4\n 5 6\n"),
    ("not-finite", b"2 3\nthe nan inf -inf\nmy nan 1e999 -1e999 1e-999\n"),
    ("short-row", b"2 2\nthe 1 2\nof 1\n"),
    ("long-row", b"the 1 2\nof 1 2 3\n"),
    ("number-first", b"version 2 0.1 0.2\nthe 0.1 0.2\n"),
    ("twice", b"3 1\nthe 1\nthe 2\nthe 3\n"),
    ("blank-line", b"the 1 2\n\nof 1 2\n"),
    ("not-utf8", b"1 2\ncaf\xe9 1 \xff\n"),
    ("no-numbers", b"no numbers here\n"),
    ("no-end", b"2 1\nthe 1\nof 2"),
    ("empty", b""),
];

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn chosen(choice: u8, text: &[u8]) -> Vec<u8> {
    [&[choice], text].concat()
}

pub(super) fn seeds() -> Vec<Seed> {
    let mut seeds: Vec<Seed> = Vec::new();
    let tokenizer = TOKENIZER.map(|(name, preset, text)| ("tokenizer", name, preset, text));
    let phrases = PHRASES.map(|(name, model, text)| ("phrase", name, model, text));
    for (target, name, choice, text) in tokenizer.into_iter().chain(phrases) {
        seeds.push((target, name, chosen(choice, text.as_bytes())));
    }
    seeds.push(("tokenizer", "not-utf8", chosen(0, b"caf\xe9 \xff\xfe\xf0\x9f\x98 ok")));
    for (name, kind, file) in COUNTS {
        seeds.push(("counts", name, chosen(kind, file)));
    }
    seeds.push(("counts", "packed", chosen(1, &gzip(b"the quake\nin the city\n"))));
    let table = compress_to_vec(b"the\t4\nquake\t2\n".as_slice(), CompressionLevel::Fastest);
    seeds.push(("counts", "packed-table", chosen(0, &table)));
    for target in ["import_w2v_text", "import_glove"] {
        for (name, file) in ROWS {
            seeds.push((target, name, file.to_vec()));
        }
        let word = [&b"1 1\n"[..], &[b'x'; 1100], b" 1\n"].concat();
        seeds.push((target, "endless-word", word));
        let header = if target == "import_glove" { &b""[..] } else { b"40 2\n" };
        let rows: String = (0..40).map(|row| format!("word{row} {row} 0.25\n")).collect();
        let rows = [header, rows.as_bytes()].concat();
        let zstd = compress_to_vec(rows.as_slice(), CompressionLevel::Fastest);
        let mut cut = gzip(&rows);
        cut.truncate(cut.len() / 2);
        seeds.push((target, "gzip", gzip(&rows)));
        seeds.push((target, "gzip-members", [gzip(b"a 1\n"), gzip(b"b 2\n")].concat()));
        seeds.push((target, "gzip-cut", cut));
        seeds.push((target, "gzip-bomb", gzip(&[b' '; 200_000])));
        let skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc";
        seeds.push((target, "zstd-skippable", [&skippable[..], &zstd].concat()));
        seeds.push((target, "zstd", zstd));
    }
    seeds
}
