//! A list of opposites on its way into model files: packed with the vectors, added later, replaced, refused.

use std::path::{Path, PathBuf};

use cognate::methods::{Auto, Method};
use cognate::model::format::Dtype;
use cognate::model::{Frequency, Model};
use cognate::text::{Bylines, Normalisation};
use cognate::{Engine, Query};
use cognate_pack::counts::Documents;
use cognate_pack::fit::{FitOptions, fit};
use cognate_pack::intake::{BadUtf8, FlawedRows, Policy};
use cognate_pack::readers::Source;
use cognate_pack::transform::Changes;
use cognate_pack::{PackError, PackOptions, UnknownChoice, pack};
use cognate_testing as support;

const VECTORS: &str =
    "the 1 0 0.2\nlight 0.3 1 0\nis 0.1 0.2 1\non 0.9 0.1 0.4\noff 0.9 0.2 0.4\nnot 0.2 0.2 0.2\n";
const LIST: &str = "# ours\nnot\tnegates\non\topposite\toff\nup\topposite\tdown\n";

fn options(folder: &Path, polarity: Option<PathBuf>) -> PackOptions {
    let vectors = folder.join("vectors.txt");
    std::fs::write(&vectors, VECTORS).unwrap();
    PackOptions {
        source: Source::at(vectors),
        output: folder.join("packed.safetensors"),
        dtype: Dtype::F32,
        policy: Policy {
            duplicates: FlawedRows::Refuse,
            non_finite: FlawedRows::Refuse,
            utf8: BadUtf8::Strict,
            lower: false,
            words: u64::MAX,
        },
        changes: Changes::default(),
        normalisation: Normalisation::preset("plain").unwrap(),
        unknown: UnknownChoice::Skip,
        pieces: None,
        frequency: Frequency::None,
        counts: None,
        corpus: None,
        polarity,
        documents: Documents::Line,
        licence: None,
        auto_method: Some("coverage-blend".to_owned()),
    }
}

fn list(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("list.tsv");
    std::fs::write(&path, text).unwrap();
    path
}

fn opened(path: &Path) -> Engine {
    Engine::new(Model::open(path, &support::full()).unwrap()).unwrap()
}

/// How two texts are opposed, by the names of the kinds.
fn told(engine: &Engine, a: &str, b: &str) -> Vec<&'static str> {
    let told = engine.opposes(a, b, &Query::new(Method::AvgCos)).unwrap();
    told.iter().map(|opposition| opposition.kind.name()).collect()
}

#[test]
fn a_list_is_packed_with_the_vectors_or_added_later_to_the_same_end() {
    let folder = tempfile::tempdir().unwrap();
    let list = list(folder.path(), LIST);
    pack(&options(folder.path(), Some(list.clone()))).unwrap();
    let packed = opened(&folder.path().join("packed.safetensors"));
    assert_eq!(told(&packed, "the light is on", "the light is off"), ["antonym"]);
    assert_eq!(told(&packed, "the light is on", "the light is not on"), ["negation"]);
    assert_eq!(told(&packed, "the light is on", "the light is not off"), [""; 0]);
    assert_eq!(packed.auto(), Method::PolarityBlend);

    pack(&options(folder.path(), None)).unwrap();
    let model = folder.path().join("packed.safetensors");
    let bare = opened(&model);
    assert_eq!(bare.auto(), Method::CoverageBlend, "a file without the section behaves as before");
    assert!(bare.unavailable(Method::PolarityBlend).is_some());
    let output = folder.path().join("fitted.safetensors");
    let polarity = Some(list);
    let asked = FitOptions { model, output: output.clone(), polarity, ..FitOptions::default() };
    let report = fit(&asked).unwrap();
    assert_eq!(report.sections[0].0, "polarity");
    let fitted = opened(&output);
    let fingerprint = |engine: &Engine| engine.model().fingerprint().to_owned();
    assert_eq!(fingerprint(&fitted), fingerprint(&packed), "both ways give the same bytes");
    assert_eq!(Auto::from_model(fitted.model()).method, Method::PolarityBlend);
}

#[test]
fn a_list_that_cannot_be_understood_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let list = list(folder.path(), "not\tnegates\non\topposes\toff\n");
    let refused = pack(&options(folder.path(), Some(list.clone()))).unwrap_err();
    assert!(matches!(&refused, PackError::Unfittable(_)), "{refused}");
    assert!(refused.to_string().contains("line 2"), "{refused}");
    let output = folder.path().join("packed.safetensors");
    assert!(!output.exists());
    pack(&options(folder.path(), None)).unwrap();
    let polarity = Some(list.clone());
    let asked = |output: PathBuf| FitOptions {
        model: folder.path().join("packed.safetensors"),
        output,
        polarity: polarity.clone(),
        ..FitOptions::default()
    };
    assert!(matches!(fit(&asked(output)), Err(PackError::Unfittable(_))));
    assert!(matches!(fit(&asked(list)), Err(PackError::Options(_))), "the list is not overwritten");
}

#[test]
fn the_names_of_the_default_model_are_those_of_its_list() {
    let folder = tempfile::tempdir().unwrap();
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let model = models.join("default.safetensors");
    let (output, names) =
        (folder.path().join("fitted.safetensors"), Some(models.join("names-en.tsv")));
    let (before, written) = (std::fs::read(&model).unwrap(), output.clone());
    fit(&FitOptions { model, output, names, ..FitOptions::default() }).unwrap();
    assert!(std::fs::read(written).unwrap() == before);
}

#[test]
fn bylines_are_left_out_by_a_model_that_says_so_and_stay_by_one_that_does_not() {
    let folder = tempfile::tempdir().unwrap();
    pack(&options(folder.path(), None)).unwrap();
    let model = folder.path().join("packed.safetensors");
    let fitted = |model: &PathBuf, bylines| {
        let output = folder.path().join(format!("{bylines:?}.safetensors"));
        let (model, bylines) = (model.clone(), Some(bylines));
        fit(&FitOptions { model, output: output.clone(), bylines, ..FitOptions::default() })
            .unwrap();
        output
    };
    let dropping = fitted(&model, Bylines::Drop);
    let keeping = fitted(&dropping, Bylines::Keep);
    let score = |model: &PathBuf| {
        let pair = [("the light is on", "the light is on | not off")];
        opened(model).similarity(&pair, &Query::new(Method::AvgCos)).unwrap().scores[0]
    };
    assert_eq!(score(&dropping), 1.0);
    assert!(score(&model) < 1.0, "{}", score(&model));
    let bytes = |model: &PathBuf| std::fs::read(model).unwrap();
    assert!(bytes(&keeping) == bytes(&model), "a model that keeps them says nothing of them");
}
