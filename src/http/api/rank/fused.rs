//! Turns the fields of a request into a fusion of rankings.

use cognate::engine::fuse::{FuseError, Fusion, MAX_PARTS, Part, Source};
use cognate::engine::{Candidates, Engine, QueryError};

use crate::http::api::rank::RankRequest;
use crate::http::error::{ApiError, Code, Fault, MAX_ITEMS, Pointer, Result, Segment};
use crate::http::request::fields::{Candidate, FusePart, MeasureName, Score};
use crate::http::request::query::{Fused, Resolved};

impl<'b> RankRequest<'b> {
    /// Returns the question with a fusion of the parts that the request names.
    pub(super) fn fused(&self, resolved: Resolved) -> Result<Resolved> {
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
            length if length > MAX_PARTS => {
                let code = Code::TooManyItems;
                return Err(ApiError::beyond(code, "/fuse", "parts to fuse", MAX_PARTS, length));
            }
            _ => {}
        }
        let engine = &resolved.model.engine;
        let part = |(place, part)| part_of(part, place, engine);
        let parts = parts.items.iter().enumerate().map(part).collect::<Result<_, _>>()?;
        let by = self.fuse_by.unwrap_or_default();
        let fusion = Fusion::new(by, parts).map_err(|error| {
            let fuse = Pointer::from("/fuse");
            let pointer = match error {
                FuseError::Weight { part } => fuse.index(part).field("weight"),
                FuseError::Parts(_) | FuseError::NoWeight => fuse,
            };
            ApiError::at(Code::OutOfRange, pointer, error.to_string())
        })?;
        let fused = Fused::of_request(fusion);
        engine.check_fusion(&fused.fusion, &resolved.query).map_err(|(part, error)| {
            let of_part = Pointer::from("/fuse").index(part);
            // A part has no field for opposites: that of the question counts for all.
            let of_all = matches!(error, QueryError::OppositesNotCounted { .. });
            let place = |it: Pointer| if of_all { it } else { it.within(of_part.clone()) };
            ApiError::from(error).renamed(place)
        })?;
        resolved.by(fused)
    }
}

/// A part as the engine has it.
fn part_of(part: &FusePart<'_>, place: usize, engine: &Engine) -> Result<Part> {
    let of_part = Pointer::from("/fuse").index(place);
    let wrong = |field: &'static str, detail: &'static str| {
        let pointer = Pointer::from(field).within(of_part.clone());
        let faults = vec![Fault::at(Code::InvalidField, pointer)];
        Err(ApiError { faults, ..ApiError::about(Code::InvalidField, of_part.clone(), detail) })
    };
    let measure = part.measure.map(|MeasureName(measure)| measure);
    let source = match (&part.method, &part.scores) {
        (Some(method), None) => {
            let name = method.as_ref();
            if name.contains(':') {
                return wrong("/method", "is a fused method itself: name its parts");
            }
            let method = engine.method(name).map_err(|error| {
                ApiError::from(error).renamed(|pointer| pointer.within(of_part.clone()))
            })?;
            Source::Method(method, measure)
        }
        (None, Some(_)) if measure.is_some() => {
            return wrong("/measure", "has no method to be measured");
        }
        (None, Some(name)) => Source::Run(name.0.clone().into_owned()),
        _ => return wrong("", "has to have either `method` or `scores`"),
    };
    Ok(Part { source, weight: part.weight.map_or(1.0, |Score(weight)| weight) })
}

/// The candidates' scores for each run that the fusion names; or the missing ones, as many as are
/// reported.
pub(super) fn runs(
    fusion: &Fusion,
    candidates: &Candidates<'_, Candidate<'_>>,
) -> Result<Vec<Vec<f64>>> {
    let mut missing: Vec<(usize, &str)> = Vec::new();
    let mut runs = Vec::new();
    for (_, name) in fusion.runs() {
        let mut run = Vec::with_capacity(candidates.ranked().len());
        for (at, candidate) in candidates.ranked().iter().enumerate() {
            let score = candidate.scores().and_then(|scores| scores.of(name));
            if score.is_none() && missing.len() < MAX_ITEMS {
                missing.push((candidates.place(at), name));
            }
            run.push(score.unwrap_or(f64::NEG_INFINITY));
        }
        runs.push(run);
    }
    let Some(&(place, name)) = missing.first() else { return Ok(runs) };
    let candidate = |place: usize| Pointer::from("/candidates").index(place);
    let fault = |&(place, name): &(usize, &str)| {
        let scores = candidate(place).field("scores");
        Fault::at(Code::InvalidField, scores.then(Segment::Key(name.into())))
    };
    let faults = missing.iter().map(fault).collect();
    let detail = format!("has no number `{name}` under `scores`");
    Err(ApiError { faults, ..ApiError::about(Code::InvalidField, candidate(place), detail) })
}
