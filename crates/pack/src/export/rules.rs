//! The rules that cut texts into words, told in components of the tokenizers library: normalizers that
//! replace what regular expressions find, and pre-tokenizers that split.
//!
//! Regular expressions decide by what stands near, so most rules come out the same; those that need a
//! look at the vocabulary, or at what a whole stretch of text is, do not, and are named in
//! [`Rules::left_behind`]. The expressions use only what both engines of that library know.

use cognate::text;
use cognate::text::{
    Accents, Case, Cjk, Contractions, Controls, Cues, Elongations, Emoji, Entities, Hashtags,
    Initials, Mentions, Normalisation, Numbers, Punctuation, Urls,
};
use serde_json::{Value, json};

/// Characters that are not meant to be seen; the joiners among them hold emoji together.
const IGNORABLE: &str = r"[\x{AD}\x{34F}\x{61C}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{200B}-\x{200F}\x{202A}-\x{202E}\x{2060}-\x{206F}\x{20E3}\x{3164}\x{FE00}-\x{FE0F}\x{FEFF}\x{FFA0}\x{FFF0}-\x{FFF8}\x{E0000}-\x{E0FFF}]";
const HAN: &str =
    r"\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}\x{F900}-\x{FAFF}\x{20000}-\x{2CEAF}\x{2F800}-\x{2FA1F}";
/// The endings that the Penn Treebank splits off.
const ENDINGS: &str = "'s|'m|'d|'re|'ve|'ll";

pub(super) struct Rules {
    pub(super) normalizers: Vec<Value>,
    pub(super) pre_tokenizers: Vec<Value>,
    /// What they do not do.
    pub(super) left_behind: Vec<&'static str>,
}

impl Rules {
    /// The components for a model's rules.
    pub(super) fn of(rules: &Normalisation) -> Self {
        let mut made =
            Self { normalizers: Vec::new(), pre_tokenizers: Vec::new(), left_behind: Vec::new() };
        made.characters(rules);
        made.web(rules);
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

    /// What becomes of characters wherever they stand.
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

    /// An entity that is a mark separates where marks are dropped, and all of those take one
    /// expression. `&amp;` comes last, so that nothing is decoded twice.
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

    /// Addresses, names and hashtags.
    fn web(&mut self, rules: &Normalisation) {
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

    /// What becomes of single words before they are cut out.
    fn words(&mut self, rules: &Normalisation) {
        if rules.initials == Initials::Join {
            // The full stop after a single letter, or after one that another stands before.
            let first = r"(?<=[A-Za-z])(?<![\p{L}\p{N}\p{M}.'_@][A-Za-z])";
            let later = r"(?<=[A-Za-z]\.[A-Za-z])(?<![\p{L}\p{N}\p{M}.'_@][A-Za-z]\.[A-Za-z])";
            let before = r"(?=[A-Za-z](?:\.[A-Za-z])*(?!\.?[\p{L}\p{N}\p{M}@_]))";
            self.replace(&format!(r"(?:{first}|{later})\.{before}"), "");
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

    /// Keeps words and, where they count, marks; the rest goes.
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
