//! Laws that hold for any text under any rules: tokens of tokens are the same tokens, spans point
//! into the input in order, the output is bounded, composed and decomposed text agree, and nothing
//! takes more than linear time.

use proptest::prelude::*;
use proptest::sample::select;
use unicode_normalization::UnicodeNormalization;

use super::{preset, texts};
use crate::text::classes::LOOKED_AT;
use crate::text::*;

/// Pieces that rules react to, so that random texts of them meet every rule and its neighbours, and
/// long texts of one of them every loop.
const PIECES: &[&str] = &[
    "#",
    "##",
    "@",
    "'",
    "’",
    "ʼ",
    ".",
    ",",
    ":",
    ";",
    "!",
    "?",
    "_",
    "-",
    "/",
    "(",
    ")",
    "*",
    "|",
    "<",
    ">",
    "\"",
    "&",
    " ",
    "\n",
    "\u{1}",
    "a",
    "a.b.'",
    "B",
    "so",
    "ooo",
    "S",
    "D",
    "p",
    "n't",
    "'s",
    "'ll",
    "'VE",
    "don",
    "0",
    "1",
    "23",
    "456",
    "²",
    "½",
    "٣",
    "http",
    "https://",
    "://",
    "www.",
    "t.co/",
    "bit.ly/x",
    "&amp;",
    "&lt;",
    "amp;",
    "&#39;",
    "&#x27;",
    "&nbsp;",
    "#39;",
    "lt;",
    "<url>",
    "<user>",
    "<elong>",
    "<3",
    ":)",
    ":-p",
    "é",
    "e\u{301}",
    "É",
    "\u{301}",
    "\u{307}",
    "\u{338}",
    "\u{345}",
    "İ",
    "ı",
    "Σ",
    "σ",
    "ς",
    "ß",
    "ẞ",
    "ǅ",
    "ﬁ",
    "ﷺ",
    "ŉ",
    "´",
    "＃",
    "＠",
    "＆",
    "ａ",
    "Ａ",
    "K",
    "日",
    "本",
    "々",
    "가",
    "\u{1100}",
    "\u{1161}",
    "\u{11A8}",
    "か",
    "\u{3099}",
    "हि",
    "\u{93F}",
    "\u{9C7}",
    "\u{9BE}",
    "\u{200D}",
    "\u{FE0F}",
    "\u{20E3}",
    "\u{200B}",
    "\u{AD}",
    "😀",
    "👩",
    "👍",
    "🏽",
    "🇩",
    "🇪",
    "❤",
    "©",
    "™",
    "€",
    "🏴",
    "\u{E0067}",
    "\u{E007F}",
    "…",
    "‼",
    "“",
    "”",
    "‘",
    "–",
    "—",
    "a.",
    "a.'",
    "A",
    "1.",
    "1,1a",
    "#a",
    "#_",
    "@a_",
    "a'",
    "&a",
    ":d",
    "http://",
    "http://a&",
    "か\u{3099}",
    "😀\u{200D}",
    "#A日1",
    "aB",
    "ᄒZ",
    "\u{660}",
    "\u{202E}",
    "ﬃ",
    "ſ",
    "ำ",
    "&#x41;",
    "U.S.",
    "oo",
    ".com",
];

fn rich() -> impl Strategy<Value = String> {
    proptest::collection::vec(select(PIECES), 0..24).prop_map(|pieces| pieces.concat())
}

fn any_text() -> impl Strategy<Value = String> {
    // Marks close together, because what they mean depends on what stands beside them.
    let marks = "[ aUs1.'…“–’&@#:/]{0,24}";
    let headlines = "([A-Z]{2,4} ?){0,3}[: ]([A-Za-zÉ]{1,4} ){0,5}([|–-] ([A-Z.]?[a-z]{1,3} ?){1,5}){0,3}(http://t[.]co/x)?";
    prop_oneof![3 => rich(), 1 => "\\PC{0,24}", 1 => any::<String>(), 2 => marks, 1 => headlines]
}

prop_compose! {
    fn some_rules()(
        case in select(Case::ALL), accents in select(Accents::ALL),
        entities in select(Entities::ALL), controls in select(Controls::ALL),
        contractions in select(Contractions::ALL), numbers in select(Numbers::ALL),
        urls in select(Urls::ALL), mentions in select(Mentions::ALL),
        hashtags in select(Hashtags::ALL), punctuation in select(Punctuation::ALL),
        (emoji, elongations) in (select(Emoji::ALL), select(Elongations::ALL)),
        (cues, cjk, initials) in (select(Cues::ALL), select(Cjk::ALL), select(Initials::ALL)),
        bylines in select(Bylines::ALL),
    ) -> Normalisation {
        Normalisation {
            tokeniser: TOKENISER, case, accents, entities, controls, contractions, initials, numbers, urls,
            mentions, hashtags, punctuation, emoji, elongations, cues, cjk, bylines,
        }
    }
}

fn is_idempotent(rules: &Normalisation, input: &str) -> Result<(), TestCaseError> {
    let once = texts(rules, input);
    prop_assert_eq!(&texts(rules, &once.join(" ")), &once, "{:?} under {:?}", input, rules);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn tokens_joined_by_spaces_are_the_same_tokens(input in any_text()) {
        for name in Normalisation::PRESETS {
            is_idempotent(&preset(name), &input)?;
        }
    }

    #[test]
    fn so_they_are_under_any_rules(mut rules in some_rules(), input in any_text()) {
        // Both exceptions, named in the documentation of `Normalisation`.
        if rules.accents == Accents::Strip && rules.contractions == Contractions::Split {
            rules.contractions = Contractions::Keep;
        }
        if rules.punctuation == Punctuation::Keep {
            rules.bylines = Bylines::Keep;
        }
        is_idempotent(&rules, &input)?;
    }

    #[test]
    fn spans_are_in_order_and_the_output_is_bounded(rules in some_rules(), input in any_text()) {
        let mut tokens = Tokens::new();
        tokenise(&rules, &input, &mut tokens);
        let mut bytes = 0;
        let mut last = 0..0;
        for (text, token) in tokens.iter() {
            let span = token.span.start as usize..token.span.end as usize;
            prop_assert!(input.get(span.clone()).is_some_and(|found| !found.is_empty()));
            prop_assert!(last.start <= span.start && last.end <= span.end, "{:?}", input);
            prop_assert!(!text.is_empty() && !text.contains(char::is_whitespace), "{:?}", text);
            bytes += if token.kind == Kind::Tag { 0 } else { text.len() };
            last = span;
        }
        prop_assert!(bytes <= 4 * input.len());
    }

    #[test]
    fn stretches_between_spaces_can_be_cut_alone(rules in some_rules(), input in any_text()) {
        let presets: Vec<_> = Normalisation::PRESETS.iter().map(|name| preset(name)).collect();
        for rules in presets.iter().chain([&rules]) {
            if !rules.writes_tags() {
                let (mut cut, mut whole) = (Tokens::new(), Tokens::new());
                tokenise(rules, &input, &mut cut);
                let part = bylines::headline(rules, &input);
                let input = &input[..part.end];
                whole.begin(input, rules.case == Case::Lower);
                plain::scan_part(rules, &Plain::from_rules(rules), input, part, &mut whole);
                prop_assert!(cut.iter().eq(whole.iter()), "{:?} under {:?}", input, rules);
            }
        }
    }

    #[test]
    fn composed_and_decomposed_text_agree(rules in some_rules(), input in any_text()) {
        // Which of nine marks is dropped depends on the order in which they are written.
        let crowded = input.nfd().collect::<String>().split(|c: char| c.is_alphanumeric())
            .any(|between| between.chars().count() > 8);
        prop_assume!(!crowded);
        let composed: String = input.nfc().collect();
        let decomposed: String = input.nfd().collect();
        prop_assert_eq!(texts(&rules, &composed), texts(&rules, &decomposed));
    }

    #[test]
    fn used_tokens_are_as_good_as_new(first in any_text(), second in any_text()) {
        let rules = preset("glove-twitter");
        let (mut used, mut new) = (Tokens::new(), Tokens::new());
        tokenise(&rules, &first, &mut used);
        tokenise(&rules, &second, &mut used);
        tokenise(&rules, &second, &mut new);
        prop_assert!(used.iter().eq(new.iter()));
    }
}

/// What long texts begin with.
const STARTS: &[&str] = &["", "#a", "é", "@", "http://", "&", "\""];

/// How often a character or byte of the text is looked at, in all.
fn looks(rules: &Normalisation, text: &str, tokens: &mut Tokens) -> usize {
    LOOKED_AT.set(0);
    tokenise(rules, text, tokens);
    LOOKED_AT.get()
}

/// Whether a text four times as long takes about four times the work, whatever it begins with. What takes
/// the square takes sixteen times.
fn check_linear(start: &str, brick: &str) {
    let mut tokens = Tokens::new();
    let presets = Normalisation::PRESETS.iter().map(|name| (*name, preset(name)));
    let headlines = Normalisation { bylines: Bylines::Drop, ..preset("plain") };
    for (name, rules) in presets.chain([("headlines", headlines)]) {
        let [short, long] = [600, 2400].map(|bytes| {
            let text = format!("{start}{}", brick.repeat(bytes / brick.len()));
            looks(&rules, &text, &mut tokens)
        });
        assert!(long <= 5 * short + 1000, "{name}, {start:?}, {brick:?}: {short}, then {long}");
    }
}

#[test]
fn long_runs_of_anything_take_linear_work() {
    for brick in PIECES {
        STARTS.iter().for_each(|start| check_linear(start, brick));
    }
}

proptest! {
    #[test]
    fn long_runs_of_several_things_take_linear_work(
        start in select(STARTS),
        bricks in prop::collection::vec(select(PIECES), 2..6),
    ) {
        check_linear(start, &bricks.concat());
    }
}
