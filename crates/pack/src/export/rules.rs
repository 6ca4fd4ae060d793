//! The tokenisation rules in components of the tokenizers library (normalizers that replace matches
//! of regular expressions, and pre-tokenizers that split), and its vocabulary.
//!
//! Regular expressions see only nearby characters, so most rules can be expressed exactly; rules
//! that depend on the vocabulary or on a whole stretch of text cannot, and are listed in
//! [`Rules::left_behind`]. The expressions use only syntax that both regex engines of that library
//! support.

use std::collections::HashSet;
use std::io;
use std::io::Write;

use cognate::model::phrase::{Found, Origin};
use cognate::model::unknown::Fallback;
use cognate::model::{Model, Phrase, Unknown, WordId};
use cognate::text;
use cognate::text::{
    Accents, Bylines, Case, Cjk, Contractions, Controls, Cues, Elongations, Emoji, Entities,
    Hashtags, Initials, Mentions, Normalisation, Numbers, Punctuation, Urls,
};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::export::Inflections;

/// Invisible characters; the joiners among them hold emoji together.
const IGNORABLE: &str = r"[\x{AD}\x{34F}\x{61C}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{200B}-\x{200F}\x{202A}-\x{202E}\x{2060}-\x{206F}\x{20E3}\x{3164}\x{FE00}-\x{FE0F}\x{FEFF}\x{FFA0}\x{FFF0}-\x{FFF8}\x{E0000}-\x{E0FFF}]";
const HAN: &str =
    r"\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}\x{F900}-\x{FAFF}\x{20000}-\x{2CEAF}\x{2F800}-\x{2FA1F}";
/// How many initials are joined at most: longer rows of them are cut.
const INITIALS: usize = 8;
const ENDINGS: &str = "'s|'m|'d|'re|'ve|'ll";

pub(super) struct Rules {
    pub(super) normalizers: Vec<Value>,
    pub(super) pre_tokenizers: Vec<Value>,
    pub(super) left_behind: Vec<&'static str>,
}

impl Rules {
    pub(super) fn new(rules: &Normalisation) -> Self {
        let mut made =
            Self { normalizers: Vec::new(), pre_tokenizers: Vec::new(), left_behind: Vec::new() };
        made.characters(rules);
        made.add_web_rules(rules);
        made.words(rules);
        made.case(rules);
        made.split(rules);
        made
    }

    fn replace(&mut self, regex: &str, by: &str) {
        let pattern = json!({ "Regex": regex });
        self.normalizers.push(json!({ "type": "Replace", "pattern": pattern, "content": by }));
    }

    fn replace_text(&mut self, text: &str, by: &str) {
        let pattern = json!({ "String": text });
        self.normalizers.push(json!({ "type": "Replace", "pattern": pattern, "content": by }));
    }

    fn normalizer(&mut self, kind: &str) {
        self.normalizers.push(json!({ "type": kind }));
    }

    fn characters(&mut self, rules: &Normalisation) {
        if rules.entities == Entities::Decode {
            self.entities(rules);
        }
        if rules.controls == Controls::Remove {
            self.replace(r"[\x{0}-\x{8}\x{E}-\x{1F}\x{7F}-\x{84}\x{86}-\x{9F}]", "");
        }
        self.replace(IGNORABLE, "");
        self.normalizer("NFKC");
        self.replace(r"[\x{2019}\x{2BC}]", "'");
        if rules.emoji == Emoji::Keep {
            self.left_behind.push("emoji of several characters are cut into those");
        }
    }

    /// Entities. If marks are dropped, an entity that encodes a mark separates words, and one
    /// expression covers all of those. `&amp;` is decoded last, so that nothing is decoded twice.
    fn entities(&mut self, rules: &Normalisation) {
        let mut marks = Vec::new();
        for &(name, c) in text::NAMED_ENTITIES {
            let says_more = c.is_alphanumeric() || matches!(c, '\'' | '’' | '™');
            if !says_more && rules.punctuation == Punctuation::Drop {
                marks.push(name);
            } else if name != "amp" {
                self.replace_text(&format!("&{name};"), &c.to_string());
            }
        }
        for number in ["&#39;", "&#039;", "&#x27;", "&#8217;"] {
            self.replace_text(number, "'");
        }
        self.replace("&#(?:[0-9]{1,7}|[xX][0-9a-fA-F]{1,6});", " ");
        self.left_behind.push(
            "numeric entities (`&#233;`) other than the apostrophe are dropped and not decoded",
        );
        match rules.punctuation {
            Punctuation::Drop => self.replace(&format!("&(?:{});", marks.join("|")), " "),
            Punctuation::Keep => self.replace_text("&amp;", "&"),
        }
    }

    fn add_web_rules(&mut self, rules: &Normalisation) {
        if rules.urls != Urls::Text {
            let hosts: Vec<_> =
                text::SHORTENERS.iter().map(|host| host.replace('.', r"\.")).collect();
            let begin = format!(
                r"(?:https?://|(?<![\p{{L}}\p{{N}}\p{{M}}'])(?:www\.|{}))",
                hosts.join("|")
            );
            self.replace(&format!(r#"(?i){begin}[a-z0-9][!#-;=?-~]*"#), " ");
        }
        if matches!(rules.urls, Urls::Keep | Urls::Tag) {
            self.left_behind.push("web addresses are dropped; the model has an entry for them");
        }
        let name = r"(?<![\p{L}\p{N}\p{M}_])@[A-Za-z0-9_]+";
        match rules.mentions {
            Mentions::Text | Mentions::Word => {}
            Mentions::Drop => self.replace(name, " "),
            Mentions::Keep | Mentions::Tag => {
                self.replace(name, " ");
                self.left_behind.push("@-names are dropped; the model has an entry for them");
            }
        }
        match rules.hashtags {
            Hashtags::Text | Hashtags::Word => {}
            Hashtags::Drop => {
                self.replace(r"(?<![\p{L}\p{N}\p{M}_&])#(?=[\p{N}_]*\p{L})[\p{L}\p{N}\p{M}_]+", " ")
            }
            Hashtags::Split => self.left_behind.push(
                "hashtags are one word (`#NewYork` is newyork); the model cuts them into words",
            ),
            Hashtags::Keep | Hashtags::Tag => self
                .left_behind
                .push("hashtags are one word without `#`; the model marks them as hashtags"),
        }
    }

    fn words(&mut self, rules: &Normalisation) {
        if rules.initials == Initials::Join {
            // A full stop behind initials, where another letter or an ending follows. Both engines look
            // back at texts of fixed lengths alone.
            let letter = "[A-Za-z]";
            let behind = |count: usize| {
                let all = vec![letter; count].join(r"\.") + r"\.";
                format!(
                    r"(?<={all})(?<![\p{{L}}\p{{N}}\p{{M}}._@]{all})(?<![\p{{L}}\p{{N}}\p{{M}}]'{all})"
                )
            };
            let next = format!(r"(?={letter}(?:\.{letter})*(?!\.?[\p{{L}}\p{{N}}\p{{M}}@_]))");
            let ending = match rules.contractions {
                Contractions::Keep => r"|(?='[\p{L}\p{N}])",
                _ => "",
            };
            let first = behind(1);
            let later = (2..=INITIALS).map(behind).collect::<Vec<_>>().join("|");
            self.replace(&format!(r"\.(?:{first}{next}|(?:{later})(?:{next}{ending}))"), "");
        }
        if rules.contractions == Contractions::DropMark {
            self.replace(r"(?<=[\p{L}\p{N}\p{M}])'(?=[\p{L}\p{N}])", "");
        }
        match rules.numbers {
            Numbers::Keep => {}
            Numbers::Zero => self.replace(
                r"(?<![\p{L}\p{N}\p{M}'])\p{N}+(?:[.,]\p{N}+)*(?!'?[\p{L}\p{N}\p{M}])",
                "0",
            ),
            Numbers::Hashes => self.replace(r"\p{N}(?=\p{N})|(?<=\p{N})\p{N}", "#"),
            Numbers::Tag => {
                self.left_behind.push("numbers are words; the model has one entry for all of them");
            }
        }
        match rules.elongations {
            Elongations::Keep => {}
            Elongations::Shorten => self
                .left_behind
                .push("drawn-out words (`sooo`) are unknown; the model shortens them"),
            Elongations::Tag => self
                .left_behind
                .push("drawn-out words (`sooo`) are unknown; the model shortens and marks them"),
        }
        if rules.bylines == Bylines::Drop {
            self.left_behind.push("bylines of headlines are words; the model leaves them out");
        }
        if rules.cues == Cues::Tag {
            self.left_behind.push(
                "smileys, hearts, capitals and repeated marks; the model has entries for them",
            );
        }
    }

    fn case(&mut self, rules: &Normalisation) {
        if rules.accents == Accents::Strip {
            self.normalizer("NFD");
            self.replace(r"\p{Mn}", "");
            self.normalizer("NFC");
        }
        if rules.case == Case::Lower {
            self.normalizer("Lowercase");
            self.replace(r"(?<=i)\x{307}", "");
            self.replace(r"(?<=[\p{L}\p{M}])σ(?!'?[\p{L}\p{N}\p{M}])", "ς");
        }
    }

    /// Keeps words, and punctuation marks if the rules make tokens of them; drops the rest.
    fn split(&mut self, rules: &Normalisation) {
        let single = rules.cjk == Cjk::Single;
        let except = if single { format!("&&[^{HAN}]") } else { String::new() };
        let hidden = if rules.numbers == Numbers::Hashes { "|##+" } else { "" };
        let first = format!(r"(?:[\p{{L}}\p{{N}}{except}]{hidden})");
        let next = format!(r"(?:[\p{{L}}\p{{N}}\p{{M}}{except}]{hidden})");
        let mut word = match rules.contractions {
            Contractions::Apart => format!("{first}{next}*"),
            _ => format!("{first}{next}*(?:'{first}{next}*)*"),
        };
        if single {
            word.push_str(&format!("|[{HAN}]"));
        }
        if rules.punctuation == Punctuation::Keep {
            word.push_str(r"|[\p{P}\p{S}]");
        } else if rules.emoji == Emoji::Keep {
            word.push_str(r"|\p{So}");
        }
        self.pre_tokenizers.push(split(&word, "Removed", true));
        if rules.contractions == Contractions::Split {
            let ending = format!("(?:{ENDINGS}|n't)");
            let after = format!("(?={ending}*$)");
            let parts = format!("(?i)(?<=[^'])n't{after}|(?<=.)(?:{ENDINGS}){after}");
            self.pre_tokenizers.push(split(&parts, "Isolated", false));
        }
    }
}

fn split(regex: &str, behavior: &str, invert: bool) -> Value {
    let pattern = json!({ "Regex": regex });
    json!({ "type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert })
}

#[derive(Serialize)]
struct Tokenizer<'t> {
    version: &'static str,
    truncation: (),
    padding: (),
    /// Empty, so that a text equal to the entry for unknown words is treated as text.
    added_tokens: [(); 0],
    normalizer: Sequence<'t>,
    pre_tokenizer: Sequence<'t>,
    post_processor: (),
    decoder: (),
    model: WordLevel<'t>,
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum Sequence<'t> {
    #[serde(rename = "Sequence")]
    Normalizers { normalizers: &'t [serde_json::Value] },
    #[serde(rename = "Sequence")]
    PreTokenizers { pretokenizers: &'t [serde_json::Value] },
}

#[derive(Serialize)]
struct WordLevel<'t> {
    r#type: &'static str,
    vocab: Vocabulary<'t>,
    unk_token: &'t str,
}

/// The vocabulary from entry to id, serialised without a copy.
struct Vocabulary<'t> {
    model: &'t Model,
    entries: &'t Entries,
}

impl Serialize for Vocabulary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let vocabulary = self.model.vocabulary();
        let names = std::iter::once(self.entries.unknown.as_str())
            .chain(vocabulary.words())
            .chain(self.entries.inflected());
        let mut map = serializer.serialize_map(Some(self.entries.len()))?;
        for (id, name) in names.enumerate() {
            map.serialize_entry(name, &id)?;
        }
        map.end()
    }
}

pub(super) fn write_tokenizer(
    model: &Model,
    entries: &Entries,
    rules: &Rules,
    out: &mut dyn Write,
) -> io::Result<()> {
    let tokenizer = Tokenizer {
        version: "1.0",
        truncation: (),
        padding: (),
        added_tokens: [],
        normalizer: Sequence::Normalizers { normalizers: &rules.normalizers },
        pre_tokenizer: Sequence::PreTokenizers { pretokenizers: &rules.pre_tokenizers },
        post_processor: (),
        decoder: (),
        model: WordLevel {
            r#type: "WordLevel",
            vocab: Vocabulary { model, entries },
            unk_token: &entries.unknown,
        },
    };
    Ok(serde_json::to_writer(out, &tokenizer)?)
}

pub(super) struct Entries {
    /// The entry for unknown words, which is no word of the model. Its id is 0, its row all zeros.
    pub(super) unknown: String,
    words: usize,
    inflected: Vec<(String, WordId)>,
}

impl Entries {
    pub(super) fn new(model: &Model, inflections: Inflections) -> Self {
        let vocabulary = model.vocabulary();
        let mut unknown = "[UNK]".to_owned();
        while vocabulary.lookup(&unknown).is_some() {
            unknown.insert(1, '-');
        }
        let inflected = match (model.unknown(), inflections) {
            (Unknown::Fallback(rules), Inflections::All) => inflected(model, rules),
            _ => Vec::new(),
        };
        Self { unknown, words: vocabulary.len(), inflected }
    }

    /// Number of entries, including the unknown one.
    pub(super) fn len(&self) -> usize {
        self.words.saturating_add(self.inflected.len()).saturating_add(1)
    }

    pub(super) fn word_count(&self) -> usize {
        self.words
    }

    pub(super) fn inflections(&self) -> usize {
        self.inflected.len()
    }

    /// The inflected forms, in the order of the words that they come from.
    pub(super) fn inflected(&self) -> impl Iterator<Item = &str> {
        self.inflected.iter().map(|(form, _)| form.as_str())
    }

    /// The word of each entry in the order of ids; `None` for the unknown entry.
    pub(super) fn word_ids(&self) -> impl Iterator<Item = Option<WordId>> {
        let listed = (0..).take(self.words).map(Some);
        let inflected = self.inflected.iter().map(|(_, word)| Some(*word));
        std::iter::once(None).chain(listed).chain(inflected)
    }
}

/// Every word that a suffix rule maps to a listed word. Rules apply once, so these are the listed
/// words with their suffix changed back.
///
/// The model's own look-up decides whether a form is found, and as which word, so that an entry
/// never differs from the model.
fn inflected(model: &Model, rules: &Fallback) -> Vec<(String, WordId)> {
    let vocabulary = model.vocabulary();
    let mut phrase = Phrase::new(model);
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for (word, text) in (0..).zip(vocabulary.words()) {
        for (suffix, end) in &rules.suffixes {
            let Some(stem) = text.strip_suffix(end.as_str()) else { continue };
            if stem.chars().take(rules.min_stem).count() < rules.min_stem {
                continue;
            }
            let form = format!("{stem}{suffix}");
            if vocabulary.lookup(&form).is_some() || seen.contains(&form) {
                continue;
            }
            phrase.read(&form);
            let by_rule = |only: Origin| matches!(only.found, Found::Stem | Found::Shortened);
            let whole = phrase.tokens().texts().eq([form.as_str()]);
            if whole && phrase.words() == [word] && phrase.origins().all(by_rule) {
                seen.insert(form.clone());
                found.push((form, word));
            }
        }
    }
    found
}
