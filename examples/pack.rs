//! Word vectors of your own become a model file: `cargo run --example pack`.

use cognate::{Engine, Query};
use cognate_pack::counts::Documents;
use cognate_pack::intake::{BadUtf8, FlawedRows, Policy};
use cognate_pack::readers::{Format, Source};
use cognate_pack::transform::Changes;
use cognate_pack::{PackOptions, UnknownChoice};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir();
    let vectors = folder.join("cognate-example.txt");
    std::fs::write(&vectors, "quake 1 0.9 0\nearthquake 0.9 1 0\ncat 0 0.1 1\nsofa 0.1 0 1\n")?;
    let output = folder.join("cognate-example.safetensors");
    let packed = cognate_pack::pack(&PackOptions {
        source: Source { format: Some(Format::Glove), ..Source::at(vectors) },
        output: output.clone(),
        dtype: cognate::model::format::Dtype::F32,
        policy: Policy {
            duplicates: FlawedRows::Refuse,
            non_finite: FlawedRows::Refuse,
            utf8: BadUtf8::Strict,
            lower: false,
            words: u64::MAX,
        },
        changes: Changes::default(),
        normalisation: cognate::text::Normalisation::preset("plain").ok_or("no such preset")?,
        unknown: UnknownChoice::Format,
        pieces: None,
        frequency: cognate::model::Frequency::None,
        counts: None,
        corpus: None,
        polarity: None,
        documents: Documents::Line,
        licence: None,
        auto_method: None,
    })?;
    println!("{} words of {} dimensions", packed.words, packed.dims);
    let engine = Engine::open(&output, &Default::default())?;
    let query = Query::new(engine.method("avg-cos")?);
    let answer = engine.similarity(&[("quake", "earthquake"), ("quake", "cat sofa")], &query)?;
    println!("{:.3?}", answer.scores);
    Ok(())
}
