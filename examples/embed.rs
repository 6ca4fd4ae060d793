//! Vectors of texts: `cargo run --example embed`.

use cognate::{Engine, Query};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::open("models/default.safetensors".as_ref(), &Default::default())?;
    let query = Query::new(engine.method("sif")?);
    let texts = ["Quake hits L.A.!!", "Earthquake shakes Los Angeles", "🙂"];
    let answer = engine.embed(&texts, &query)?;
    for (text, vector) in texts.iter().zip(answer.iter()) {
        match vector {
            Some(vector) => println!("{text}: {} numbers, {:.3?} ...", vector.len(), &vector[..4]),
            // A text without a known word has no vector; it is not a vector of zeros.
            None => println!("{text}: no known word"),
        }
    }
    Ok(())
}
