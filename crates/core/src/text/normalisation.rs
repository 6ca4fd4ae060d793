//! The rules of the tokeniser: plain data that a model file carries as JSON, so that packing,
//! training and serving cut text alike. It knows what can be chosen, not how it is done, and the
//! ready-made choices for known vectors are in `presets`.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// The version of the tokeniser that this build implements.
///
/// It changes when the same rules would cut some text differently than before, or when there are
/// more of them. A model packed for any other version is refused, because its words would silently
/// no longer be found.
pub const TOKENISER: u32 = 2;

/// Declares the rules: a field for each choice, which is a small enum with kebab-case names in JSON.
macro_rules! rules {
    ($($(#[$about:meta])* $field:ident: $name:ident { $($(#[$doc:meta])* $value:ident,)+ })+) => {
        /// What to do with each kind of thing that short noisy text contains.
        ///
        /// Every field is written out in JSON and every field is required when it is read, so a model
        /// file never depends on a default that a later version might change; but for `bylines`, which stand
        /// in the file where they are dropped.
        ///
        /// Any choice can be combined with any other. Tokens joined by spaces give the same tokens again,
        /// with two exceptions: [`Accents::Strip`] with [`Contractions::Split`], where an accent on the
        /// letters of a contraction (`don't̀`) hides it the first time, and [`Bylines::Drop`] with
        /// [`Punctuation::Keep`], where spaces come to stand around a dash.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Normalisation {
            /// The version these rules are of: [`TOKENISER`].
            #[serde(deserialize_with = "current")]
            pub tokeniser: u32,
            $($(#[$about])* pub $field: $name,)+
            /// What stands around a headline.
            #[serde(default, skip_serializing_if = "Bylines::are_kept")]
            pub bylines: Bylines,
        }

        $(
            $(#[$about])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
            #[serde(rename_all = "kebab-case")]
            pub enum $name { $($(#[$doc])* $value),+ }

            impl $name {
                /// Every value, in the order of declaration.
                pub const ALL: &[Self] = &[$(Self::$value),+];
            }
        )+
    };
}

rules! {
    /// Upper and lower case.
    case: Case {
        /// Lower-case every token. `İ` becomes `i`; a last sigma becomes `ς`.
        Lower,
        /// Leave the case alone.
        Keep,
    }
    /// Combining marks, alone or as part of a letter.
    accents: Accents {
        /// `café` stays `café`.
        Keep,
        /// `café` becomes `cafe`: every non-spacing mark goes.
        Strip,
    }
    /// HTML entities.
    entities: Entities {
        /// `&amp;` is `&`, `&#39;` is `'`; once, so `&amp;amp;` is `&amp;`.
        Decode,
        /// `&amp;` is an ampersand, a word and a semicolon.
        Keep,
    }
    /// Control characters other than white space.
    controls: Controls {
        /// These characters separate words, as all do that are neither letter nor mark.
        Separate,
        /// They vanish: `a`, U+0001, `b` is the word `ab`.
        Remove,
    }
    /// Apostrophes between word characters. `’`, `ʼ` and `＇` count and are written `'`.
    contractions: Contractions {
        /// `don't` is one token.
        Keep,
        /// As in the Penn Treebank: `do` `n't`, `it` `'s`, `they` `'ll` `'ve`.
        Split,
        /// `don't` becomes `dont`.
        DropMark,
        /// The apostrophe is a mark like any other: `don` `'` `t`.
        Apart,
    }
    /// Two or more single ASCII letters with a full stop after each but perhaps the last: `U.S.`, `e.g.`.
    initials: Initials {
        /// Each letter is a token: `u` `s`.
        Apart,
        /// They are one token without the full stops: `us`, `eg`, `la's`.
        Join,
    }
    /// Numbers and digits. Where numbers are replaced, `1,000.5` is one number; elsewhere the
    /// marks inside separate, as they do between letters.
    numbers: Numbers {
        /// Digits are word characters.
        Keep,
        /// Each number becomes `0`; digits beside letters (`covid19`) stay.
        Zero,
        /// Each run of two or more digits becomes as many `#`, also inside words; a single digit
        /// stays. Runs of two or more `#` in the input are word characters.
        Hashes,
        /// Each number becomes `<number>`; digits beside letters stay. A colon between digits
        /// belongs to the number as well.
        Tag,
    }
    /// Web addresses: those that begin with `http://`, `https://` or `www.`, and the bare ones
    /// of well-known shorteners (`t.co/x`, `pic.twitter.com/x`).
    urls: Urls {
        /// Addresses are cut into words and marks, as other text.
        Text,
        /// One token each.
        Keep,
        /// No token.
        Drop,
        /// `<url>`.
        Tag,
    }
    /// User names: `@` and ASCII letters, digits or `_`, not after a word character.
    mentions: Mentions {
        /// Names are not special: a mark and words.
        Text,
        /// One token with its `@`.
        Keep,
        /// The name without `@`, cut at `_` as any word is.
        Word,
        /// No token.
        Drop,
        /// `<user>`.
        Tag,
    }
    /// Hashtags: `#` and letters, digits or `_`, among them a letter, not after a word character.
    hashtags: Hashtags {
        /// Hashtags are not special: a mark and words.
        Text,
        /// One token with its `#`; digits inside stay.
        Keep,
        /// Drop `#` and cut the rest at `_`, as any word.
        Word,
        /// Cut where case or digits change: `#NewYork2020` is `new` `york` `2020`.
        Split,
        /// No token.
        Drop,
        /// `<hashtag>`, then as `Split`.
        Tag,
    }
    /// Punctuation and symbols that are no emoji.
    punctuation: Punctuation {
        /// They separate, nothing more.
        Drop,
        /// Each mark is a token.
        Keep,
    }
    /// Emoji.
    emoji: Emoji {
        /// They separate, nothing more; of a keycap the digit stays.
        Drop,
        /// Each cluster (ZWJ sequence, skin tone, flag, keycap) is a token of at most 16
        /// code points.
        Keep,
    }
    /// Words that end in, or hold, a letter three or more times in a row.
    elongations: Elongations {
        /// They are words like any other.
        Keep,
        /// `tokenise` leaves them alone; the look-up of an unknown word may try
        /// [`shortened`](super::shortened) forms. A known word is never hurt this way.
        Shorten,
        /// A word that ends in the same letter three or more times loses all but one of them, and
        /// `<elong>` follows. Words with an apostrophe are left alone.
        Tag,
    }
    /// Cues to the tone of voice: smileys, hearts, words in capitals, repeated marks.
    cues: Cues {
        /// Smileys are read as words and punctuation marks.
        Keep,
        /// `<smile>`, `<sadface>`, `<lolface>`, `<neutralface>`, `<heart>`; `<allcaps>` after a
        /// lower-cased word of two or more capitals; `<repeat>` after the last of `!!`, `??`, `..`.
        Tag,
    }
    /// Han characters.
    cjk: Cjk {
        /// Letters like any other: a run is one word.
        Run,
        /// Each character is a token.
        Single,
    }
}

/// Names of who publishes a headline, and labels of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bylines {
    /// They are words like any other.
    #[default]
    Keep,
    /// `BREAKING: Quake hits Lima - BBC News` is `Quake hits Lima`. Left out are up to four words behind the last
    /// bar, and as many behind the last dash that are set as a name, with spaces around either; before them
    /// one or two words in capitals before the first colon. Three words are left, and the rule is applied again
    /// to the end of what is left.
    Drop,
}

impl Bylines {
    /// Both values.
    pub const ALL: &[Self] = &[Self::Keep, Self::Drop];

    fn are_kept(&self) -> bool {
        *self == Self::Keep
    }
}

impl Normalisation {
    /// Whether some rule writes tags, so that a tag found in the input is the tag itself.
    pub(super) fn writes_tags(&self) -> bool {
        self.urls == Urls::Tag
            || self.mentions == Mentions::Tag
            || self.hashtags == Hashtags::Tag
            || self.numbers == Numbers::Tag
            || self.elongations == Elongations::Tag
            || self.cues == Cues::Tag
    }
}

fn current<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let written = u32::deserialize(deserializer)?;
    if written == TOKENISER {
        return Ok(written);
    }
    Err(D::Error::custom(format_args!(
        "the rules are for tokeniser {written}, this build has tokeniser {TOKENISER}; pack the model again \
         or use the release that packed it"
    )))
}

/// The rules by which texts were cut for the default vectors; other presets state only their differences.
const PLAIN: Normalisation = Normalisation {
    tokeniser: TOKENISER,
    case: Case::Lower,
    accents: Accents::Keep,
    entities: Entities::Decode,
    controls: Controls::Separate,
    contractions: Contractions::Keep,
    initials: Initials::Join,
    numbers: Numbers::Keep,
    urls: Urls::Drop,
    mentions: Mentions::Drop,
    hashtags: Hashtags::Split,
    punctuation: Punctuation::Drop,
    emoji: Emoji::Drop,
    elongations: Elongations::Shorten,
    cues: Cues::Keep,
    cjk: Cjk::Run,
    bylines: Bylines::Keep,
};

/// [`PLAIN`] with each letter of initials (`U.S.A.`) a word of its own, as the tokenisers of published vectors
/// have them.
const APART: Normalisation = Normalisation { initials: Initials::Apart, ..PLAIN };

/// Each mark a token, nothing dropped and nothing special, as tokenisers of transformers have it.
const EVERYTHING: Normalisation = Normalisation {
    entities: Entities::Keep,
    controls: Controls::Remove,
    contractions: Contractions::Apart,
    urls: Urls::Text,
    mentions: Mentions::Text,
    hashtags: Hashtags::Text,
    punctuation: Punctuation::Keep,
    emoji: Emoji::Keep,
    elongations: Elongations::Keep,
    ..APART
};

impl Normalisation {
    /// The names that [`Normalisation::preset`] knows.
    pub const PRESETS: &[&str] = &[
        "plain",
        "glove-6b",
        "glove-twitter",
        "word2vec-news",
        "fasttext",
        "deboom",
        "bert",
        "xlm-r",
    ];

    /// The rules for a known family of vectors.
    ///
    /// - `plain`: lower case, letters and digits with inner apostrophes; initials such as `U.S.` one
    ///   word; addresses, names, marks and emoji dropped, hashtags cut into words.
    /// - `glove-6b`: the same with contractions split as in the Penn Treebank, and initials apart, as
    ///   in all that follow.
    /// - `glove-twitter`: the tags of Stanford's tweet script. Departures, each because a single
    ///   pass from left to right keeps its word boundaries: only numbers that stand alone become
    ///   `<number>`, without their sign; `8` is no pair of eyes and smileys are not read
    ///   backwards; letter mouths (`:p`) and hearts must end there; each mark is a token; a word counts as capitals when all its
    ///   letters are; hashtags are also cut at digits.
    /// - `word2vec-news`: case kept, digits as `#`.
    /// - `fasttext`: case kept.
    /// - `deboom`: lower case without any mark (`don't` is `dont`), numbers as `0`, hashtags
    ///   as words.
    /// - `bert`: BERT's basic tokeniser: accents and control characters removed, each mark and
    ///   each Han character a token, nothing dropped and nothing special. Departures: NFKC comes
    ///   first, `’` is written `'`, and a symbol such as `€` is a token of its own.
    /// - `xlm-r`: for Unigram tokenizers that keep case, as multilingual ones do: each mark a token,
    ///   nothing dropped and nothing special. Departures: a mark is a word of its own also where it
    ///   touches a word, as model2vec has it and SentencePiece has not; `’` is written `'`.
    pub fn preset(name: &str) -> Option<Self> {
        Some(match name {
            "plain" => PLAIN,
            "glove-6b" => Self { contractions: Contractions::Split, ..APART },
            "glove-twitter" => Self {
                numbers: Numbers::Tag,
                urls: Urls::Tag,
                mentions: Mentions::Tag,
                hashtags: Hashtags::Tag,
                punctuation: Punctuation::Keep,
                emoji: Emoji::Keep,
                elongations: Elongations::Tag,
                cues: Cues::Tag,
                ..APART
            },
            "word2vec-news" => Self { case: Case::Keep, numbers: Numbers::Hashes, ..APART },
            "fasttext" => Self { case: Case::Keep, ..APART },
            "deboom" => Self {
                contractions: Contractions::DropMark,
                numbers: Numbers::Zero,
                hashtags: Hashtags::Word,
                elongations: Elongations::Keep,
                ..APART
            },
            "bert" => Self { accents: Accents::Strip, cjk: Cjk::Single, ..EVERYTHING },
            "xlm-r" => Self { case: Case::Keep, ..EVERYTHING },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_preset_exists_and_survives_json() {
        for name in Normalisation::PRESETS {
            let rules = Normalisation::preset(name).unwrap();
            let json = serde_json::to_value(&rules).unwrap();
            assert_eq!(json.as_object().unwrap().len(), 16, "{name}: a field is not written");
            assert_eq!(serde_json::from_value::<Normalisation>(json).unwrap(), rules);
        }
        assert_eq!(Normalisation::preset("no-such"), None);
    }

    #[test]
    fn another_version_an_unknown_field_and_a_missing_field_are_refused() {
        let written = serde_json::to_value(PLAIN).unwrap();
        let refusal = |change: &dyn Fn(&mut serde_json::Map<String, serde_json::Value>)| {
            let mut json = written.clone();
            change(json.as_object_mut().unwrap());
            serde_json::from_value::<Normalisation>(json).unwrap_err().to_string()
        };
        for other in [1, 3] {
            let refused = refusal(&|json| drop(json.insert("tokeniser".into(), other.into())));
            assert!(refused.contains(&format!("tokeniser {other},")), "{refused}");
        }
        let unknown = refusal(&|json| drop(json.insert("stemming".into(), true.into())));
        assert!(unknown.contains("stemming"), "{unknown}");
        let missing = refusal(&|json| drop(json.remove("case")));
        assert!(missing.contains("case"), "{missing}");
    }

    #[test]
    fn values_are_written_in_kebab_case() {
        let rules = Normalisation::preset("deboom").unwrap();
        let json = serde_json::to_string(&rules).unwrap();
        assert!(json.contains(r#""contractions":"drop-mark""#), "{json}");
    }
}
