//! Alerts: reports about the events of a collection, in the order in which they arose.
//!
//! They are computed from the stored items, so nothing else is stored for them: an item records how
//! many items its event had when it was matched and whether the event began to burst with it; items
//! of merged events record when they moved. A reader's position is the name and time of the last
//! item it reported, and the time of the last merge, so it survives a restart, a rewritten log and
//! a move to another home. Of items that a merge or a split moved, only the merge is reported.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use cognate::engine::Engine;
use cognate::window::naming;
use cognate::window::naming::Terms;

use crate::item::is_name;
use crate::{Cancellation, ChooseError, Collection, Item, Result};

pub(super) const PIECE: usize = 256;
/// Bytes of texts and names of alerts after which a read ends; the alert that reaches them is the
/// last.
const PIECE_BYTES: usize = 64 << 10;
const NAME_BYTES: usize = 64;
/// Number of items before an alert's item that are searched for other items of its event: from
/// these the share of chatter is estimated.
const BEFORE: u64 = 2000;
const MAX_TOLD_BY: usize = BEFORE as usize + PIECE;
const TOLD_BY: usize = 256;
const ALL: u8 = 9;

#[derive(Debug, Clone, PartialEq)]
pub struct AlertRule {
    /// Number of items at which an event is reported as begun.
    pub least: u64,
    /// Numbers of items at which an event is reported as grown.
    pub grown: Vec<u64>,
    pub kinds: Vec<AlertKind>,
    /// Highest share of chatter of a reported event, after rounding to hundredths; merges are
    /// always reported.
    pub chatter: Option<f64>,
}

/// Kinds of alerts, in the order in which alerts about one item are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertKind {
    Begun,
    Grown,
    Bursting,
    Merged,
}

impl AlertKind {
    pub const ALL: [Self; 4] = [Self::Begun, Self::Grown, Self::Bursting, Self::Merged];

    pub fn name(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Grown => "grown",
            Self::Bursting => "bursting",
            Self::Merged => "merged",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Alert {
    pub kind: AlertKind,
    pub event: Box<str>,
    /// Number of items that the event had at that moment; for a merge, that it has now.
    pub size: u64,
    pub item: Option<Arc<Item>>,
    /// Share of the event's latest texts that are chatter, as of that moment; `None` for a merge.
    pub chatter: Option<f64>,
    /// The events that were merged into this event.
    pub from: Vec<Box<str>>,
    pub cursor: Cursor,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    pub at: i64,
    pub event: Box<str>,
    pub from: Vec<Box<str>>,
    pub size: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The time of the last reported merge.
    merges: i64,
    /// The rank of the last sent alert, and the time and id of the alert's item.
    item: Option<(u8, i64, Box<str>)>,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.merges)?;
        match &self.item {
            Some((told, time, id)) => write!(f, ".{told}.{time}.{id}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Cursor {
    type Err = ();

    fn from_str(written: &str) -> Result<Self, ()> {
        let mut parts = written.splitn(4, '.');
        let merges = parts.next().and_then(|part| part.parse().ok()).filter(|merges| *merges >= 0);
        let merges = merges.ok_or(())?;
        let item = match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => None,
            (Some(told), Some(time), Some(id)) if is_name(id) => {
                Some((told.parse().map_err(drop)?, time.parse().map_err(drop)?, id.into()))
            }
            _ => return Err(()),
        };
        Ok(Self { merges, item })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    First,
    Now,
    After(Cursor),
}

#[derive(Debug, Clone)]
pub struct AlertReader {
    rule: AlertRule,
    cursor: Cursor,
    next: u64,
    /// Set once the last reported item has left the collection: items up to this time are skipped.
    passed: Option<i64>,
    bits: Arc<TextBits>,
}

/// Information in bits of texts, by the numbers of their items, so that each text is cut into words
/// once.
#[derive(Debug, Clone, Default)]
struct TextBits {
    fingerprint: String,
    bits: BTreeMap<u64, f64>,
}

impl AlertReader {
    pub const MAX_BYTES: usize = 64 << 10;

    pub fn open(
        collection: &dyn Collection,
        rule: AlertRule,
        start: Start,
        now: i64,
    ) -> Result<Self> {
        let (cursor, bits) = (Cursor::default(), Arc::default());
        let mut reader = Self { rule, cursor, next: 0, passed: None, bits };
        match start {
            Start::First => {}
            Start::Now => {
                let added = collection.added(None, 1, now)?;
                reader.cursor.merges = added.last_move;
                if let Some((number, item)) = added.items.into_iter().next() {
                    reader.next = number + 1;
                    reader.cursor.item = Some((ALL, item.time, item.id.clone()));
                }
            }
            Start::After(cursor) => {
                if let Some((_, time, id)) = &cursor.item {
                    let known = collection.numbered(&[id], now)?.pop().flatten();
                    match known.filter(|(_, item)| item.time == *time) {
                        Some((number, _)) => reader.next = number,
                        None => reader.passed = Some(*time),
                    }
                }
                reader.cursor = cursor;
            }
        }
        Ok(reader)
    }

    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// Whether the last reported item has left the collection, so that others may have left
    /// unreported. The reader then continues with the items of later times.
    pub fn has_gap(&self) -> bool {
        self.passed.is_some()
    }

    pub fn is_behind(&self, collection: &dyn Collection, now: i64) -> Result<bool> {
        let added = collection.added(Some(self.next), 1, now)?;
        let is_new = !added.items.is_empty() || added.last_move > self.cursor.merges;
        Ok(is_new || self.passed.is_some())
    }

    /// The next alerts, and whether more can be read at once. A cancelled call leaves the reader's
    /// position as it was.
    pub fn read(
        &mut self,
        collection: &dyn Collection,
        engine: &Engine,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<(Vec<Alert>, bool), ChooseError> {
        let mut after = self.clone();
        let read = after.read_on(collection, engine, now, cancel)?;
        *self = after;
        Ok(read)
    }

    fn read_on(
        &mut self,
        collection: &dyn Collection,
        engine: &Engine,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<(Vec<Alert>, bool), ChooseError> {
        let added = collection.added(Some(self.next), PIECE, now)?;
        let (mut more, mut numbered, mut bytes) = (added.items.len() == PIECE, Vec::new(), 0);
        for (number, item) in added.items {
            if bytes >= PIECE_BYTES {
                more = true;
                break;
            }
            self.next = number + 1;
            if self.passed.is_some_and(|passed| item.time <= passed) {
                continue;
            }
            let last = self.cursor.item.as_ref();
            let told = last.filter(|(_, time, id)| (*time, id) == (item.time, &item.id));
            let told = told.map_or(0, |(told, ..)| *told);
            for kind in self.kinds(&item) {
                let rank = kind as u8 + 1;
                if rank > told {
                    self.cursor.item = Some((rank, item.time, item.id.clone()));
                    numbered.extend(self.alert(kind, &item).map(|alert| (number, alert)));
                    bytes += item.text.len();
                }
            }
            self.cursor.item = Some((ALL, item.time, item.id.clone()));
        }
        self.tell_chatter(&mut numbered, (collection, now), engine, cancel)?;
        let mut alerts: Vec<Alert> = numbered.into_iter().map(|(_, alert)| alert).collect();
        let most = self.rule.chatter.unwrap_or(f64::INFINITY);
        alerts
            .retain(|alert| alert.chatter.is_none_or(|own| (100.0 * own).round() <= 100.0 * most));
        if more {
            return Ok((alerts, true));
        }
        // Items are new from here on, whatever their time.
        self.passed = None;
        if added.last_move > self.cursor.merges {
            let merges = collection.merges(self.cursor.merges, now, cancel)?;
            // The item that moved last may have left.
            let reached = merges.last().map_or(added.last_move, |merged| merged.at);
            for Merged { at, event, from, size } in merges {
                self.cursor.merges = at;
                let (kind, cursor) = (AlertKind::Merged, self.cursor.clone());
                let (item, chatter) = (None, None);
                if self.rule.kinds.contains(&kind) {
                    alerts.push(Alert { kind, event, size, item, chatter, from, cursor });
                }
            }
            self.cursor.merges = reached;
        }
        Ok((alerts, self.cursor.merges < added.last_move))
    }

    fn kinds(&self, item: &Item) -> Vec<AlertKind> {
        // Only a first text was matched without a score: items that were loaded with the names of
        // their events raise no alerts.
        let matched = |event: &&crate::Event| event.score.is_some() || event.size == 1;
        let event = item.event.as_ref().filter(|event| event.moved_from.is_none());
        let Some(event) = event.filter(matched) else { return Vec::new() };
        let kinds = [
            (AlertKind::Begun, event.size == self.rule.least),
            (AlertKind::Grown, self.rule.grown.contains(&event.size)),
            (AlertKind::Bursting, event.bursts),
        ];
        let is_told = |(kind, is_so): &(AlertKind, bool)| *is_so && self.rule.kinds.contains(kind);
        kinds.into_iter().filter(is_told).map(|(kind, _)| kind).collect()
    }

    fn alert(&self, kind: AlertKind, item: &Arc<Item>) -> Option<Alert> {
        let event = item.event.as_ref()?;
        Some(Alert {
            kind,
            event: event.id.clone(),
            size: event.size,
            item: Some(Arc::clone(item)),
            chatter: None,
            from: Vec::new(),
            cursor: self.cursor.clone(),
        })
    }

    /// Sets the share of chatter of alerts, each given with the number of its item.
    fn tell_chatter(
        &mut self,
        alerts: &mut [(u64, Alert)],
        (collection, now): (&dyn Collection, i64),
        engine: &Engine,
        cancel: Cancellation<'_>,
    ) -> Result<(), ChooseError> {
        let Some(((first, _), (last, _))) = alerts.first().zip(alerts.last()) else {
            return Ok(());
        };
        let (from, last) = (first.saturating_sub(BEFORE), *last);
        // No more are there: of those between, one piece was read.
        let most = usize::try_from(last - from + 1).map_or(MAX_TOLD_BY, |all| all.min(MAX_TOLD_BY));
        let items = collection.added(Some(from), most, now)?.items;
        let known = Arc::make_mut(&mut self.bits);
        if known.fingerprint != engine.model().fingerprint() {
            *known = TextBits {
                fingerprint: engine.model().fingerprint().to_owned(),
                ..TextBits::default()
            };
        }
        known.bits = known.bits.split_off(&from);
        let mut events: HashMap<&str, Vec<(u64, f64)>> =
            alerts.iter().map(|(_, alert)| (&*alert.event, Vec::new())).collect();
        let mut terms = Terms::default();
        for (number, item) in items.iter().filter(|(number, _)| *number <= last) {
            let event = item.event.as_ref().and_then(|event| events.get_mut(&*event.id));
            if let Some(texts) = event {
                cancel.check()?;
                let bits = known.bits.entry(*number).or_insert_with(|| {
                    terms.read(engine, &item.text);
                    terms.bits()
                });
                texts.push((*number, *bits));
            }
        }
        let told = alerts.iter().map(|(number, alert)| {
            let texts = events.get(&*alert.event)?;
            let before = texts.iter().rev().skip_while(|(at, _)| at > number);
            let near = before.take_while(|(at, _)| number - at <= BEFORE).take(TOLD_BY);
            let (sum, count) =
                near.fold((0.0, 0), |(sum, count), (_, bits)| (sum + bits, count + 1));
            (count > 0).then(|| naming::chatter(sum / f64::from(count)))
        });
        let told: Vec<Option<f64>> = told.collect();
        for ((_, alert), chatter) in alerts.iter_mut().zip(told) {
            alert.chatter = chatter;
        }
        Ok(())
    }
}

/// The first merges after a time, from these items: at most one piece, but all merges of the same
/// time.
pub(super) fn merges<'i>(
    items: impl Iterator<Item = &'i Arc<Item>> + Clone,
    after: i64,
    cancel: Cancellation<'_>,
) -> Result<Vec<Merged>, ChooseError> {
    let events = || items.clone().filter_map(|item| item.event.as_ref()).enumerate();
    let go_on = |place: usize| if place.is_multiple_of(PIECE) { cancel.check() } else { Ok(()) };
    let mut merged = BTreeMap::<i64, BTreeSet<(&str, &str)>>::new();
    let (mut bytes, mut end) = (0, i64::MAX);
    for (place, event) in events() {
        go_on(place)?;
        let Some((at, from)) = event.moved_at.zip(event.moved_from.as_deref()) else { continue };
        if at > after && at < end && merged.entry(at).or_default().insert((&event.id, from)) {
            bytes += from.len() + NAME_BYTES;
        }
        while bytes > PIECE_BYTES && merged.len() > 1 {
            let Some((at, names)) = merged.pop_last() else { break };
            bytes -= names.iter().map(|(_, from)| from.len() + NAME_BYTES).sum::<usize>();
            end = at;
        }
    }
    let names = merged.values().flatten();
    let mut sizes: HashMap<&str, u64> = names.map(|(event, _)| (*event, 0)).collect();
    if sizes.is_empty() {
        return Ok(Vec::new());
    }
    for (place, event) in events() {
        go_on(place)?;
        if let Some(size) = sizes.get_mut(&*event.id) {
            *size += 1;
        }
    }
    let told = merged.iter().flat_map(|(&at, names)| {
        let names: Vec<(&str, &str)> = names.iter().copied().collect();
        let each = names.chunk_by(|(one, _), (next, _)| one == next);
        each.filter_map(|of_event| {
            let (event, _) = of_event.first()?;
            let from = of_event.iter().map(|(_, from)| Box::from(*from)).collect();
            Some(Merged { at, event: (*event).into(), from, size: sizes.get(event).copied()? })
        })
        .collect::<Vec<Merged>>()
    });
    Ok(told.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EmbeddedHome, Incoming, Item, Limits, Settings, contract};

    fn item(id: &str, time: i64, event: &str, size: u64, is_matched: bool) -> Item {
        let score = if is_matched { "0.9" } else { "null" };
        let bursts = size == 3;
        let written = format!(
            r#"{{"id":"{id}","text":"the quake of {id}","event":
            {{"id":"{event}","size":{size},"score":{score},"bursts":{bursts}}}}}"#
        );
        serde_json::from_str::<Incoming>(&written).unwrap().into_item(time)
    }

    fn rule(grown: Vec<u64>) -> AlertRule {
        AlertRule { least: 2, grown, kinds: AlertKind::ALL.to_vec(), chatter: None }
    }

    #[test]
    fn a_reader_is_told_the_kinds_and_the_chatter_that_it_wants() {
        let engine = contract::engine();
        let home = EmbeddedHome::in_memory(Limits::DEFAULT);
        let (news, _) = home.make("news", Settings::default(), 0).unwrap();
        let items = (1..=3).map(|size| item(&format!("i{size}"), 1, "i1", size, true));
        news.put(items.collect(), 9).unwrap();
        let told = |rule| {
            let mut reader = AlertReader::open(&*news, rule, Start::First, 9).unwrap();
            let (alerts, _) = reader.read(&*news, &engine, 9, Cancellation::NEVER).unwrap();
            assert_eq!(reader.cursor().to_string(), "0.9.1.i3", "what is not told is passed");
            alerts
        };
        let all = told(rule(vec![3]));
        let kinds = |alerts: &[Alert]| alerts.iter().map(|alert| alert.kind).collect::<Vec<_>>();
        assert_eq!(kinds(&all), [AlertKind::Begun, AlertKind::Grown, AlertKind::Bursting]);
        let grown = told(AlertRule { kinds: vec![AlertKind::Grown], ..rule(vec![3]) });
        assert_eq!(kinds(&grown), [AlertKind::Grown]);
        let shown = all.iter().filter_map(|alert| alert.chatter);
        let shown = shown.map(|chatter| (100.0 * chatter).round() / 100.0).fold(0.0, f64::max);
        for (most, count) in [(shown, 3), (shown - 0.01, 0), (1.0, 3)] {
            let told = told(AlertRule { chatter: Some(most), ..rule(vec![3]) });
            assert_eq!(told.len(), count, "{most} of {all:?}");
        }
    }

    #[test]
    fn a_reader_is_told_once_what_comes_after_its_place() {
        let engine = contract::engine();
        let home = EmbeddedHome::in_memory(Limits::DEFAULT);
        let (news, _) = home.make("news", Settings::default(), 0).unwrap();
        let put = |items: Vec<Item>| news.put(items, 9).unwrap();
        let reader = |start| {
            let rule = rule(vec![3]);
            AlertReader::open(&*news, rule, start, 9).unwrap()
        };
        let read = |reader: &mut AlertReader| {
            let (alerts, more) = reader.read(&*news, &engine, 9, Cancellation::NEVER).unwrap();
            assert!(!more);
            alerts
        };
        let short = |alert: &Alert| {
            let item = alert.item.as_ref().map_or("-", |item| &*item.id);
            format!("{:?} {} {} {item}", alert.kind, alert.event, alert.size)
        };
        let told = |mut reader| read(&mut reader).iter().map(short).collect::<Vec<_>>();
        put(vec![
            item("a", 1, "a", 1, true),
            item("b", 2, "a", 2, true),
            item("loaded", 3, "a", 2, false),
            item("c", 4, "a", 3, true),
        ]);
        let mut of_now = reader(Start::Now);
        assert_eq!(told(of_now.clone()), [""; 0]);
        let all = read(&mut reader(Start::First));
        let names: Vec<String> = all.iter().map(short).collect();
        assert_eq!(names, ["Begun a 2 b", "Grown a 3 c", "Bursting a 3 c"]);
        assert!(all.iter().all(|alert| alert.chatter.is_some()));
        for (place, alert) in all.iter().enumerate() {
            assert_eq!(alert.cursor.to_string().parse(), Ok(alert.cursor.clone()));
            assert_eq!(told(reader(Start::After(alert.cursor.clone()))), names[place + 1..]);
        }
        for wrong in ["", "x", "-1", "1.2", "1.9.1", "1.9.1.", "1.-1.1.a"] {
            assert_eq!(wrong.parse::<Cursor>(), Err(()), "{wrong}");
        }
        put(vec![item("d", 5, "d", 2, true)]);
        assert_eq!(read(&mut of_now).iter().map(short).collect::<Vec<_>>(), ["Begun d 2 d"]);
        assert_eq!(told(of_now), [""; 0]);
        // If the item at a reader's position was removed, the reader continues from the item's time.
        let mut late = reader(Start::After(all[2].cursor.clone()));
        assert!(!late.has_gap());
        news.remove(&["c"], 9).unwrap();
        put(vec![item("early", 4, "early", 2, true)]);
        let gap = reader(Start::After(all[2].cursor.clone()));
        assert!(gap.has_gap());
        assert_eq!(told(gap), ["Begun d 2 d"]);
        assert_eq!(
            read(&mut late).iter().map(short).collect::<Vec<_>>(),
            ["Begun d 2 d", "Begun early 2 early"]
        );
    }

    #[test]
    fn a_piece_ends_with_its_bytes_and_a_reader_that_is_cancelled_stays_where_it_was() {
        let engine = contract::engine();
        let home = EmbeddedHome::in_memory(Limits::DEFAULT);
        let (news, _) = home.make("news", Settings::default(), 0).unwrap();
        let long = "quake ".repeat(1500);
        let items = (0..40).map(|at| Item {
            text: long.clone().into(),
            ..item(&format!("i{at}"), at, "a", 2, true)
        });
        news.put(items.collect(), 9).unwrap();
        let rule = rule(Vec::new());
        let mut reader = AlertReader::open(&*news, rule, Start::First, 9).unwrap();
        let before = reader.clone();
        let is_cancelled = || true;
        let cancel = Cancellation::when(&is_cancelled);
        assert!(matches!(reader.read(&*news, &engine, 9, cancel), Err(ChooseError::Stopped)));
        assert_eq!(reader.cursor(), before.cursor());
        let mut told = Vec::new();
        while reader.is_behind(&*news, 9).unwrap() {
            let (alerts, _) = reader.read(&*news, &engine, 9, Cancellation::NEVER).unwrap();
            assert!(alerts.len() <= 1 + PIECE_BYTES / long.len(), "{}", alerts.len());
            told.extend(alerts.into_iter().filter_map(|alert| Some(alert.item?.id.clone())));
        }
        assert_eq!(told.len(), 40);
    }

    #[test]
    fn many_merges_are_told_in_pieces_and_each_whole() {
        let moved = |at: i64, event: &str, from: usize| {
            let written = format!(
                r#"{{"id":"{at}-{from}","text":"x","event":{{"id":"{event}","size":1,
                "moved_from":"{}{from}","moved_at":{at}}}}}"#,
                "f".repeat(200)
            );
            Arc::new(serde_json::from_str::<Incoming>(&written).unwrap().into_item(at))
        };
        // The later merges come first, and the parts of a merge are far from each other.
        let items: Vec<Arc<Item>> =
            (0..200).flat_map(|from| (1..=5).rev().map(move |at| moved(at, "e", from))).collect();
        let (mut after, mut told) = (0, Vec::new());
        loop {
            let merges = merges(items.iter(), after, Cancellation::NEVER).unwrap();
            let Some(last) = merges.last() else { break };
            after = last.at;
            assert!(merges.len() <= 2, "{}", merges.len());
            told.extend(merges);
        }
        assert_eq!(told.iter().map(|merged| merged.at).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert!(told.iter().all(|merged| merged.from.len() == 200 && merged.size == 1000));
    }
}
