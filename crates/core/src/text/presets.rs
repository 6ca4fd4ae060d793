//! The rules that go with known word vectors. A preset is a starting point that a model file
//! writes out in full; nothing looks a preset up by name after packing.

use super::normalisation::*;

/// Text as it was cut for the default vectors; the other presets say where they differ.
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
};

/// The same with each of a row of initials a word, as the tokenisers of known vectors have them.
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
        let newer = refusal(&|json| drop(json.insert("tokeniser".into(), 3.into())));
        assert!(newer.contains("tokeniser 3"), "{newer}");
        let unknown = refusal(&|json| drop(json.insert("stemming".into(), true.into())));
        assert!(unknown.contains("stemming"), "{unknown}");
        let missing = refusal(&|json| drop(json.remove("case")));
        assert!(missing.contains("case"), "{missing}");
    }

    #[test]
    fn rules_of_version_1_are_read_as_rules_that_cut_initials_apart() {
        let mut json = serde_json::to_value(PLAIN).unwrap();
        let rules = json.as_object_mut().unwrap();
        rules.insert("tokeniser".into(), 1.into());
        let refused = serde_json::from_value::<Normalisation>(rules.clone().into()).unwrap_err();
        assert!(refused.to_string().contains("initials"), "{refused}");
        rules.remove("initials");
        assert_eq!(serde_json::from_value::<Normalisation>(json).unwrap(), APART);
        let mut unfinished = serde_json::to_value(PLAIN).unwrap();
        unfinished.as_object_mut().unwrap().remove("initials");
        assert!(serde_json::from_value::<Normalisation>(unfinished).is_err());
    }

    #[test]
    fn values_are_written_in_kebab_case() {
        let rules = Normalisation::preset("deboom").unwrap();
        let json = serde_json::to_string(&rules).unwrap();
        assert!(json.contains(r#""contractions":"drop-mark""#), "{json}");
    }
}
