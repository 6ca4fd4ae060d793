//! What the library takes for two columns of texts, without Python: `library A B METHOD ROUNDS` prints
//! nanoseconds of one core for a pair, each round's, for parts of as many pairs as the wheel's. A round
//! of single pairs follows, asked one by one, over the first tenth. Time that others had the core is
//! not counted (`/proc/self/schedstat`, which moves in milliseconds: give some 100,000 pairs).

use std::fs;
use std::hint::black_box;
use std::path::Path;

use cognate::model::OpenOptions;
use cognate::{Engine, Query};

/// As in `pairs.rs`.
const PER_PART: usize = 512;

/// Nanoseconds that this thread has had a core.
fn spent() -> Result<u64, Box<dyn std::error::Error>> {
    let told = fs::read_to_string("/proc/self/schedstat")?;
    Ok(told.split_whitespace().next().unwrap_or_default().parse()?)
}

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
        let began = spent()?;
        for part in pairs.chunks(PER_PART) {
            black_box(engine.similarity(part, &query)?);
        }
        println!("columns {:.1}", (spent()? - began) as f64 / pairs.len() as f64);
        let few = pairs.get(..pairs.len() / 10).unwrap_or_default();
        let began = spent()?;
        for pair in few {
            black_box(engine.similarity(&[*pair], &query)?);
        }
        println!("single {:.1}", (spent()? - began) as f64 / few.len() as f64);
    }
    Ok(())
}
