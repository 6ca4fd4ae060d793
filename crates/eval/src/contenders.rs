//! The contenders of an evaluation: methods under their measures, and columns of numbers in the
//! data files.

use std::borrow::Cow;
use std::sync::Arc;

use cognate::engine::fuse::{FusedMethod, Fusion, Ranker};
use cognate::engine::{Engine, Measure, Query};
use cognate::methods::sets::ablation;
use cognate::methods::{Info, Kind, Method, Scorer};

use crate::EvalError;

/// The methods to measure, and the baseline.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Names or aliases; `all` means every method that the model supports and that suits the task,
    /// `none` no method.
    pub methods: Vec<String>,
    /// Measures for vector methods; if empty, each method's own.
    pub measures: Vec<Measure>,
    /// The method that others are tested against. It is measured, too.
    pub baseline: String,
    /// Whether ablations (variants that show the effect of a method's parts) are measured, too.
    pub ablations: bool,
}

#[derive(Clone)]
pub(super) struct Contender {
    /// The method's name, followed by the measure where it is not the method's own.
    pub(super) name: String,
    /// The method's canonical name, or `column`.
    pub(super) method: Cow<'static, str>,
    /// How vectors are compared; `None` for a column and for a method without vectors.
    pub(super) measure: Option<Measure>,
    /// What the method does, in one sentence.
    pub(super) summary: String,
    pub(super) scores: Scores,
}

/// Where its scores come from.
#[derive(Clone)]
pub(super) enum Scores {
    Method(Method, Measure),
    /// A column of the file, by its index among the requested columns.
    Column(usize),
    /// A variant that is not a method, with its own scorer.
    Ablation(Arc<Scorer>, &'static Info),
    /// A fused method of the model; for each run it needs, the index of the column that holds it.
    Fused(Arc<Fusion>, Vec<usize>),
    /// A combination of other contenders' scores.
    Combination,
}

/// The contenders in the order of listings, and the baseline among them.
#[derive(Default)]
pub(super) struct Field {
    pub(super) contenders: Vec<Contender>,
    pub(super) baseline: usize,
    /// Methods that the model does not support, with the reason.
    pub(super) unavailable: Vec<(Cow<'static, str>, String)>,
    columns: Vec<String>,
}

/// Chooses the contenders of a task (columns first, then methods of these kinds) and the baseline.
pub(super) fn choose(
    engine: &Engine,
    choice: &Choice,
    kinds: &[Kind],
    columns: &[String],
) -> Result<Field, EvalError> {
    let mut field = Field { columns: columns.to_vec(), ..Field::default() };
    for (place, column) in columns.iter().enumerate() {
        field.contenders.push(Contender {
            name: column.clone(),
            method: "column".into(),
            measure: None,
            summary: "A column of the file.".to_owned(),
            scores: Scores::Column(place),
        });
    }
    field.list(engine, &choice.methods, &choice.measures, kinds)?;
    if choice.ablations {
        field.add_ablations(engine)?;
    }
    field.baseline = field.place_or_add(engine, &choice.baseline, &choice.measures, kinds)?;
    Ok(field)
}

/// Chooses methods without a baseline.
pub(super) fn methods(
    engine: &Engine,
    names: &[String],
    measures: &[Measure],
) -> Result<Vec<Contender>, EvalError> {
    let mut field = Field::default();
    field.list(engine, names, measures, &[Kind::Similarity])?;
    Ok(field.contenders)
}

impl Field {
    /// Adds the methods with these names.
    fn list(
        &mut self,
        engine: &Engine,
        names: &[String],
        measures: &[Measure],
        kinds: &[Kind],
    ) -> Result<(), EvalError> {
        for name in names {
            match name.trim() {
                "none" => {}
                "all" => self.add_all(engine, measures, kinds),
                name => {
                    self.add_named(engine, name, measures, kinds)?;
                }
            }
        }
        Ok(())
    }

    fn add_all(&mut self, engine: &Engine, measures: &[Measure], kinds: &[Kind]) {
        for &method in Method::ALL.iter().filter(|method| kinds.contains(&method.info().kind)) {
            match engine.unavailable(method) {
                Some(reason) => {
                    self.unavailable.push((method.name().into(), reason.to_string()));
                }
                None => self.add(engine, method, measures),
            }
        }
        if kinds.contains(&Kind::Ranker) {
            for fused in engine.fusions().iter() {
                if let Err(problem) = self.add_fused(engine, fused) {
                    self.unavailable.push((fused.name().to_string().into(), problem));
                }
            }
        }
    }

    /// Adds the method with this name, fused or not, and returns its name in listings.
    fn add_named(
        &mut self,
        engine: &Engine,
        name: &str,
        measures: &[Measure],
        kinds: &[Kind],
    ) -> Result<Cow<'static, str>, EvalError> {
        let wrong = |problem| EvalError::Options(format!("method `{}`: {problem}", name.trim()));
        match engine.ranker(name).map_err(|error| wrong(error.to_string()))? {
            Ranker::Fused(fused) if kinds.contains(&Kind::Ranker) => {
                self.add_fused(engine, fused).map_err(wrong)?;
                Ok(fused.name().to_string().into())
            }
            Ranker::Fused(fused) => Err(only_ranks(fused.name())),
            Ranker::Method(method) => {
                usable(engine, method, kinds)?;
                self.add(engine, method, measures);
                Ok(method.name().into())
            }
        }
    }

    /// Adds a fused method, unless present, if the model and the columns provide what it needs.
    fn add_fused(&mut self, engine: &Engine, fused: &FusedMethod) -> Result<(), String> {
        let fusion = engine.fusion(fused).map_err(|error| error.to_string())?;
        let place = |(_, run): (usize, &str)| {
            let place = self.columns.iter().position(|column| column == run);
            place.ok_or_else(|| format!("it needs the column `{run}`: name it with --column"))
        };
        let runs = fusion.runs().map(place).collect::<Result<Vec<_>, _>>()?;
        let name = fused.name().to_string();
        if self.contenders.iter().all(|known| known.name != name) {
            self.contenders.push(Contender {
                name: name.clone(),
                method: name.into(),
                measure: None,
                summary: fused.summary(),
                scores: Scores::Fused(fusion, runs),
            });
        }
        Ok(())
    }

    /// Adds a method under each of its measures, unless present.
    fn add(&mut self, engine: &Engine, method: Method, measures: &[Measure]) {
        let own = engine.default_measure(method);
        let several = engine.embeds(method) && !measures.is_empty();
        let own_alone = [own];
        for &measure in if several { measures } else { &own_alone } {
            let mut name = method.name().to_owned();
            if measure != own {
                name = format!("{name}/{}", measure.name());
            }
            let contender = Contender {
                name,
                method: method.name().into(),
                measure: engine.embeds(method).then_some(measure),
                summary: method.info().summary.to_owned(),
                scores: Scores::Method(method, measure),
            };
            if self.contenders.iter().all(|known| known.name != contender.name) {
                self.contenders.push(contender);
            }
        }
    }

    fn add_ablations(&mut self, engine: &Engine) -> Result<(), EvalError> {
        for variant in ablation::all() {
            match (variant.load)(engine.model())? {
                Err(reason) => {
                    self.unavailable.push((variant.name().into(), reason.to_string()));
                }
                Ok(scorer) => self.contenders.push(Contender {
                    name: variant.name().to_owned(),
                    method: variant.name().into(),
                    measure: None,
                    summary: format!("Ablation: {}", variant.info.summary),
                    scores: Scores::Ablation(Arc::new(scorer), &variant.info),
                }),
            }
        }
        Ok(())
    }

    /// The index of the contender with that name; a method is added if it is not yet present.
    pub(super) fn place_or_add(
        &mut self,
        engine: &Engine,
        name: &str,
        measures: &[Measure],
        kinds: &[Kind],
    ) -> Result<usize, EvalError> {
        if let Some(place) = self.place(name) {
            return Ok(place);
        }
        // It may already be present under its canonical name.
        let known = engine.method(name).ok().filter(|method| self.place(method.name()).is_some());
        let name = match known {
            Some(method) => {
                usable(engine, method, kinds)?;
                method.name().into()
            }
            None => self.add_named(engine, name, measures, kinds)?,
        };
        Ok(self.place(&name).unwrap_or(0))
    }

    /// The index of the contender with that name, or else of the first with that method.
    fn place(&self, name: &str) -> Option<usize> {
        let exact = self.contenders.iter().position(|contender| contender.name == name);
        exact.or_else(|| self.contenders.iter().position(|contender| contender.method == name))
    }
}

/// Refuses a method that the model does not support, or that does not suit the task.
fn usable(engine: &Engine, method: Method, kinds: &[Kind]) -> Result<(), EvalError> {
    if let Some(reason) = engine.unavailable(method) {
        return Err(EvalError::Options(format!(
            "{} cannot be used with this model: {reason}",
            method.name()
        )));
    }
    if !kinds.contains(&method.info().kind) {
        return Err(only_ranks(method.name()));
    }
    Ok(())
}

fn only_ranks(name: &str) -> EvalError {
    EvalError::Options(format!(
        "{name} only ranks candidates for a query; measure it with `cognate eval ranking`"
    ))
}

/// The query behind a method's scores. Overlong texts are truncated, and counted by the caller.
pub(super) fn query(method: Method, measure: Measure) -> Query {
    Query { measure: Some(measure), truncate: true, ..Query::new(method) }
}
