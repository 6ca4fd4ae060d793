//! A ranking made of several: by parts that the request names, or by a fused method of the model.

use cognate::engine::fuse::{FuseError, Fusion, MOST_PARTS, Part, Source};
use cognate::engine::{Counts, Engine, RankOptions, Ranking};

use crate::http::api::pipeline::Plan;
use crate::http::api::rank::RankRequest;
use crate::http::api::rank::contenders::Contenders;
use crate::http::app::App;
use crate::http::error::{ApiError, Code, Fault, MOST_ITEMS};
use crate::http::request::fields::{FusePart, MeasureName, Score};
use crate::http::request::query::{Fused, Resolved};
use crate::http::work::pool::JobContext;

impl<'b> RankRequest<'b> {
    /// The question as it is once the parts that it names are fused.
    pub(super) fn fused(&self, resolved: Resolved) -> Result<Resolved, ApiError> {
        let Some(parts) = &self.fuse else {
            return match self.fuse_by {
                None => Ok(resolved),
                Some(_) => {
                    let detail =
                        "`fuse_by` says how the parts of `fuse` become one; there are none";
                    Err(ApiError::at(Code::InvalidField, "/fuse_by", detail))
                }
            };
        };
        if self.method.is_some() {
            let detail = "`fuse` names the methods; a question has either `method` or `fuse`";
            return Err(ApiError::at(Code::InvalidField, "/method", detail));
        }
        match parts.length {
            0 => return Err(ApiError::at(Code::EmptyList, "/fuse", "there are no parts to fuse")),
            length if length > MOST_PARTS => {
                let code = Code::TooManyItems;
                return Err(ApiError::beyond(code, "/fuse", "parts to fuse", MOST_PARTS, length));
            }
            _ => {}
        }
        let engine = &resolved.model.engine;
        let part = |(place, part)| part_of(part, place, engine);
        let parts = parts.items.iter().enumerate().map(part).collect::<Result<_, _>>()?;
        let by = self.fuse_by.unwrap_or_default().into();
        let fusion = Fusion::new(by, parts).map_err(|error| {
            let pointer = match error {
                FuseError::Weight { part } => format!("/fuse/{part}/weight"),
                FuseError::Parts(_) | FuseError::NoWeight => "/fuse".to_owned(),
            };
            ApiError::at(Code::OutOfRange, pointer, error.to_string())
        })?;
        let fused = Fused::of_request(fusion);
        engine.check_fusion(&fused.fusion, &resolved.query).map_err(|(part, error)| {
            let error = ApiError::from(error);
            let field = |field: &str| (format!("/{field}"), format!("/fuse/{part}/{field}"));
            let [method, measure] = ["method", "measure"].map(field);
            error.under(&method.0, &method.1).under(&measure.0, &measure.1)
        })?;
        resolved.by(fused)
    }

    /// The candidates in the order of what the parts come to, what was wanted of them, and what was
    /// read.
    pub(super) fn fused_ranking(
        &self,
        fusion: &Fusion,
        plan: &Plan,
        app: &App,
        work: &JobContext,
    ) -> Result<(Ranking, RankOptions, Counts), ApiError> {
        let resolved = &plan.resolved;
        let (engine, contenders) = (&resolved.model.engine, self.contenders());
        let runs = runs(fusion, &contenders)?;
        let places = self.places(&contenders);
        let reads = fusion.methods().next().is_some();
        if reads {
            let total = resolved.check_total(places.clone(), self.most_tokens(app));
            total.map_err(|error| self.locate(error))?;
        }
        let options = self.options(resolved)?;
        let in_parts = engine.fuses_in_parts(fusion);
        let per_part = if in_parts { plan.per_part() } else { contenders.len() };
        let go_on = || work.check().is_ok();
        let scores = work.in_parts_by(contenders.len(), per_part, |parts| {
            engine.fuse_session(self.query_text(), fusion, &resolved.query, |session| {
                parts.each(|part| contenders.score(part, session, go_on));
            })
        });
        let scores = scores
            .map_err(|error| self.locate(resolved.explain(contenders.locate(error), places)))?;
        // A part that was given up is not whole, and by then the job is late.
        work.check()?;
        Resolved::check_read(scores.counts.tokens as usize, self.most_tokens(app))?;
        let fused = scores.fused(fusion, &runs);
        let mut ranking = scores.ranking(&fused, &options, &contenders.all_boosts());
        contenders.restore(&mut ranking);
        let mut counts = ranking.counts;
        counts.add(Counts { texts: 1, ..Counts::default() });
        Ok((ranking, options, counts))
    }
}

/// A part as the engine has it.
fn part_of(part: &FusePart<'_>, place: usize, engine: &Engine) -> Result<Part, ApiError> {
    let wrong = |field: &str, detail: String| {
        Err(ApiError::at(Code::InvalidField, format!("/fuse/{place}{field}"), detail))
    };
    let measure = part.measure.map(|MeasureName(measure)| measure);
    let source = match (&part.method, &part.scores) {
        (Some(method), None) => {
            let name = method.as_ref();
            if name.contains(':') {
                let detail = format!("fuse[{place}] is a fused method itself: name its parts");
                return wrong("/method", detail);
            }
            let method = engine.method(name).map_err(|error| {
                ApiError::from(error).under("/method", &format!("/fuse/{place}/method"))
            })?;
            Source::Method(method, measure)
        }
        (None, Some(_)) if measure.is_some() => {
            return wrong("/measure", format!("fuse[{place}] has no method to be measured"));
        }
        (None, Some(name)) => Source::Run(name.0.clone().into_owned()),
        _ => return wrong("", format!("fuse[{place}] has to have either `method` or `scores`")),
    };
    Ok(Part { source, weight: part.weight.map_or(1.0, |Score(weight)| weight) })
}

/// The numbers that candidates bring, for each name that the fusion wants; or each place where one is
/// missing, as many as are told.
fn runs(fusion: &Fusion, contenders: &Contenders<'_, '_>) -> Result<Vec<Vec<f64>>, ApiError> {
    let mut missing: Vec<(usize, &str)> = Vec::new();
    let mut runs = Vec::new();
    for (_, name) in fusion.runs() {
        let mut run = Vec::with_capacity(contenders.len());
        for (at, candidate) in contenders.each().enumerate() {
            let score = candidate.scores().and_then(|scores| scores.of(name));
            if score.is_none() && missing.len() < MOST_ITEMS {
                missing.push((contenders.place(at), name));
            }
            run.push(score.unwrap_or(f64::NEG_INFINITY));
        }
        runs.push(run);
    }
    let Some(&(place, name)) = missing.first() else { return Ok(runs) };
    let fault = |&(place, name): &(usize, &str)| Fault {
        pointer: format!(
            "/candidates/{place}/scores/{}",
            name.replace('~', "~0").replace('/', "~1")
        ),
        code: Code::InvalidField,
        limit: None,
        actual: None,
    };
    let detail = format!("candidates[{place}] has no number `{name}` under `scores`");
    let faults = missing.iter().map(fault).collect();
    Err(ApiError { faults, ..ApiError::new(Code::InvalidField, detail) })
}
