//! The contenders of an evaluation: methods under their measures, and columns of numbers in the
//! data files.

use std::borrow::Cow;
use std::sync::Arc;

use cognate::engine::fuse::{FusedMethod, Fusion, Ranker};
use cognate::engine::{Engine, Measure, Opposites, Query};
use cognate::methods::sets::ablation;
use cognate::methods::{Info, Kind, Method, Scorer};
use serde::Serialize;

use crate::{EvalError, Result};

#[derive(Debug, Clone)]
pub struct Choice {
    /// Names or aliases; `all` means every method that the model supports and that suits the task,
    /// `none` no method.
    pub methods: Vec<String>,
    pub measures: Vec<Measure>,
    /// What opposites do to the scores of methods that count them.
    pub opposites: Option<Opposites>,
    pub baseline: String,
    /// Whether ablations (variants that show the effect of a method's parts) are measured too.
    pub ablations: bool,
}

#[derive(Clone)]
pub(super) struct Contender {
    /// The method's name, followed by the measure where it is not the method's own.
    pub(super) name: String,
    pub(super) method: Cow<'static, str>,
    /// `None` for a column and for a method without vectors.
    pub(super) measure: Option<Measure>,
    pub(super) summary: String,
    pub(super) scores: Scores,
}

#[derive(Clone)]
pub(super) enum Scores {
    Method(Query),
    Column(usize),
    /// A variant that is not a method, with its own scorer.
    Ablation(Arc<Scorer>, &'static Info),
    /// A fused method of the model; for each run it needs, the index of the column that holds it.
    Fused(Arc<Fusion>, Vec<usize>),
    Combination,
}

impl Contender {
    pub(super) fn new(name: &str, summary: String, scores: Scores) -> Self {
        let method = name.to_owned().into();
        Self { name: name.to_owned(), method, measure: None, summary, scores }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct LeftOut {
    pub method: Cow<'static, str>,
    /// What the model lacks, and the command that adds it.
    pub reason: String,
}

pub(super) struct Field<'e> {
    pub(super) engine: &'e Engine,
    measures: &'e [Measure],
    opposites: Option<Opposites>,
    kinds: &'e [Kind],
    columns: &'e [String],
    pub(super) contenders: Vec<Contender>,
    pub(super) baseline: usize,
    pub(super) unavailable: Vec<LeftOut>,
}

/// Chooses the contenders of a task (columns first, then methods of these kinds) and the baseline.
pub(super) fn choose<'e>(
    engine: &'e Engine,
    choice: &'e Choice,
    kinds: &'e [Kind],
    columns: &'e [String],
) -> Result<Field<'e>> {
    let mut field = Field::new(engine, &choice.measures, kinds, columns);
    field.opposites = choice.opposites;
    for (place, column) in columns.iter().enumerate() {
        let of = Contender::new(column, "A column of the file.".to_owned(), Scores::Column(place));
        field.contenders.push(Contender { method: "column".into(), ..of });
    }
    field.list(&choice.methods)?;
    if choice.ablations {
        field.add_ablations()?;
    }
    field.baseline = field.place_or_add(&choice.baseline)?;
    Ok(field)
}

pub(super) fn methods(
    engine: &Engine,
    names: &[String],
    measures: &[Measure],
) -> Result<Vec<Contender>> {
    let mut field = Field::new(engine, measures, &[Kind::Similarity], &[]);
    field.list(names)?;
    Ok(field.contenders)
}

impl<'e> Field<'e> {
    fn new(
        engine: &'e Engine,
        measures: &'e [Measure],
        kinds: &'e [Kind],
        columns: &'e [String],
    ) -> Self {
        Self {
            engine,
            measures,
            opposites: None,
            kinds,
            columns,
            contenders: Vec::new(),
            baseline: 0,
            unavailable: Vec::new(),
        }
    }

    fn list(&mut self, names: &[String]) -> Result<()> {
        for name in names {
            match name.trim() {
                "none" => {}
                "all" => self.add_all(),
                name => self.add_named(name).map(drop)?,
            }
        }
        Ok(())
    }

    fn add_all(&mut self) {
        let suits = |method: &&Method| self.kinds.contains(&method.info().kind);
        for &method in Method::ALL.iter().filter(suits).collect::<Vec<_>>() {
            match self.engine.unavailable(method) {
                Some(reason) => self.leave_out(method.name(), reason.to_string()),
                None => self.add(method),
            }
        }
        if self.kinds.contains(&Kind::Ranker) {
            for fused in self.engine.fusions().iter() {
                if let Err(problem) = self.add_fused(fused) {
                    self.leave_out(fused.name().to_string(), problem);
                }
            }
        }
    }

    /// Adds the method with this name, fused or not, and returns its name in listings.
    fn add_named(&mut self, name: &str) -> Result<Cow<'static, str>> {
        let wrong = |problem| EvalError::Options(format!("method `{}`: {problem}", name.trim()));
        match self.engine.ranker(name).map_err(|error| wrong(error.to_string()))? {
            Ranker::Fused(fused) if self.kinds.contains(&Kind::Ranker) => {
                self.add_fused(fused).map_err(wrong)?;
                Ok(fused.name().to_string().into())
            }
            Ranker::Fused(fused) => Err(only_ranks(fused.name())),
            Ranker::Method(method) => {
                self.check(method)?;
                self.add(method);
                Ok(method.name().into())
            }
        }
    }

    fn leave_out(&mut self, method: impl Into<Cow<'static, str>>, reason: String) {
        self.unavailable.push(LeftOut { method: method.into(), reason });
    }

    fn push(&mut self, contender: Contender) {
        if self.contenders.iter().all(|known| known.name != contender.name) {
            self.contenders.push(contender);
        }
    }

    /// Adds a fused method, unless present, if the model and the columns provide what it needs.
    fn add_fused(&mut self, fused: &FusedMethod) -> Result<(), String> {
        let fusion = self.engine.fusion(fused).map_err(|error| error.to_string())?;
        let place = |(_, run): (usize, &str)| {
            let place = self.columns.iter().position(|column| column == run);
            place.ok_or_else(|| format!("it needs the column `{run}`: name it with --column"))
        };
        let runs = fusion.runs().map(place).collect::<Result<Vec<_>, _>>()?;
        let name = fused.name().to_string();
        self.push(Contender::new(&name, fused.summary(), Scores::Fused(fusion, runs)));
        Ok(())
    }

    fn add(&mut self, method: Method) {
        let (own, embeds) = (self.engine.default_measure(method), self.engine.embeds(method));
        let several = embeds && !self.measures.is_empty();
        let counts = method.info().ignoring_opposites.is_some();
        let opposites = self.opposites.filter(|_| counts);
        let own_alone = [own];
        for &measure in if several { self.measures } else { &own_alone } {
            let mut name = method.name().to_owned();
            if measure != own {
                name = format!("{name}/{}", measure.name());
            }
            self.push(Contender {
                name,
                method: method.name().into(),
                measure: embeds.then_some(measure),
                summary: method.info().summary.to_owned(),
                scores: Scores::Method(Query { opposites, ..query(method, measure) }),
            });
        }
    }

    fn add_ablations(&mut self) -> Result<()> {
        for variant in ablation::all() {
            match (variant.load)(self.engine.model())? {
                Err(reason) => self.leave_out(variant.name(), reason.to_string()),
                Ok(scorer) => self.contenders.push(Contender::new(
                    variant.name(),
                    format!("Ablation: {}", variant.info.summary),
                    Scores::Ablation(Arc::new(scorer), &variant.info),
                )),
            }
        }
        Ok(())
    }

    /// The index of the contender with that name; a method is added if it is not yet present.
    pub(super) fn place_or_add(&mut self, name: &str) -> Result<usize> {
        if let Some(place) = self.place(name) {
            return Ok(place);
        }
        // It may already be present under its canonical name.
        let known = self.engine.method(name).ok();
        let name = match known.filter(|method| self.place(method.name()).is_some()) {
            Some(method) => {
                self.check(method)?;
                method.name().into()
            }
            None => self.add_named(name)?,
        };
        Ok(self.place(&name).unwrap_or(0))
    }

    fn place(&self, name: &str) -> Option<usize> {
        let exact = self.contenders.iter().position(|contender| contender.name == name);
        exact.or_else(|| self.contenders.iter().position(|contender| contender.method == name))
    }

    fn check(&self, method: Method) -> Result<()> {
        let name = method.name();
        if let Some(reason) = self.engine.unavailable(method) {
            let problem = format!("{name} cannot be used with this model: {reason}");
            return Err(EvalError::Options(problem));
        }
        if self.kinds.contains(&method.info().kind) { Ok(()) } else { Err(only_ranks(name)) }
    }
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
