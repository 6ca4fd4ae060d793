//! A method of your own, asked all four questions: `cargo run -p cognate --example own_method`.

use cognate::Engine;
use cognate::methods::{Embed, Info, Scorer};
use cognate::model::Phrase;

/// A text is the sum of its words' vectors, each a little less than the one before.
struct Fading;

const INFO: Info = Info { embeds: true, ..Info::new("fading") };

impl Embed for Fading {
    fn embed(&self, text: &Phrase<'_>, out: &mut [f32]) {
        let (mut row, mut weight) = (vec![0.0; out.len()], 1.0);
        for &word in text.words() {
            text.row(word).scale_to(weight, &mut row);
            out.iter_mut().zip(&row).for_each(|(sum, value)| *sum += value);
            weight *= 0.9;
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::open("models/default.safetensors".as_ref(), &Default::default())?;
    let scorer = Scorer::Embed(Box::new(Fading));
    let fading = engine.by(&scorer, &INFO);

    let pairs = [("quake hits city", "city hit by quake")];
    println!("similarity {:.3}", fading.similarity(&pairs)?.scores[0]);
    let texts = ["football results", "a tremor was felt"];
    let ranking = fading.rank("earthquake", &texts)?;
    println!("best       {}", texts[ranking.results[0].index]);
    println!("vector     {} numbers", fading.embed(&texts)?.vectors.ncols());
    let explained = fading.explain("quake hits city", "earthquake")?;
    println!("explained  {:.3}, {} words", explained.score, explained.one.len());
    Ok(())
}
