//! The linear combination of scores that ranks best on separate training files, measured as one
//! more contender. [`ascent`] finds its weights.

use std::path::{Path, PathBuf};

use cognate::engine::Engine;
use cognate::engine::fuse::stored::{Learned, StoredFusion, StoredPart};
use cognate::engine::fuse::{FuseBy, Fusions, combine};
use cognate::model::update::Update;
use cognate::model::writer::{Draft, Written};
use cognate_stats::page::table::{Better, Cell, Column, Mark, Table};
use serde::Serialize;

use crate::ascent::TrainingQuery;
use crate::contenders::{Contender, Field, Scores};
use crate::datasets::{Judged, Source};
use crate::scoring::Scored;
use crate::{EvalError, Result, ascent, datasets, scoring};

const NAME: &str = "combination";

#[derive(Debug, Clone, Default)]
pub struct CombineOptions {
    /// Names of methods or columns; if empty, nothing is combined.
    pub names: Vec<String>,
    pub files: Vec<PathBuf>,
    pub qrels: Vec<PathBuf>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Combination {
    pub learned_on: Vec<String>,
    /// `qrels` or `labels`: where the relevance of training candidates comes from.
    pub judgements: &'static str,
    pub queries: usize,
    pub map: f64,
    pub weights: Vec<Weight>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Weight {
    pub name: String,
    pub weight: f64,
    /// The weight in the form of the model file.
    #[serde(skip)]
    part: StoredPart,
}

impl CombineOptions {
    /// The indices of the combined contenders in the field; missing methods are added to it.
    pub(super) fn places(&self, field: &mut Field<'_>) -> Result<Vec<usize>> {
        let mut places = Vec::new();
        for name in &self.names {
            let place = field.place_or_add(name.trim())?;
            let scores = field.contenders.get(place).map(|contender| &contender.scores);
            if matches!(scores, Some(Scores::Fused(..))) {
                let problem = format!("`{}` is fused already: name its parts", name.trim());
                return Err(EvalError::Options(problem));
            }
            if places.contains(&place) {
                return Err(EvalError::Options(format!("`{}` is combined twice", name.trim())));
            }
            places.push(place);
        }
        if places.len() < 2 {
            return Err(EvalError::Options("expected two or more scores to combine".to_owned()));
        }
        if field.contenders.iter().any(|contender| contender.name == NAME) {
            let problem = format!("a column called `{NAME}` cannot be measured together with one");
            return Err(EvalError::Options(problem));
        }
        Ok(places)
    }

    /// Learns the weights of the contenders at these indices on the training files; `seed` fixes
    /// the random starts.
    pub(super) fn learn(
        &self,
        field: &Field<'_>,
        places: &[usize],
        measured: &[Source],
        columns: &[String],
        seed: u64,
    ) -> Result<Combination> {
        let sources = datasets::sources(&self.files)?;
        apart(&sources, measured)?;
        let read = |source| datasets::read_ranking(source, columns);
        let sets = sources.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let judged = Judged::read(&self.qrels)?;
        let chosen = places.iter().filter_map(|&place| field.contenders.get(place));
        let contenders: Vec<Contender> = chosen.cloned().collect();
        let scored = scoring::rankings(field.engine, &contenders, &sets)?;
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
        let weight = |(of, weight): (&Contender, f64)| Weight {
            name: of.name.clone(),
            weight,
            part: part(of, weight),
        };
        Ok(Combination {
            learned_on: sets.into_iter().map(|set| set.name).collect(),
            judgements: judged.name(),
            queries: lessons.len(),
            map,
            weights: named.map(weight).collect(),
        })
    }
}

fn part(of: &Contender, weight: f64) -> StoredPart {
    let (method, scores) = match of.scores {
        Scores::Column(_) => (None, Some(of.name.clone())),
        _ => (Some(of.method.clone().into_owned()), None),
    };
    let measure = of.measure.map(|measure| measure.name().to_owned());
    StoredPart { method, measure, scores, weight }
}

fn apart(learned_on: &[Source], measured: &[Source]) -> Result<()> {
    // A missing file is refused later, when it is read.
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
    /// Appends the combination's scores to those of a file's contenders; `places` are the indices
    /// of the combined ones.
    pub(super) fn apply(&self, scored: &mut Vec<Vec<Scored>>, places: &[usize]) {
        let weights: Vec<f64> = self.weights.iter().map(|of| of.weight).collect();
        let chosen: Vec<&Vec<Scored>> = places.iter().filter_map(|&at| scored.get(at)).collect();
        let topics = chosen.first().map_or(0, |first| first.len());
        let topic = |at: usize| {
            let of_topic: Vec<&Scored> = chosen.iter().filter_map(|of| of.get(at)).collect();
            let columns: Vec<&Vec<f64>> = of_topic.iter().map(|of| &of.scores).collect();
            let scores = combine(FuseBy::Zscore, &columns, &weights);
            Scored {
                unscored: scores.iter().filter(|score| !score.is_finite()).count(),
                scores,
                truncated: of_topic.iter().map(|of| of.truncated).max().unwrap_or(0),
            }
        };
        let combined = (0..topics).map(topic).collect();
        scored.push(combined);
    }

    pub(super) fn contender(&self) -> Contender {
        let term = |of: &Weight| format!("{:.3} {}", of.weight, of.name);
        let terms: Vec<String> = self.weights.iter().map(term).collect();
        let summary = format!("Standardised scores, weighted: {}.", terms.join(" + "));
        Contender::new(NAME, summary, Scores::Combination)
    }

    pub(super) fn table(&self) -> Table {
        let row = |of: &Weight| (of.name.clone(), vec![Cell::share(of.weight, Mark::None)]);
        Table {
            title: format!("combination, learned on {}", self.learned_on.join(", ")),
            stub: "score",
            columns: vec![Column::new("weight", Better::Neither)],
            rows: self.weights.iter().map(row).collect(),
            notes: vec![format!(
                "Weights of scores standardised within each query, by coordinate ascent on MAP, there \
                 {:.4} over {} queries judged by {}.",
                self.map, self.queries, self.judgements
            )],
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct StoredCombination {
    pub method: String,
    pub summary: String,
    #[serde(flatten)]
    pub written: Written,
}

impl std::fmt::Display for StoredCombination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { method, summary, written } = self;
        writeln!(f, "{method} is stored: {summary}")?;
        write!(f, "{}\n{written}", written.path.display())
    }
}

/// Refuses an invalid name for a fused method before anything is measured.
pub fn check_name(name: &str) -> Result<()> {
    let any = StoredPart { method: None, measure: None, scores: Some("x".to_owned()), weight: 1.0 };
    let fusion = StoredFusion { by: FuseBy::Zscore, parts: vec![any], learned: None };
    match Fusions::default().insert(name, fusion) {
        Ok(_) => Ok(()),
        Err(error) => Err(EvalError::Options(error.to_string())),
    }
}

/// Stores a combination in the model file as the method `fused:NAME`: in `output`, or if that is
/// absent in the model that was measured.
pub fn keep(
    engine: &Engine,
    combination: &Combination,
    name: &str,
    output: Option<&Path>,
) -> Result<StoredCombination> {
    let model = engine.model();
    let update = Update::new(model, output.unwrap_or(model.path()))?;
    // Another process may have stored a fusion in the meantime.
    let mut fusions = Fusions::read(update.model())?;
    let learned = Learned {
        on: combination.learned_on.clone(),
        queries: combination.queries as u64,
        map: combination.map,
    };
    let stored = StoredFusion {
        by: FuseBy::Zscore,
        parts: combination.weights.iter().map(|of| of.part.clone()).collect(),
        learned: Some(learned),
    };
    let kept = fusions.insert(name, stored);
    let fused = kept.map_err(|error| EvalError::Options(error.to_string()))?;
    let (method, summary) = (fused.name().to_string(), fused.summary());
    let mut draft = Draft::from_model(update.model());
    fusions.put(&mut draft);
    Ok(StoredCombination { method, summary, written: update.write(draft)? })
}
