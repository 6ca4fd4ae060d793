//! Texts one after another, each with its event and the text that it is a duplicate of.

use cognate::Engine;
use cognate::window::options::{Least, OptionError, OptionProblem, Options};
use cognate::window::stream::{AddPolicy, Item, Stream};
use cognate::window::usual;
use cognate::window::usual::Preset;
use serde_json::json;

use crate::Answer;
use crate::error::Problem;
use crate::question::Question;

/// Maximum number of preceding texts to compare with: their vectors take 100 MB of the module's memory.
const MAX_LAST: usize = 100_000;

/// Columns, a row a text: the first text of its event, its nearest or null, the score, and whether it begins
/// the event or is a duplicate of its nearest.
pub(crate) fn answer(engine: &Engine, question: &Question<'_>) -> Result<Answer, Problem> {
    let (asked, texts) = (&question.stream, &question.texts);
    let preset = asked.preset.as_deref().map(str::parse).transpose();
    let options = Options {
        preset: preset.map_err(Problem::unexpected("preset"))?,
        method: asked.method.as_deref(),
        second: asked.second.as_deref(),
        last: asked.last,
        within: asked.within,
        threshold: asked.threshold.map(Least::Number),
        ..Options::default()
    };
    let options = if asked.only_new { duplicates_of(options, texts.len())? } else { options };
    let refused = |OptionError { option, problem }| match problem {
        OptionProblem::Query(error) => Problem::from(error),
        problem => Problem::Setting(format!("{option}: {problem}")),
    };
    let settings = options.resolve(engine, MAX_LAST).map_err(refused)?;
    let mut stream = Stream::new(engine, settings)?;
    // Without times all texts are of one moment, so that no span leaves one out.
    let time =
        |at: usize| asked.times.as_ref().and_then(|times| times.get(at)).copied().unwrap_or(0);
    let items = texts.iter().enumerate().map(|(at, text)| Item { time: time(at), text });
    let items: Vec<Item<'_>> = items.collect();
    let policy = if asked.only_new { AddPolicy::New } else { AddPolicy::All };
    // What the stream numbers are the texts that were added.
    let mut added: Vec<usize> = Vec::with_capacity(items.len());
    let (mut events, mut nearest) = (Vec::new(), Vec::new());
    let (mut scores, mut begins, mut duplicate) = (Vec::new(), Vec::new(), Vec::new());
    stream.follow_with(
        &items,
        policy,
        || true,
        |decision, _| {
            if policy.adds(&decision) {
                added.push(events.len());
            }
            let index =
                |number: u64| usize::try_from(number).ok().and_then(|at| added.get(at)).copied();
            events.push(index(decision.event));
            nearest.push(decision.nearest.and_then(|near| index(near.number)));
            scores.push(decision.score);
            begins.push(decision.new);
            duplicate.push(decision.duplicate);
        },
    )?;
    Ok(json!({
        "method": settings.second.unwrap_or(settings.method).name(),
        "threshold": settings.rule.threshold,
        "events": events,
        "nearest": nearest,
        "scores": scores,
        "begins": begins,
        "duplicate": duplicate,
    })
    .into())
}

/// The options by which each text is compared with all texts that stay, and is a duplicate from the threshold on.
fn duplicates_of(options: Options<'_>, texts: usize) -> Result<Options<'_>, Problem> {
    if texts > MAX_LAST {
        return Err(Problem::Setting(format!("texts: expected at most {MAX_LAST}, got {texts}")));
    }
    let least = options.threshold.unwrap_or(Least::Number(usual::DUPLICATES));
    let duplicate_score = match least {
        Least::Number(number) => Some(number),
        Least::Calibrated => None,
    };
    let (preset, threshold) = (Some(Preset::Stories), Some(least));
    Ok(Options { preset, last: Some(texts.max(1)), threshold, duplicate_score, ..options })
}
