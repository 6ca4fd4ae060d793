//! Whether a text says what a stored one says: `cargo run -p cognate --example same_fact`.

use cognate::engine::Probability;
use cognate::{Engine, Query};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::open("models/default.safetensors".as_ref(), &Default::default())?;
    let query = Query::new(engine.auto());
    let measure = engine.measure_of(&query);
    let calibration = engine.calibration(query.method, measure).ok_or("no threshold is known")?;
    let least = calibration.threshold.least();
    let chance = Probability::from_calibration(calibration).ok_or("no chance is known")?;
    let stored = "The user turns the heating on at seven";
    for said in ["User switches heating on at 7", "User turns the heating off at seven", "Cat naps"]
    {
        let score = engine.similarity(&[(stored, said)], &query)?.scores[0];
        let is_opposed = !engine.opposes(stored, said, &query)?.is_empty();
        let same = score >= least && !is_opposed;
        println!("{score:.2} of {least:.2}, {:.0} %, {same}: {said}", 100.0 * chance.at(score));
    }
    Ok(())
}
