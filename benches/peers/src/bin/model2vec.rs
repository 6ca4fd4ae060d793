//! model2vec-rs, either line of releases: `model2vec 0.2|0.4 FOLDER PAIRS`.
//!
//! Its vectors have length 1 where they are compared, so that a cosine is one dot product.

use cognate_peers::{Pair, Turn, arguments, dot, take_turns};

/// Texts encoded at once when they are compared: the crate's own batch in 0.2, and small enough that
/// vectors are compared while they are in the cache.
const BATCH: usize = 1024;

fn main() {
    let [version, folder, pairs] = arguments(["0.2|0.4", "FOLDER", "PAIRS"]);
    match version.as_str() {
        "0.2" => {
            let load = model2vec_0_2::model::StaticModel::from_pretrained;
            let model = load(&folder, None, Some(true), None).expect("the model opens");
            answer(&pairs, |texts| model.encode(texts), |rows, index| &rows[index]);
        }
        "0.4" => {
            let load = model2vec_0_4::model::StaticModel::from_pretrained;
            let model = load(&folder, None, Some(true), None).expect("the model opens");
            let dims = model.dim();
            answer(
                &pairs,
                |texts| model.encode_flat(texts),
                |rows, index| &rows[index * dims..(index + 1) * dims],
            );
        }
        other => panic!("no release {other} among the contestants"),
    }
}

/// Takes turns with an encoder, and a way to find a text's row in what it makes.
fn answer<Rows>(
    pairs: &str,
    encode: impl Fn(&[String]) -> Rows,
    row: impl Fn(&Rows, usize) -> &[f32],
) {
    let scores = |rows: &Rows, texts: usize| -> Vec<f32> {
        (0..texts / 2).map(|pair| dot(row(rows, 2 * pair), row(rows, 2 * pair + 1))).collect()
    };
    take_turns(pairs, |method, pairs| {
        let texts = flat(pairs);
        match method {
            "embed" => Some(Turn::making(|| encode(&texts), |rows| scores(&rows, texts.len()))),
            "avg-cos" => Some(Turn::scoring(|| {
                let batches = texts.chunks(BATCH);
                batches.flat_map(|batch| scores(&encode(batch), batch.len())).collect()
            })),
            _ => None,
        }
    });
}

fn flat(pairs: &[Pair]) -> Vec<String> {
    pairs.iter().flat_map(|(one, other)| [one.clone(), other.clone()]).collect()
}
