//! The exported `tokenizer.json`, read by the tokenizers library, against the model's own rules; and an
//! exported folder packed again.

use std::path::Path;

use cognate::model::Model;
use cognate::model::format::Dtype;
use cognate::model::writer::Draft;
use cognate::text::{Normalisation, Tokens, tokenise};
use cognate_pack::export::{ExportOptions, Inflections, Library, export};
use tokenizers::{PreTokenizedString, PreTokenizer, Tokenizer};

use crate::support;
use crate::support::command::{cognate, stderr};

fn options(model: &Path, output: &Path) -> ExportOptions {
    ExportOptions {
        model: model.to_owned(),
        output: output.to_owned(),
        library: Library::Model2vec,
        dtype: Dtype::F32,
        inflections: Inflections::None,
        normalize: false,
    }
}

/// The tokenizer that a model with these rules is exported with.
fn tokenizer(rules: &Normalisation) -> Tokenizer {
    let folder = tempfile::tempdir().unwrap();
    let (model, out) = (folder.path().join("m.safetensors"), folder.path().join("out"));
    let tiny = support::tiny_model();
    let mut draft = Draft::from_model(&tiny);
    let rules = serde_json::to_string(rules).unwrap();
    draft.metadata.insert("normalisation".to_owned(), rules);
    draft.write(&model).unwrap();
    export(&options(&model, &out)).unwrap();
    Tokenizer::from_file(out.join("tokenizer.json")).unwrap()
}

/// The words of a text by the library, known or not.
fn theirs(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
    let mut normalized = tokenizers::NormalizedString::from(text);
    let normalizer = tokenizer.get_normalizer().unwrap();
    tokenizers::Normalizer::normalize(normalizer, &mut normalized).unwrap();
    let mut words = PreTokenizedString::from(normalized.get());
    tokenizer.get_pre_tokenizer().unwrap().pre_tokenize(&mut words).unwrap();
    let splits =
        words.get_splits(tokenizers::OffsetReferential::Normalized, tokenizers::OffsetType::Byte);
    splits.into_iter().map(|(word, ..)| word.to_owned()).collect()
}

fn ours(rules: &Normalisation, text: &str) -> Vec<String> {
    let mut tokens = Tokens::new();
    tokenise(rules, text, &mut tokens);
    tokens.texts().map(str::to_owned).collect()
}

/// Texts that every set of rules cuts as the exported components do.
const PLAIN: &str = "Quake hits city|don't STOP, it's the café's|Ｆｕｌｌ ﬁne ½ width|soft\u{AD}hyphen \
                     zero\u{200B}width|日本語 と english|ΟΔΟΣ ΣΟΦΟΣ|naïve Ünï İstanbul|a-b_c d/e|  |";

/// Texts that rules differ about.
const WEB: &str = "see https://t.co/AbC?x=1&y=2, now|newshttp://a.b and www.x.org/y|bit.ly/abc ow.ly|\
                   hi @user_1! me@example.org|U.S. and U.S.A. e.g. this a.b.example x.y@z.org|R&amp;B \
                   &lt;3 &quot;so&quot; &eacute;t&eacute; don&#39;t|5,000.50 covid19 1 22|&nbsp;x&hellip;y";

#[test]
fn plain_texts_are_cut_as_every_preset_cuts_them() {
    for preset in Normalisation::PRESETS {
        let rules = Normalisation::preset(preset).unwrap();
        let tokenizer = tokenizer(&rules);
        // Rules with tags write entries that no expression makes.
        for text in PLAIN.split('|').filter(|text| *preset != "glove-twitter" || text.is_ascii()) {
            if *preset == "glove-twitter" && text.contains("STOP") {
                continue;
            }
            assert_eq!(theirs(&tokenizer, text), ours(&rules, text), "{preset}: {text}");
        }
    }
}

#[test]
fn addresses_names_initials_and_entities_are_read_as_the_rules_say() {
    for preset in ["plain", "glove-6b", "fasttext", "word2vec-news", "deboom"] {
        let rules = Normalisation::preset(preset).unwrap();
        let tokenizer = tokenizer(&rules);
        for text in WEB.split('|') {
            assert_eq!(theirs(&tokenizer, text), ours(&rules, text), "{preset}: {text}");
        }
    }
}

#[test]
fn initials_are_joined_however_many_they_are_and_whatever_stands_around_them() {
    let rules = Normalisation::preset("plain").unwrap();
    let tokenizer = tokenizer(&rules);
    let texts = "the U.S.S.R. and N.A.T.O.|U.N.E.S.C.O. a.b.c.d.e.f.g.h|L.A.'s U.S.A.’s E.U.'09|'U.S.' or “U.S.”\
                 |U.S.' A.'s rock'n.r.'s|x.a.b.'s a.bc.'s a.b.example's|U.S.-led p.m., (e.g.)|J.K.Rowling a.b.1";
    for text in texts.split('|') {
        assert_eq!(theirs(&tokenizer, text), ours(&rules, text), "{text}");
    }
}

#[test]
fn an_exported_folder_packed_again_has_the_same_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("m.safetensors"), support::tiny(Dtype::F32)).unwrap();
    for library in [Library::Model2vec, Library::SentenceTransformers] {
        for dtype in [Dtype::F32, Dtype::I8] {
            let out = path.join(format!("{library:?}-{dtype:?}"));
            let inflections = Inflections::All;
            let options = ExportOptions {
                library,
                dtype,
                inflections,
                ..options(&path.join("m.safetensors"), &out)
            };
            export(&options).unwrap();
            let packed = out.with_extension("safetensors");
            let arguments = ["pack", out.to_str().unwrap(), "-o", packed.to_str().unwrap()];
            let output = cognate(path, &[], &arguments);
            assert!(output.status.success(), "{}", stderr(&output));
            let again = Model::open(&packed, &support::full()).unwrap();
            for word in support::WORDS {
                let mut row = vec![0.0; support::DIMS];
                let id = again.vocabulary().lookup(word).unwrap();
                again.vectors().row(id).unwrap().copy_to(&mut row);
                let most = if dtype == Dtype::I8 { 6e-3 } else { 0.0 };
                let expected = support::row_of(word);
                let close = row.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= most);
                assert!(close, "{word}: {row:?}, {expected:?}");
            }
            assert!(again.vocabulary().lookup("quakes").is_some(), "inflected forms are words");
        }
    }
}
