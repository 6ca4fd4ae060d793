//! The linear combination of scores that ranks best on files kept for learning it, as one more
//! contender. How weights are found is known to [`ascent`].

use std::path::PathBuf;

use serde::Serialize;

use crate::engine::Engine;
use crate::engine::Measure;
use crate::eval::EvalError;
use crate::eval::ascent;
use crate::eval::ascent::TrainingQuery;
use crate::eval::contenders::Contender;
use crate::eval::contenders::Field;
use crate::eval::contenders::Scores;
use crate::eval::datasets;
use crate::eval::datasets::Source;
use crate::eval::datasets::ranking;
use crate::eval::datasets::ranking::Judged;
use crate::eval::scoring;
use crate::eval::scoring::Scored;
use crate::methods::Kind;

/// The name that its figures stand under.
pub(super) const NAME: &str = "combination";

/// Which scores are combined, and what is learned from.
#[derive(Debug, Clone, Default)]
pub struct CombineOptions {
    /// Names of methods or columns; without any nothing is combined.
    pub names: Vec<String>,
    /// Files, or folders of files, to learn on.
    pub files: Vec<PathBuf>,
    /// Their judgements; without any, the files' labels.
    pub qrels: Vec<PathBuf>,
}

/// A combination that was learned.
#[derive(Debug, Clone, Serialize)]
pub struct Combination {
    /// The files it was learned on.
    pub learned_on: Vec<String>,
    /// `qrels` or `labels`: what said there which candidates are relevant.
    pub judgements: &'static str,
    /// Their queries that count.
    pub queries: usize,
    /// Mean average precision over these.
    pub map: f64,
    /// What is combined: weights of standardised scores, which add up to 1.
    pub weights: Vec<Weight>,
}

/// The weight of one contender.
#[derive(Debug, Clone, Serialize)]
pub struct Weight {
    /// The contender's name.
    pub name: String,
    /// Its share.
    pub weight: f64,
}

impl CombineOptions {
    /// The places of what is combined among the contenders; methods that are not are added.
    pub(super) fn places(
        &self,
        engine: &Engine,
        field: &mut Field,
        measures: &[Measure],
        kinds: &[Kind],
    ) -> Result<Vec<usize>, EvalError> {
        let mut places = Vec::new();
        for name in &self.names {
            let place = field.place_or_add(engine, name.trim(), measures, kinds)?;
            if places.contains(&place) {
                return Err(EvalError::Options(format!("`{}` is combined twice", name.trim())));
            }
            places.push(place);
        }
        if places.len() < 2 {
            return Err(EvalError::Options("expected two or more scores to combine".to_owned()));
        }
        if field.contenders.iter().any(|contender| contender.name == NAME) {
            let problem = format!("a column called `{NAME}` cannot be measured beside one");
            return Err(EvalError::Options(problem));
        }
        Ok(places)
    }

    /// Learns how to weight the contenders at these places, on files that are not measured; `seed`
    /// fixes the search.
    pub(super) fn learn(
        &self,
        engine: &Engine,
        field: &Field,
        places: &[usize],
        measured: &[Source],
        columns: &[String],
        seed: u64,
    ) -> Result<Combination, EvalError> {
        let sources = datasets::sources(&self.files)?;
        apart(&sources, measured)?;
        let read = |source| ranking::read(source, columns);
        let sets = sources.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let judged = Judged::read(&self.qrels)?;
        let chosen = places.iter().filter_map(|&place| field.contenders.get(place));
        let contenders: Vec<Contender> = chosen.cloned().collect();
        let scored = scoring::rankings(engine, &contenders, &sets)?;
        let mut lessons = Vec::new();
        for (set, scored) in sets.iter().zip(&scored) {
            let before = lessons.len();
            for (at, topic) in set.topics.iter().enumerate() {
                let of_topic: Vec<&Scored> = scored.iter().filter_map(|of| of.get(at)).collect();
                lessons.extend(TrainingQuery::new(topic, &of_topic, &judged));
            }
            if lessons.len() == before {
                let problem = judged.none_counts().to_owned();
                return Err(EvalError::Data { file: set.name.clone(), problem });
            }
        }
        let (weights, map) = ascent::ascend(&lessons, contenders.len(), seed);
        let named = contenders.iter().zip(weights);
        let weight = |(of, weight): (&Contender, f64)| Weight { name: of.name.clone(), weight };
        Ok(Combination {
            learned_on: sets.into_iter().map(|set| set.name).collect(),
            judgements: judged.name(),
            queries: lessons.len(),
            map,
            weights: named.map(weight).collect(),
        })
    }
}

/// Refuses to measure on a file that is learned on.
fn apart(learned_on: &[Source], measured: &[Source]) -> Result<(), EvalError> {
    // A file that is not there is refused where it is read.
    let real = |source: &Source| source.path.canonicalize().ok();
    for source in learned_on {
        let here = real(source);
        if here.is_some() && measured.iter().any(|other| real(other) == here) {
            let path = source.path.display();
            let problem = format!("{path} is both measured and learned on (--combine-on)");
            return Err(EvalError::Options(problem));
        }
    }
    Ok(())
}

impl Combination {
    /// Adds its scores to those of a file's contenders, of which these were combined.
    pub(super) fn apply(&self, scored: &mut Vec<Vec<Scored>>, places: &[usize]) {
        let weights: Vec<f64> = self.weights.iter().map(|of| of.weight).collect();
        let chosen: Vec<&Vec<Scored>> = places.iter().filter_map(|&at| scored.get(at)).collect();
        let topics = chosen.first().map_or(0, |first| first.len());
        let topic = |at: usize| {
            let of_topic: Vec<&Scored> = chosen.iter().filter_map(|of| of.get(at)).collect();
            ascent::combined(&of_topic, &weights)
        };
        let combined = (0..topics).map(topic).collect();
        scored.push(combined);
    }

    /// The combination as one more contender.
    pub(super) fn contender(&self) -> Contender {
        let term = |of: &Weight| format!("{:.3} {}", of.weight, of.name);
        let terms: Vec<String> = self.weights.iter().map(term).collect();
        Contender {
            name: NAME.to_owned(),
            method: NAME,
            measure: None,
            summary: format!("Standardised scores, weighted: {}.", terms.join(" + ")),
            scores: Scores::Combination,
        }
    }
}
