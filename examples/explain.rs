//! What each word adds to a score: `cargo run --example explain`.

use cognate::{Engine, Query};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::open("models/default.safetensors".as_ref(), &Default::default())?;
    let query = Query::new(engine.method("auto")?);
    let explained = engine.explain("Quake hits L.A.!!", "Earthquake shakes Los Angeles", &query)?;
    println!("score {:.3}", explained.score);
    for word in explained.one.iter().chain(&explained.other) {
        println!("{:>12}  {:+.3}", word.token, word.share.unwrap_or_default());
    }
    Ok(())
}
