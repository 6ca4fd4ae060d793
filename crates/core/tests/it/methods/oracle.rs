//! Scores of whole STS sets against those of an independent implementation in double precision.
//!
//! The reference used GloVe's own decimals, a table of Wikipedia counts and the tokens that it
//! lists, so the model is packed from just these and the tokens are the texts. In none of these
//! texts two words of equal idf compete for the last place among the rarest.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::Path;

use cognate::engine::{Engine, Query};
use cognate::methods::Method;
use cognate::model::Frequency;
use cognate::text::Normalisation;
use cognate_pack::counts::Documents;
use cognate_pack::intake::{BadUtf8, FlawedRows, Policy};
use cognate_pack::readers::Source;
use cognate_pack::transform::Changes;
use cognate_pack::{PackOptions, UnknownChoice, pack};
use cognate_testing as support;
use cognate_testing::data::shared_data;

/// How close every score must be.
const TOLERANCE: f64 = 1e-5;

/// The reference's name of a method, ours, and how its number becomes our score.
type Row = (&'static str, &'static str, fn(f64) -> f64);

const fn same(number: f64) -> f64 {
    number
}

#[rustfmt::skip]
const METHODS: [Row; 13] = [
    ("avg_cos", "avg-cos", same),
    ("max_cos", "max-cos", same),
    ("minmax_cos", "min-max", same),
    ("sif_cos", "sif", same),
    ("idf_mean_cos", "idf-mean", same),
    ("top30_mean_cos", "mean-top30", same),
    ("tfidf_cos", "tf-idf", same),
    ("jaccard_set", "jaccard", same),
    ("jaccard_bag", "jaccard-bag", same),
    ("dynamax_jaccard", "dynamax-jaccard", same),
    ("dynamax_otsuka", "dynamax-otsuka", same),
    ("dynamax_dice", "dynamax-dice", same),
    ("dynamax_jaccard_sif", "dynamax-sif", same),
];

fn glove(folder: &Path, vectors: &Path, counts: &Path) -> Engine {
    let options = PackOptions {
        source: Source::at(vectors),
        output: folder.join("glove.safetensors"),
        dtype: cognate::model::format::Dtype::F32,
        policy: Policy {
            duplicates: FlawedRows::Refuse,
            non_finite: FlawedRows::Refuse,
            utf8: BadUtf8::Strict,
            lower: false,
            words: u64::MAX,
        },
        changes: Changes { abtt: None, dims: None, unit_norm: false },
        normalisation: Normalisation::preset("plain").unwrap(),
        unknown: UnknownChoice::Skip,
        pieces: None,
        frequency: Frequency::None,
        counts: Some(counts.to_owned()),
        corpus: None,
        polarity: None,
        documents: Documents::Line,
        licence: None,
        auto_method: None,
    };
    pack(&options).unwrap();
    Engine::open(&options.output, &support::full()).unwrap()
}

/// One pair as the reference saw it, with its scores by method.
struct Pair {
    texts: [String; 2],
    scores: HashMap<String, f64>,
}

fn pairs_of(file: &Path) -> Vec<Pair> {
    let mut table = String::new();
    let packed = std::fs::File::open(file).unwrap();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut table).unwrap();
    let mut pairs: Vec<Pair> = Vec::new();
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [_, _, one, other, method, score] = fields[..] else { panic!("not a row: {line}") };
        // Each pair begins with the first method, so equal pairs are kept apart.
        if method == METHODS[0].0 {
            let texts = [one.to_owned(), other.to_owned()];
            pairs.push(Pair { texts, scores: HashMap::new() });
        }
        pairs.last_mut().unwrap().scores.insert(method.to_owned(), score.parse().unwrap());
    }
    pairs
}

#[test]
#[ignore = "needs the data in ../shared/data"]
fn every_score_is_that_of_the_reference() {
    let (folder, counts) = (shared_data("oracle"), shared_data("freq/enwiki_vocab_min200.tsv"));
    let temporary = tempfile::tempdir().unwrap();
    let engine = glove(temporary.path(), &folder.join("vectors_subset.txt.gz"), &counts);
    let mut worst: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    let mut differing = Vec::new();
    for set in ["12.OnWN", "14.images", "15.answers-forums"] {
        let pairs = pairs_of(&folder.join(format!("{set}.tsv.gz")));
        assert!(pairs.len() > 300, "{set}");
        let texts: Vec<_> = pairs.iter().map(|pair| (&pair.texts[0], &pair.texts[1])).collect();
        for pair in &pairs {
            for text in &pair.texts {
                let phrase = engine.model().phrase(text);
                let tokens: Vec<&str> = phrase.tokens().iter().map(|(token, _)| token).collect();
                assert_eq!(tokens.join(" "), *text, "the reference's tokens are ours");
                assert!(phrase.unknown().is_empty(), "{text}");
            }
        }
        for (theirs, ours, score_of) in METHODS {
            let query = Query::new(Method::named(ours).unwrap());
            let answer = engine.similarity(&texts, &query).unwrap();
            assert!(answer.unscored.is_empty());
            for (pair, &found) in pairs.iter().zip(&answer.scores) {
                let apart = (f64::from(found) - score_of(pair.scores[theirs])).abs();
                let (compared, most) = worst.entry(ours).or_default();
                *compared += 1;
                *most = most.max(apart);
                if apart > TOLERANCE {
                    differing.push(format!("{set} {ours} {apart:.2e} {:?}", pair.texts));
                }
            }
        }
    }
    for (method, (compared, most)) in &worst {
        eprintln!("{method:16} {compared} scores, {most:.1e} apart at most");
    }
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
}
