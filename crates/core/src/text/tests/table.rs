//! Examples to read: for each preset, what becomes of a text, and which bytes of the input each
//! token points back at.

use super::{preset, texts};
use crate::text::{
    Bylines, Cjk, Elongations, Kind, Normalisation, Numbers, Tokens, Urls, tokenise,
};

/// Tokens in one string, apart by spaces, so that a row of the table fits a line.
fn check(name: &str, rows: &[(&str, &str)]) {
    for (input, expected) in rows {
        let expected: Vec<_> = expected.split_whitespace().collect();
        assert_eq!(texts(&preset(name), input), expected, "{name}: {input:?}");
    }
}

#[test]
fn plain_keeps_words_and_drops_everything_else() {
    check(
        "plain",
        &[
            ("", ""),
            ("Hello, World!", "hello world"),
            ("well-known snake_case 3.5%", "well known snake case 3 5"),
            ("don't can’t rock'n'roll O’Neill", "don't can't rock'n'roll o'neill"),
            ("'tis the dogs' 'quoted' ''", "tis the dogs quoted"),
            ("oʼneill ｏ＇ｎeill", "o'neill o'neill"),
            ("AT&amp;T &lt;3 Tom &#39;n&#x27; Jerry&hellip;", "at t 3 tom n jerry"),
            ("a&nbsp;b &unknown; &amp", "a b unknown amp"),
            ("it&#8217;s", "it's"),
            ("L.A.!! U.S. e.g. i.e., p.m", "la us eg ie pm"),
            ("U.S.-led J.K.Rowling A. Smith L.A.'s U.S.A.", "us led j k rowling a smith la's usa"),
            ("a.b.example j.k@x.org 3.5 a.1 ex.a.b", "a b example j k x org 3 5 a 1 ex a b"),
            ("see http://t.co/AbC123 now", "see now"),
            ("(https://a.b/c?d=e&amp;f=g#h).", ""),
            ("HTTP://X.ORG/, www.x.org! t.co/abc pic.twitter.com/x1", ""),
            ("breakinghttp://t.co/x", "breaking"),
            ("http://t.co/xさくら", "さくら"),
            ("http:// www. t.co/ www.", "http www t co www"),
            ("RT @user: hi @x_y! me@mail.org", "rt hi me mail org"),
            ("＠user ＃FullWidth", "full width"),
            (
                "#NewYork2020 #LAQuake #iPhone #ABC #a_b #2020",
                "new york 2020 la quake i phone abc a b 2020",
            ),
            ("x#y #ÉtéIndien #東京Tower", "x y été indien 東京 tower"),
            ("😀 great 👍🏽 ❤️ 1️⃣", "great 1"),
            ("soooo goood", "soooo goood"),
            (
                "zero\u{200B}width soft\u{AD}hyphen \u{FEFF}bom \u{202E}bidi",
                "zerowidth softhyphen bom bidi",
            ),
            ("ＦＵＬＬ ﬁne Ⅷ ½ x²", "full fine viii 1 2 x2"),
            ("İstanbul ISTANBUL", "istanbul istanbul"),
            ("ΟΔΟΣ Σ ΣΑΣ'Σ", "οδος σ σασ'ς"),
            ("tab\tline\nnul\0byte", "tab line nul byte"),
            ("naïve Crème e\u{301}te\u{301}", "naïve crème été"),
            ("हिन्दी में", "हिन्दी में"),
            ("日本語 한국어", "日本語 한국어"),
        ],
    );
}

#[test]
fn initials_and_their_ending_are_spelled_as_one_word() {
    let rules = Normalisation { numbers: Numbers::Hashes, cjk: Cjk::Single, ..preset("plain") };
    assert_eq!(texts(&rules, "L.A.'S U.S.'Σ U.S.'12"), ["la's", "us'ς", "us'##"]);
    assert_eq!(texts(&rules, "U.S.'日本"), ["us", "日", "本"]);
    let rules = Normalisation { elongations: Elongations::Tag, ..rules };
    assert_eq!(texts(&rules, "AAA A.A.A."), ["a", "<elong>", "a", "<elong>"]);
}

#[test]
fn bylines_and_labels_are_left_out_where_the_rules_say_so() {
    let rules = Normalisation { bylines: Bylines::Drop, ..preset("plain") };
    for (input, expected) in [
        ("Quake hits Lima – Reuters", "quake hits lima"),
        ("Quake hits Lima - The New York Times", "quake hits lima"),
        ("Quake hits Lima - Times of India http://t.co/x www.x.org", "quake hits lima"),
        ("Quake hits Lima | bbc news", "quake hits lima"),
        ("Quake hits Lima | World | cnn.com", "quake hits lima"),
        ("BREAKING NEWS: Quake hits Lima - @user", "quake hits lima"),
        ("ÚLTIMA HORA: sismo sacude Lima", "sismo sacude lima"),
        // None of these is one.
        ("Quake hits Lima - in pictures", "quake hits lima in pictures"),
        ("Quake hits Lima - Peru on May 14", "quake hits lima peru on may 14"),
        ("Quake hits Lima-Reuters", "quake hits lima reuters"),
        ("Lima quake - Reuters", "lima quake reuters"),
        ("LIVE: QUAKE HITS LIMA", "live quake hits lima"),
        ("Live: Quake hits Lima", "live quake hits lima"),
        ("THE BIG STORY: Quake hits Lima", "the big story quake hits lima"),
        ("Score 3:2 at home", "score 3 2 at home"),
    ] {
        assert_eq!(texts(&rules, input).join(" "), expected, "{input}");
    }
    let (mut tokens, input) = (Tokens::new(), "LIVE: Quake hits L.A. | X");
    tokenise(&rules, input, &mut tokens);
    let spans =
        tokens.iter().map(|(_, token)| &input[token.span.start as usize..token.span.end as usize]);
    assert_eq!(spans.collect::<Vec<_>>(), ["Quake", "hits", "L.A."]);
}

#[test]
fn glove_6b_splits_contractions_as_the_treebank_does() {
    check(
        "glove-6b",
        &[
            ("Don't panic, it's OK", "do n't panic it 's ok"),
            ("they'll should've I'm we'd you’re", "they 'll should 've i 'm we 'd you 're"),
            ("shouldn't've", "should n't 've"),
            ("the 1990's and dogs'", "the 1990 's and dogs"),
            ("do n't it 's 'tis", "do n't it 's tis"),
            ("o'neill rock'n'roll", "o'neill rock'n'roll"),
        ],
    );
}

#[test]
fn glove_twitter_writes_tags() {
    check(
        "glove-twitter",
        &[
            ("@Bob see http://t.co/x, 3 times", "<user> see <url> , <number> times"),
            ("1,000.50 at 12:30 covid19", "<number> at <number> covid19"),
            ("#NewYork2020 #BREAKING", "<hashtag> new york <number> <hashtag> breaking <allcaps>"),
            ("soooo COOL!!! WAYYYY", "so <elong> cool <allcaps> ! <repeat> way <allcaps> <elong>"),
            (
                ":) :-( ;D :p =/ <3 :day",
                "<smile> <sadface> <smile> <lolface> <neutralface> <heart> : day",
            ),
            ("really?!... I", "really . <repeat> i"),
            ("<url> <User> <b>", "<url> <user> < b >"),
            ("I love it 😂👍🏽", "i love it 😂 👍🏽"),
            ("don't", "don't"),
        ],
    );
}

#[test]
fn word2vec_news_hides_digits_and_keeps_case() {
    check(
        "word2vec-news",
        &[
            ("In 2020 COVID19 hit 5 of 10", "In #### COVID## hit 5 of ##"),
            ("1,000 #12 ## ###a ٢٠٢٠", "1 ### ## ## ###a ####"),
            ("#LAQuake2011", "LA Quake ####"),
        ],
    );
}

#[test]
fn fasttext_keeps_case() {
    check("fasttext", &[("The İzmir DON'T", "The İzmir DON'T"), ("Σοφός ΣΑΣ", "Σοφός ΣΑΣ")]);
}

#[test]
fn deboom_drops_marks_and_zeroes_numbers() {
    check(
        "deboom",
        &[
            ("Don't pay $1,000.50 in 2020!", "dont pay 0 in 0"),
            ("1,000.5km covid19 1.2.x 3'4", "0 5km covid19 0 x 0"),
            ("@me http://a.b #NewYork #new_york", "newyork new york"),
            // Jamo that lose the apostrophe between them compose.
            ("가'\u{11A8}", "각"),
        ],
    );
}

#[test]
fn bert_cuts_at_every_mark_and_drops_nothing() {
    check(
        "bert",
        &[
            ("Don't! @user #tag", "don ' t ! @ user # tag"),
            ("http://a.b", "http : / / a . b"),
            ("Crème BRÛLÉE Ångström", "creme brulee angstrom"),
            ("日本語abc", "日 本 語 abc"),
            ("a\u{1}b\u{7F}c &amp; 1.5", "abc & amp ; 1 . 5"),
            ("café́ 😀", "cafe 😀"),
        ],
    );
}

#[test]
fn xlm_r_keeps_case_and_every_mark() {
    check(
        "xlm-r",
        &[
            ("Don't! @user #Tag", "Don ' t ! @ user # Tag"),
            ("Crème BRÛLÉE, 日本語。", "Crème BRÛLÉE , 日本語 。"),
            ("Ｆｕｌｌ ﬁ &amp; 1.5", "Full fi & amp ; 1 . 5"),
        ],
    );
}

#[test]
fn emoji_clusters_are_one_token_each() {
    let rows = [
        ("👨‍👩‍👧‍👦👍🏽", vec!["👨‍👩‍👧‍👦", "👍🏽"]),
        ("🇩🇪🇫🇷🇯", vec!["🇩🇪", "🇫🇷", "🇯"]),
        ("❤️❤", vec!["❤️", "❤"]),
        ("1️⃣#⃣12⃣", vec!["1️⃣", "#⃣", "<number>"]),
        ("🏴󠁧󠁢󠁥󠁮󠁧󠁿!", vec!["🏴󠁧󠁢󠁥󠁮󠁧󠁿", "!"]),
        ("😀\u{200D}a b\u{200D}c", vec!["😀", "a", "bc"]),
    ];
    for (input, expected) in rows {
        assert_eq!(texts(&preset("glove-twitter"), input), expected);
    }
    let family = ["👩"; 20].join("\u{200D}");
    let longest = texts(&preset("glove-twitter"), &family);
    assert_eq!(longest.len(), 3);
    assert!(longest.iter().all(|cluster| cluster.chars().count() <= 16));
}

#[test]
fn at_most_eight_marks_stay_on_a_letter() {
    let zalgo = format!("x{}y", "\u{33F}".repeat(1000));
    assert_eq!(texts(&preset("plain"), &zalgo), [format!("x{}y", "\u{33F}".repeat(8))]);
}

#[test]
fn spans_point_back_at_the_input() {
    let mut tokens = Tokens::new();
    let mut spans = |name: &str, input: &str| -> Vec<(String, String)> {
        tokenise(&preset(name), input, &mut tokens);
        let found = tokens.iter().map(|(text, token)| {
            let span = token.span.start as usize..token.span.end as usize;
            (text.to_owned(), input[span].to_owned())
        });
        found.collect()
    };
    let pairs = |rows: &[(&str, &str)]| -> Vec<(String, String)> {
        rows.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect()
    };
    assert_eq!(spans("plain", "¡Don’t! ﬁne"), pairs(&[("don't", "Don’t"), ("fine", "ﬁne")]));
    assert_eq!(
        spans("plain", "&eacute;t&eacute; x"),
        pairs(&[("été", "&eacute;t&eacute;"), ("x", "x")])
    );
    assert_eq!(
        spans("plain", "so\u{AD}ft ½"),
        pairs(&[("soft", "so\u{AD}ft"), ("1", "½"), ("2", "½")])
    );
    assert_eq!(spans("plain", "#LAQuake"), pairs(&[("la", "LA"), ("quake", "Quake")]));
    assert_eq!(spans("glove-6b", "Don't"), pairs(&[("do", "Do"), ("n't", "n't")]));
    assert_eq!(
        spans("glove-twitter", "é #Wow wayyy 12:30 @me"),
        pairs(&[
            ("é", "é"),
            ("<hashtag>", "#"),
            ("wow", "Wow"),
            ("way", "wayyy"),
            ("<elong>", "wayyy"),
            ("<number>", "12:30"),
            ("<user>", "@me"),
        ])
    );
}

#[test]
fn kinds_say_what_a_token_was() {
    let rules = Normalisation { urls: Urls::Keep, ..preset("glove-twitter") };
    let mut tokens = Tokens::new();
    tokenise(&rules, "hi http://t.co/Xy. 😀 @me", &mut tokens);
    let kinds: Vec<_> = tokens.iter().map(|(text, token)| (text, token.kind)).collect();
    let expected = [
        ("hi", Kind::Word),
        ("http://t.co/xy", Kind::Url),
        (".", Kind::Punctuation),
        ("😀", Kind::Emoji),
        ("<user>", Kind::Tag),
    ];
    assert_eq!(kinds, expected);
    tokenise(&preset("plain"), "route 66", &mut tokens);
    assert_eq!(tokens.text(1), "66");
    assert_eq!(tokens.iter().last().map(|(_, token)| token.kind), Some(Kind::Number));
}
