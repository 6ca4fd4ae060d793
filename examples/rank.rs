//! The best candidates for a query: `cargo run --example rank`.

use cognate::engine::RankOptions;
use cognate::{Engine, Query};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::open("models/default.safetensors".as_ref(), &Default::default())?;
    let query = Query::new(engine.method("avg-cos")?);
    let candidates = ["quake hits city", "football results", "a tremor was felt"];
    let options = RankOptions { top_k: Some(2), ..RankOptions::all(query) };
    let ranking = engine.rank_best("earthquake", &candidates, &options)?;
    for best in &ranking.results {
        println!("{:.3}  {}", best.score, candidates[best.index]);
    }
    Ok(())
}
