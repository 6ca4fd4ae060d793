//! cognate through its public library: `ours MODEL PAIRS`.

use cognate::engine::{Engine, Query};
use cognate_peers::{Pair, Turn, arguments, cosine, take_turns};

fn main() {
    let [model, pairs] = arguments(["MODEL", "PAIRS"]);
    let engine = Engine::open(model.as_ref(), &Default::default()).expect("the model opens");
    take_turns(&pairs, |method, pairs| match method {
        "embed" => Some(embed(&engine, pairs)),
        name => {
            let query = Query::new(engine.method(name).ok()?);
            let score = || engine.similarity(pairs, &query).expect("the texts are proper");
            Some(Turn::scoring(|| score().scores))
        }
    });
}

fn embed(engine: &Engine, pairs: &[Pair]) -> Turn {
    let query = Query::new(engine.method("avg-cos").expect("it is a method"));
    let texts: Vec<&str> = pairs.iter().flat_map(|(a, b)| [a.as_str(), b.as_str()]).collect();
    Turn::making(
        || engine.embed(&texts, &query).expect("the texts are proper"),
        |vectors| {
            let vectors: Vec<_> = vectors.iter().collect();
            let score = |two: &[Option<&[f32]>]| match two {
                [Some(one), Some(other)] => cosine(one, other),
                _ => 0.0,
            };
            vectors.chunks_exact(2).map(score).collect()
        },
    )
}
