//! Follows a stream once and groups it at several thresholds, and so shows for each how many events
//! there are, how large they are, and how they agree with labels. Search and grouping are those of
//! `match`. Where the texts are stored is not known here.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cognate::engine::{Embeddings, Engine, Query};
use cognate::window::Near;
use cognate::window::events::Rule;
use cognate::window::stream::{AddPolicy, Item, Reasons, Settings, Stream};
use cognate_files::records::{Options as RecordOptions, Records};
use cognate_stats::clustering;
use cognate_stats::clustering::Agreement;
use cognate_stats::page::table::{Better, Cell, Column, Mark, Table};
use cognate_stats::page::{Head, Page};
use rayon::prelude::*;
use serde::Serialize;

use crate::events::courses::largest;
use crate::events::draws::Labelled;
use crate::events::{PreparedStream, file_name, worth};
use crate::{EvalError, Result};

/// Texts that are followed at a time.
const TOGETHER: usize = 4096;
/// Number of thresholds that are tried on either side of the default.
const AROUND: i16 = 4;
const STEP: f32 = 0.03;

/// Labels by people, in a file of records.
#[derive(Debug, Clone)]
pub enum SweepLabels {
    /// The fields `a` and `b` name two texts, `label` is 1 if they belong to one event, else 0.
    Pairs(PathBuf),
    /// The field `id` names a text, `event` its event; a text without an event is an event of its
    /// own.
    Events(PathBuf),
}

#[derive(Debug, Clone, Serialize)]
pub struct Sweep {
    pub format: &'static str,
    pub fingerprint: String,
    pub name: String,
    pub texts: usize,
    /// Labelled pairs or texts whose texts exist.
    pub labelled: usize,
    /// Labels that name a missing text.
    pub unknown: usize,
    pub thresholds: Vec<SweptThreshold>,
    #[serde(skip)]
    notes: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct SweptThreshold {
    pub threshold: f32,
    /// Number of events of two texts or more, and of the texts in them.
    pub events: usize,
    pub joined: usize,
    /// Number of texts of the largest event.
    pub largest: usize,
    /// The share of the pairs labelled as one event that are in one event; `None` if no pair is so labelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// The share of the labelled pairs that should be in one event that are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figures: Option<Agreement>,
}

/// Labels by the indices of their texts.
enum Known {
    Nothing,
    Pairs(Vec<(usize, usize, bool)>),
    Events(Vec<(usize, u64)>),
}

impl Known {
    /// The labels, and how many labels name a text that is missing.
    fn read(labels: &SweepLabels, places: &HashMap<&str, usize>) -> Result<(Self, usize)> {
        let (mut known, unknown) = match labels {
            SweepLabels::Pairs(path) => {
                let (pairs, unknown) = read(path, ["a", "b", "label"], |[a, b, is]| {
                    let is = match &**is {
                        "1" => true,
                        "0" => false,
                        _ => return Err("`label`: expected 1 or 0".to_owned()),
                    };
                    Ok(places.get(&**a).zip(places.get(&**b)).map(|(&a, &b)| (a, b, is)))
                })?;
                (Self::Pairs(pairs), unknown)
            }
            SweepLabels::Events(path) => {
                let mut numbers = HashMap::new();
                let (labelled, unknown) = read(path, ["id", "event"], |[id, event]| {
                    let alone = Some(id.clone()).filter(|_| event.is_empty());
                    let next = numbers.len() as u64;
                    let number = *numbers.entry((event.clone(), alone)).or_insert(next);
                    Ok(places.get(&**id).map(|&place| (place, number)))
                })?;
                (Self::Events(labelled), unknown)
            }
        };
        // A text that is labelled twice counts once, by its first label.
        if let Self::Events(labelled) = &mut known {
            labelled.sort_by_key(|&(place, _)| place);
            labelled.dedup_by_key(|&mut (place, _)| place);
        }
        if known.count() == 0 {
            let (SweepLabels::Pairs(file) | SweepLabels::Events(file)) = labels;
            let problem = "it names no text that is there".to_owned();
            return Err(EvalError::Data { file: file.display().to_string(), problem });
        }
        Ok((known, unknown))
    }

    fn count(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Pairs(pairs) => pairs.len(),
            Self::Events(labelled) => labelled.len(),
        }
    }

    fn judge(&self, threshold: f32, found: &[u64]) -> SweptThreshold {
        let sizes = largest(found);
        let several = || sizes.iter().map(|&(size, _)| size).filter(|&size| size > 1);
        let mut swept = SweptThreshold {
            threshold,
            events: several().count(),
            joined: several().sum(),
            largest: sizes.first().map_or(0, |&(size, _)| size),
            precision: None,
            recall: None,
            figures: None,
        };
        match self {
            Self::Nothing => {}
            Self::Pairs(pairs) => {
                let count = |of: &dyn Fn(bool, bool) -> bool| {
                    let each = pairs.iter().filter(|&&(a, b, is)| of(found[a] == found[b], is));
                    each.count() as f64
                };
                let both = count(&|joined, is| joined && is);
                let share = |all: f64| (all > 0.0).then(|| both / all);
                swept.precision = share(count(&|joined, _| joined));
                swept.recall = share(count(&|_, is| is));
            }
            Self::Events(labelled) => {
                let (gold, found): (Vec<u64>, Vec<u64>) =
                    labelled.iter().map(|&(place, gold)| (gold, found[place])).unzip();
                swept.figures = clustering::agreement(&gold, &found);
            }
        }
        swept
    }
}

/// Reads some fields of every record, and counts the records that are skipped.
fn read<const N: usize, T>(
    path: &Path,
    fields: [&str; N],
    mut take: impl FnMut(&[Box<str>; N]) -> Result<Option<T>, String>,
) -> Result<(Vec<T>, usize)> {
    let mut records = Records::open(path, RecordOptions::default())?;
    records.peek_names()?;
    let mut columns = Vec::with_capacity(N);
    for field in fields {
        columns.push(records.column(field)?);
    }
    let (mut all, mut nothing) = (Vec::new(), 0);
    loop {
        let Some(record) = records.read()? else { return Ok((all, nothing)) };
        let values = || -> Result<[Box<str>; N], String> {
            let each =
                columns.iter().map(|column| Ok(record.field(column)?.unwrap_or_default().into()));
            let each = each.collect::<Result<Vec<Box<str>>, String>>()?;
            <[Box<str>; N]>::try_from(each).map_err(|_| "expected all fields".to_owned())
        };
        match values().and_then(|values| take(&values)) {
            Ok(Some(one)) => all.push(one),
            Ok(None) => nothing += 1,
            Err(problem) => return Err(records.wrong(problem).into()),
        }
    }
}

/// Follows texts, in their order and each with its name, and groups them at each of the thresholds,
/// by default at those around the threshold of the settings.
pub fn sweep_events(
    engine: &Engine,
    (name, texts): (&str, &[(&str, Item<'_>)]),
    settings: &Settings,
    thresholds: &[f32],
    labels: Option<&SweepLabels>,
) -> Result<Sweep> {
    let named = texts.iter().enumerate().map(|(place, (id, _))| (*id, place));
    let places: HashMap<&str, usize> = named.collect();
    let nothing = Ok((Known::Nothing, 0));
    let (known, unknown) = labels.map_or(nothing, |labels| Known::read(labels, &places))?;
    let refused = |source| EvalError::Query { file: name.to_owned(), source };
    let items: Vec<Item<'_>> = texts.iter().map(|&(_, item)| item).collect();
    let mut stream = Stream::new(engine, *settings).map_err(refused)?;
    let (mut near, mut vectors) = (Vec::<Vec<Near>>::new(), Embeddings::default());
    for together in items.chunks(TOGETHER) {
        let tell = |_, reasons: Reasons<'_>| near.push(reasons.nearest.into());
        stream.follow_with(together, AddPolicy::All, || true, tell).map_err(refused)?;
    }
    if settings.rule.centre != 0.0 {
        let query = Query { truncate: true, ..Query::new(settings.method) };
        let texts: Vec<&str> = items.iter().map(|item| item.text).collect();
        vectors = engine.embed(&texts, &query).map_err(refused)?;
    }
    let times = items.iter().map(|item| item.time).collect();
    let stream = &Labelled { times, ..Labelled::default() };
    let prepared = PreparedStream { stream, vectors, near, limits: settings.limits };
    let usual = settings.rule.threshold;
    let around =
        (-AROUND..=AROUND).map(|step| ((usual + STEP * f32::from(step)) * 1e4).round() / 1e4);
    let around: Vec<f32> = around.collect();
    let thresholds = if thresholds.is_empty() { &around } else { thresholds };
    let votes = settings.rule.votes.min(settings.nearest);
    let swept = thresholds.par_iter().map(|&threshold| {
        let found = prepared.events(&Rule { threshold, votes, ..settings.rule });
        known.judge(threshold, &found)
    });
    let swept: Vec<SweptThreshold> = swept.collect();
    let by = settings.second.unwrap_or(settings.method).name();
    let mut notes = vec![format!(
        "Matched anew by {by}, in memory: {} votes, the last {} texts; the threshold that was asked for is {usual}. \
         `joined` are texts in events of two or more.",
        settings.rule.votes, settings.limits.last
    )];
    notes.extend(match &known {
        Known::Nothing => None,
        Known::Pairs(pairs) => Some(format!(
            "Precision: of {} labelled pairs those of one event that should be; recall: those that should \
             be and are.",
            pairs.len()
        )),
        Known::Events(labelled) => {
            let best = swept.iter().filter_map(|one| Some((worth(one.figures.as_ref()?), one)));
            let best = best.max_by(|(one, _), (other, _)| one.total_cmp(other));
            let best = best.map_or(usual, |(_, best)| best.threshold);
            Some(format!(
                "Agreement with the events of {} labelled texts; the mean of F1, B³ F, AMI and ARI is best \
                 by --threshold {best}.",
                labelled.len()
            ))
        }
    });
    if unknown > 0 {
        notes.push(format!("Left aside because their texts are not there: {unknown} labels."));
    }
    Ok(Sweep {
        format: "cognate-sweep-1",
        fingerprint: engine.model().fingerprint().to_owned(),
        name: name.to_owned(),
        texts: items.len(),
        labelled: known.count(),
        unknown,
        thresholds: swept,
        notes,
    })
}

impl Sweep {
    pub fn html(&self) -> String {
        let facts = [("texts", self.texts.to_string()), ("fingerprint", self.fingerprint.clone())];
        let name = file_name(&self.name);
        let mut page = Page::new(&Head {
            kicker: "cognate collection sweep",
            title: "Events by threshold",
            subject: name,
            facts: &facts,
        });
        let table = self.table();
        page.section(&table.title);
        page.table(&table);
        page.finish()
    }

    fn table(&self) -> Table {
        let neither = |name: &str| Column::new(name, Better::Neither);
        let higher = |name: &str| Column::new(name, Better::Higher);
        let mut columns: Vec<Column> = ["events", "joined", "largest"].map(neither).into();
        let all = || self.thresholds.iter();
        let (pairs, events) =
            (all().any(|one| one.recall.is_some()), all().any(|one| one.figures.is_some()));
        if pairs {
            columns.extend(["precision", "recall"].map(higher));
        }
        if events {
            columns.extend(["F1", "B³ P", "B³ R", "B³ F", "AMI", "ARI"].map(higher));
        }
        let share = |share: Option<f64>| match share {
            Some(share) => Cell::share(share, Mark::None),
            None => Cell::plain("–".to_owned()),
        };
        let row = |one: &SweptThreshold| {
            let mut cells: Vec<Cell> =
                [one.events, one.joined, one.largest].map(Cell::count).into();
            if pairs {
                cells.extend([one.precision, one.recall].map(share));
            }
            if events {
                let of = |figure: fn(&Agreement) -> f64| share(one.figures.as_ref().map(figure));
                let b_cubed = [of(|it| it.b_cubed_precision), of(|it| it.b_cubed_recall)];
                cells.push(of(|it| it.best_match_f1));
                cells.extend(b_cubed);
                cells.extend([of(|it| it.b_cubed_f), of(|it| it.ami), of(|it| it.ari)]);
            }
            (format!("{}", one.threshold), cells)
        };
        let title = format!("{}: {} texts", file_name(&self.name), self.texts);
        let (rows, notes) = (all().map(row).collect(), self.notes.clone());
        Table { title, stub: "threshold", columns, rows, notes }
    }
}

impl std::fmt::Display for Sweep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.table())
    }
}

#[cfg(test)]
mod tests {
    use cognate::window::options::{MAX_LAST, Options};

    use super::*;

    const POSTS: [&str; 8] = [
        "strong earthquake shakes Lima this morning",
        "river floods the old town of Passau",
        "earthquake in Lima, people run into the streets",
        "my cat sleeps on the sofa",
        "Lima earthquake: houses damaged",
        "Passau old town under water as river floods",
        "earthquake shakes Lima, several hurt",
        "Lima earthquake: houses damaged",
    ];

    #[test]
    fn a_sweep_finds_what_streams_of_its_thresholds_find() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default.safetensors");
        let engine = Engine::open(path.as_ref(), &Default::default()).unwrap();
        let ids: Vec<String> = (0..POSTS.len()).map(|at| format!("p{at}")).collect();
        let items = POSTS.iter().zip(0..).map(|(text, time)| Item { text, time });
        let texts: Vec<_> = ids.iter().map(String::as_str).zip(items.clone()).collect();
        let folder = tempfile::tempdir().unwrap();
        let [pairs, events] = ["p.tsv", "e.tsv"].map(|name| folder.path().join(name));
        std::fs::write(&pairs, "a\tb\tlabel\np0\tp2\t1\np0\tp1\t0\np0\tp9\t1\np4\tp7\t1\n")
            .unwrap();
        let of_events = "id\tevent\np0\tq\np2\tq\np4\tq\np1\tf\np5\tf\np0\tx\np3\t\np6\t\n";
        std::fs::write(&events, of_events).unwrap();
        for centre in [0.0, 0.3] {
            let options = Options { centre: Some(centre), ..Options::default() };
            let settings = options.resolve(&engine, MAX_LAST).unwrap();
            let wanted = [0.2, 0.5, 0.6, 0.9];
            let labels = SweepLabels::Pairs(pairs.clone());
            let swept =
                sweep_events(&engine, ("day", &texts), &settings, &wanted, Some(&labels)).unwrap();
            assert_eq!((swept.texts, swept.labelled, swept.unknown), (8, 3, 1));
            for one in &swept.thresholds {
                let rule = Rule { threshold: one.threshold, ..settings.rule };
                let mut stream = Stream::new(&engine, Settings { rule, ..settings }).unwrap();
                let all: Vec<Item<'_>> = items.clone().collect();
                let found = stream.follow(&all).unwrap();
                let found: Vec<u64> = found.iter().map(|decision| decision.event).collect();
                let sizes = largest(&found);
                assert_eq!(one.largest, sizes[0].0, "{one:?}");
                let joined = sizes.iter().map(|&(size, _)| size).filter(|&size| size > 1);
                assert_eq!(one.joined, joined.sum::<usize>());
                let same = |a: usize, b: usize| usize::from(found[a] == found[b]);
                let recall = (same(0, 2) + same(4, 7)) as f64 / 2.0;
                assert_eq!(one.recall, Some(recall));
            }
            assert!(swept.thresholds[0].largest > swept.thresholds[3].largest, "{swept}");
        }
        let settings = Options::default().resolve(&engine, MAX_LAST).unwrap();
        let labels = SweepLabels::Events(events);
        let swept = sweep_events(&engine, ("day", &texts), &settings, &[], Some(&labels)).unwrap();
        assert_eq!((swept.thresholds.len(), swept.labelled), (9, 7));
        // Texts without an event do not form an event: at the highest threshold all stand alone.
        let alone =
            sweep_events(&engine, ("day", &texts), &settings, &[1.0], Some(&labels)).unwrap();
        let recall = alone.thresholds[0].figures.unwrap().b_cubed_recall;
        assert!((recall - 4.0 / 7.0).abs() < 1e-9, "{recall}");
        assert!(swept.thresholds.iter().all(|one| one.figures.is_some()), "{swept}");
        assert!(swept.html().contains("B³ F") && swept.to_string().contains("largest"));
        let none = SweepLabels::Pairs(folder.path().join("e.tsv"));
        assert!(sweep_events(&engine, ("day", &texts), &settings, &[], Some(&none)).is_err());
    }
}
