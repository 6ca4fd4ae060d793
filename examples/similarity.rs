//! How similar the texts of each pair are: `cargo run --example similarity`.

use cognate::{Engine, Query};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::open("models/default.safetensors".as_ref(), &Default::default())?;
    let query = Query::new(engine.method("dynamax")?);
    let pairs = [
        ("Quake hits L.A.!!", "Earthquake shakes Los Angeles"),
        ("Quake hits L.A.!!", "Cat naps on sofa"),
    ];
    let answer = engine.similarity(&pairs, &query)?;
    for ((a, b), score) in pairs.iter().zip(&answer.scores) {
        println!("{score:.3}  {a} | {b}");
    }
    Ok(())
}
