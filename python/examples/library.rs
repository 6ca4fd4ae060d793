//! What the library takes for two columns of texts, without Python: `library A B METHOD ROUNDS` prints
//! nanoseconds a pair on one thread, each round's, for parts of as many pairs as the wheel's. A round
//! of single pairs follows, asked one by one, over the first tenth.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use cognate::Engine;
use cognate::Query;
use cognate::model::OpenOptions;

/// As in `pairs.rs`.
const PER_PART: usize = 512;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [a, b, method, rounds] = arguments.as_slice() else {
        return Err("usage: library A B METHOD ROUNDS".into());
    };
    let (a, b) = (fs::read_to_string(a)?, fs::read_to_string(b)?);
    let pairs: Vec<(&str, &str)> = a.lines().zip(b.lines()).collect();
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/default.safetensors");
    let engine = Engine::open(&model, &OpenOptions::default())?;
    let query = Query::new(engine.method(method)?);
    for _ in 0..rounds.parse::<usize>()? {
        let began = Instant::now();
        for part in pairs.chunks(PER_PART) {
            black_box(engine.similarity(part, &query)?);
        }
        println!("columns {:.1}", began.elapsed().as_nanos() as f64 / pairs.len() as f64);
        let few = pairs.get(..pairs.len() / 10).unwrap_or_default();
        let began = Instant::now();
        for pair in few {
            black_box(engine.similarity(&[*pair], &query)?);
        }
        println!("single {:.1}", began.elapsed().as_nanos() as f64 / few.len() as f64);
    }
    Ok(())
}
