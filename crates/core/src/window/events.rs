//! Events in a stream: each text joins the event that its nearest before it speak for, or begins one.
//!
//! An event's score for a text is the mean of the scores of its `votes` texts nearest to it (an event
//! of which the window holds fewer needs as many as are there), of which those that are not among the
//! nearest found count 0; `centre` of it is replaced by the cosine between the text and the mean of the
//! last of the event's texts that the window holds. All of it follows from what is in the window, so that
//! a window that is made anew decides as one that went on. A young event loses a step of its score. The event
//! of a duplicate has the duplicate's score. The text joins the event of the highest score if that is not below the threshold. One pair that
//! is alike by chance so joins no two events, which it does where the nearest text alone decides. Events
//! of which the window holds no text any more are forgotten.

use std::collections::{HashMap, VecDeque};
use std::ops::RangeInclusive;

use cognate_kernels::vector;
use cognate_kernels::vector::Row;
use serde::{Deserialize, Serialize};

use crate::window::Near;

/// How a text finds its event.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// The least score at which a text joins an event.
    pub threshold: f32,
    /// Number of an event's texts that vote, at least 1 and no more than texts are found.
    pub votes: usize,
    /// What an event of 1, 2 and 3 texts since it began loses of its score.
    pub steps: [f32; 3],
    /// The weight of the centre's score in an event's score, from 0 to 1.
    pub centre: f32,
    /// The least score at which a text is a duplicate of its nearest, whose event it joins: an event
    /// that slept has few who speak for it, and a copy of one of its texts begins no other.
    pub duplicate: f32,
}

/// The decision about a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// The number of the text that the event began with.
    pub event: u64,
    /// Whether the event begins with this text.
    pub new: bool,
    /// The score of the event that was joined; if none was, the best score among the events considered.
    pub score: Option<f32>,
    /// The nearest text of the event that was joined; if none was, the nearest text of all.
    pub nearest: Option<Near>,
    /// Whether the text is a duplicate of `nearest`.
    pub duplicate: bool,
}

/// An event that a text might have joined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Considered {
    /// The number of the text that the event began with.
    pub event: u64,
    /// The score of the event, less `step`.
    pub score: f32,
    /// How many of its texts spoke for it.
    pub votes: usize,
    /// How many should have.
    pub wanted: usize,
    /// What the event lost because it has few texts.
    pub step: f32,
    /// The nearest of its texts.
    pub nearest: Near,
}

/// Milliseconds of the time span in which the texts of an event are counted, and of the span before it.
const BURST_MS: i64 = 3_600_000;
const BURST_MIN: usize = 10;
/// A burst has this many times the texts of the span before.
const BURST_RATIO: usize = 3;
/// Most texts of an event that are counted, so that a large event takes no longer.
const BURST_LOOKED: usize = 4_096;

/// The events of the texts in a window.
#[derive(Debug, Default)]
pub struct Events {
    /// The number of the first text that is remembered.
    first: u64,
    members: VecDeque<Member>,
    known: HashMap<u64, Event>,
}

/// The mean of at most this many last texts of an event is its centre.
const CENTRE_TEXTS: usize = 16;

#[derive(Debug, Clone, Copy)]
struct Member {
    event: u64,
    time: i64,
    /// The text of the event before it, [`NONE`] if it is the first.
    before: u64,
    /// The latest of the event's texts up to this one, of those that were remembered when it came.
    latest: u64,
}

const NONE: u64 = u64::MAX;

/// Bytes of memory of an event, with its place in the list.
const EVENT_BYTES: usize = 56;

#[derive(Debug, Clone)]
struct Event {
    newest: u64,
    /// Texts since it began.
    size: u64,
    remembered: u64,
}

impl Events {
    /// No events; the first text will have this number.
    pub fn starting_at(first: u64) -> Self {
        Self { first, ..Self::default() }
    }

    /// The event of a text that is remembered.
    pub fn of(&self, number: u64) -> Option<u64> {
        self.member(number).map(|member| member.event)
    }

    fn member(&self, number: u64) -> Option<&Member> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.members.get(at)
    }

    /// Number of texts of an event since it began.
    pub fn size(&self, event: u64) -> u64 {
        self.known.get(&event).map_or(0, |event| event.size)
    }

    /// Number of remembered events.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Bytes of memory that they take, roughly.
    pub fn bytes(&self) -> usize {
        self.members.len() * size_of::<Member>() + self.known.len() * EVENT_BYTES
    }

    /// Decides the event of the next text. `near` has the nearest texts of the window within `reach`, the
    /// best first. Also returns the events that the text might have joined, in the order of their nearest
    /// texts. `vector_of` gives vectors of the window's texts, which only centres need.
    pub fn decide<'v>(
        &self,
        vector: Option<&[f32]>,
        near: &[Near],
        reach: &RangeInclusive<i64>,
        rule: &Rule,
        vector_of: impl Fn(u64) -> Option<&'v [f32]>,
    ) -> (Decision, Vec<Considered>) {
        let mut considered: Vec<Considered> = Vec::new();
        let mut best: Option<Considered> = None;
        for (at, &nearest) in near.iter().enumerate() {
            let is_new = |event: &u64| !considered.iter().any(|known| known.event == *event);
            let Some(event) = self.of(nearest.number).filter(is_new) else { continue };
            let one = match nearest.score >= rule.duplicate {
                true => {
                    let score = nearest.score;
                    Considered { event, score, votes: 1, wanted: 1, step: 0.0, nearest }
                }
                false => {
                    let mut one =
                        self.votes(event, near.get(at..).unwrap_or_default(), reach, rule);
                    one.score *= 1.0 - rule.centre;
                    if let Some(vector) = vector.filter(|_| rule.centre != 0.0) {
                        let centre = self.centre(event, vector, reach, &vector_of);
                        one.score += rule.centre * centre;
                    }
                    one
                }
            };
            considered.push(one);
            if best.is_none_or(|best| one.score > best.score) {
                best = Some(one);
            }
        }
        // A mean that reaches the score of duplicates is one of duplicates.
        let least = rule.threshold.min(rule.duplicate);
        let joined = best.filter(|best| best.score >= least);
        let nearest = joined.map(|joined| joined.nearest).or(near.first().copied());
        let decision = Decision {
            event: joined.map_or(self.next(), |joined| joined.event),
            new: joined.is_none(),
            score: best.map(|best| best.score),
            nearest,
            duplicate: nearest.is_some_and(|nearest| nearest.score >= rule.duplicate),
        };
        (decision, considered)
    }

    fn step(&self, event: u64, rule: &Rule) -> f32 {
        let at = usize::try_from(self.size(event).saturating_sub(1)).unwrap_or(usize::MAX);
        rule.steps.get(at).copied().unwrap_or(0.0)
    }

    /// The mean score of an event's votes for a text, less the event's step. `near` begins with the nearest
    /// text of the event.
    fn votes(
        &self,
        event: u64,
        near: &[Near],
        reach: &RangeInclusive<i64>,
        rule: &Rule,
    ) -> Considered {
        let wanted = self.within(event, reach).take(rule.votes.max(1)).count();
        let of_event = near.iter().filter(|near| self.of(near.number) == Some(event)).take(wanted);
        let (sum, votes) =
            of_event.fold((0.0, 0), |(sum, votes), near| (sum + near.score, votes + 1));
        let step = self.step(event, rule);
        let score = sum / wanted.max(1) as f32 - step;
        let nearest = near.first().copied().unwrap_or(Near { number: NONE, score: 0.0 });
        Considered { event, score, votes, wanted, step, nearest }
    }

    /// Returns the cosine of a text to the mean of an event's last texts, each scaled to length 1.
    fn centre<'v>(
        &self,
        event: u64,
        vector: &[f32],
        reach: &RangeInclusive<i64>,
        vector_of: impl Fn(u64) -> Option<&'v [f32]>,
    ) -> f32 {
        let mut sum = vec![0.0; vector.len()];
        for other in self.within(event, reach).take(CENTRE_TEXTS).filter_map(vector_of) {
            let length = vector::norm(Row::F32(other));
            if length.is_finite() && length > 0.0 {
                vector::add_scaled(&mut sum, 1.0 / length, Row::F32(other));
            }
        }
        let cosine = vector::cosine(Row::F32(vector), Row::F32(&sum));
        if cosine.is_finite() { cosine } else { 0.0 }
    }

    /// The numbers of an event's remembered texts whose times are within `reach`, the last first.
    fn within(&self, event: u64, reach: &RangeInclusive<i64>) -> impl Iterator<Item = u64> {
        let newest = self.known.get(&event).map_or(NONE, |event| event.newest);
        self.back_from(newest)
            .filter(|(_, member)| reach.contains(&member.time))
            .map(|(number, _)| number)
    }

    /// Whether an event bursts with its last text and did not with the one before. It bursts where the hour
    /// up to its latest text has at least ten of its texts, and three times as many as the hour before; one
    /// that is not older than these has no past to compare with. Texts that are remembered and not from
    /// before `oldest` count, the last few thousand of an event.
    pub fn begins_to_burst(&self, event: u64, oldest: i64) -> bool {
        let newest = self.known.get(&event).map_or(NONE, |known| known.newest);
        let before = self.member(newest).map_or(NONE, |member| member.before);
        self.bursts(newest, oldest) && !self.bursts(before, oldest)
    }

    /// Whether the event of a text bursts with it.
    fn bursts(&self, number: u64, oldest: i64) -> bool {
        let Some((_, end)) = self.latest(number) else { return false };
        let (mut recent, mut earlier, mut is_older) = (0, 0, false);
        let texts = self.back_from(number).map(|(_, text)| text);
        for text in texts.take(BURST_LOOKED).filter(|text| text.time >= oldest) {
            let age = end.saturating_sub(text.time);
            is_older |= age >= 2 * BURST_MS;
            recent += usize::from(age < BURST_MS);
            earlier += usize::from((BURST_MS..2 * BURST_MS).contains(&age));
            // All that came before it is as old: only late texts stand behind later ones.
            let latest = self.member(text.latest);
            if latest.is_some_and(|latest| end.saturating_sub(latest.time) >= 2 * BURST_MS) {
                break;
            }
        }
        is_older && recent >= BURST_MIN && recent >= BURST_RATIO * earlier
    }

    /// The texts of an event that are remembered, from one of them back, and their numbers.
    fn back_from(&self, number: u64) -> impl Iterator<Item = (u64, &Member)> {
        let text = |number| Some((number, self.member(number)?));
        std::iter::successors(text(number), move |(_, member)| text(member.before))
    }

    /// Number and time of the latest of the texts of an event up to one, of those that are remembered.
    fn latest(&self, number: u64) -> Option<(u64, i64)> {
        let text = self.member(number)?;
        match self.member(text.latest) {
            Some(latest) => Some((text.latest, latest.time)),
            // It came before others that are remembered, and was forgotten first.
            None => {
                let each = self.back_from(number).map(|(number, member)| (number, member.time));
                each.max_by_key(|(_, time)| *time)
            }
        }
    }

    fn next(&self) -> u64 {
        self.first + self.members.len() as u64
    }

    /// Adds the next text, of this time, to an event.
    pub fn add(&mut self, event: u64, time: i64) {
        let number = self.next();
        let fresh = Event { newest: NONE, size: 0, remembered: 0 };
        let known = self.known.entry(event).or_insert(fresh);
        let before = std::mem::replace(&mut known.newest, number);
        known.size = known.size.saturating_add(1);
        known.remembered += 1;
        let latest = self.latest(before).filter(|(_, latest)| *latest > time);
        let latest = latest.map_or(number, |(number, _)| number);
        self.members.push_back(Member { event, time, before, latest });
    }

    /// Forgets the texts with smaller numbers, and the events that have no texts left.
    pub fn forget_before(&mut self, number: u64) {
        while self.first < number
            && let Some(member) = self.members.pop_front()
        {
            self.first += 1;
            if let Some(known) = self.known.get_mut(&member.event) {
                known.remembered -= 1;
                if known.remembered == 0 {
                    self.known.remove(&member.event);
                }
            }
        }
    }

    /// The events that are remembered, by number, and texts since each began.
    pub fn all(&self) -> Vec<(u64, u64)> {
        let mut all: Vec<_> =
            self.known.iter().map(|(&event, known)| (event, known.size)).collect();
        all.sort_unstable();
        all
    }

    /// Sets the size of an event whose texts were [added](Self::add) before.
    pub fn set_size(&mut self, event: u64, size: u64) {
        if let Some(known) = self.known.get_mut(&event) {
            known.size = size.max(known.remembered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule =
        Rule { threshold: 0.5, votes: 2, steps: [0.0; 3], centre: 0.0, duplicate: 1.0 };

    fn near(list: &[(u64, f32)]) -> Vec<Near> {
        list.iter().map(|&(number, score)| Near { number, score }).collect()
    }

    /// Decides on a text without a vector and adds it.
    fn join_at(events: &mut Events, time: i64, near: &[Near], since: i64, rule: &Rule) -> Decision {
        let (decision, _) = events.decide(None, near, &(since..=i64::MAX), rule, |_| None);
        events.add(decision.event, time);
        decision
    }

    fn join(events: &mut Events, near: &[Near]) -> Decision {
        join_at(events, 0, near, i64::MIN, &RULE)
    }

    #[test]
    fn an_event_needs_as_many_votes_as_it_has_texts() {
        let mut events = Events::default();
        let first = join(&mut events, &[]);
        assert_eq!((first.event, first.new, first.score), (0, true, None));
        // The first text alone is all of its event.
        let second = join(&mut events, &near(&[(0, 0.6)]));
        assert_eq!((second.event, second.new, second.score), (0, false, Some(0.6)));
        // One of two is near: half of its score is not enough.
        let third = join(&mut events, &near(&[(1, 0.9)]));
        assert_eq!((third.event, third.new, third.score), (2, true, Some(0.45)));
        assert_eq!(third.nearest, Some(Near { number: 1, score: 0.9 }));
        // Two of the first event speak for it louder than the nearest text does for its own.
        let fourth = join(&mut events, &near(&[(2, 0.7), (0, 0.69), (1, 0.72)]));
        assert_eq!((fourth.event, fourth.new), (0, false));
        assert_eq!(fourth.nearest, Some(Near { number: 0, score: 0.69 }));
        assert_eq!((events.size(0), events.size(2), events.len()), (3, 1, 2));
    }

    #[test]
    fn a_young_event_needs_more() {
        let rule = Rule { steps: [0.25, 0.125, 0.0], ..RULE };
        let mut events = Events::default();
        let mut asked = |near: &[(u64, f32)]| {
            let found = join_at(&mut events, 0, &self::near(near), i64::MIN, &rule);
            (found.event, found.score)
        };
        asked(&[]);
        assert_eq!(asked(&[(0, 0.7)]), (1, Some(0.7 - 0.25)));
        assert_eq!(asked(&[(0, 0.75)]), (0, Some(0.5)));
        assert_eq!(asked(&[(0, 0.625), (2, 0.625)]), (0, Some(0.5)));
        // The third text is the last that the event needs more for; a copy never does.
        assert_eq!(asked(&[(3, 0.5), (0, 0.5)]), (0, Some(0.5)));
        assert_eq!(asked(&[(1, 1.0)]), (1, Some(1.0)));
    }

    #[test]
    fn only_texts_of_the_window_count_in_what_an_event_needs() {
        let mut events = Events::default();
        for time in [0, 0, 0, 100] {
            events.add(0, time);
        }
        let mut asked = |since| join_at(&mut events, 101, &near(&[(3, 0.9)]), since, &RULE);
        // The three of time 0 are in the window, and one of the two that are asked is not near.
        assert_eq!(asked(0).score, Some(0.45));
        // They are out of it by time, and one is all that can speak.
        let found = asked(1);
        assert_eq!((found.event, found.score), (0, Some(0.9)));
        // The same by number.
        events.forget_before(3);
        let found = join_at(&mut events, 101, &near(&[(3, 0.8)]), 90, &RULE);
        assert_eq!((found.event, found.new), (6, true), "another text joined meanwhile");
    }

    #[test]
    fn texts_that_are_much_later_have_no_say() {
        let mut events = Events::default();
        for time in [0, 100, 100, 100] {
            events.add(0, time);
        }
        let decide =
            |reach| events.decide(None, &near(&[(0, 0.6)]), &reach, &RULE, |_| None).0.score;
        assert_eq!((decide(-50..=50), decide(-50..=100)), (Some(0.6), Some(0.3)));
    }

    #[test]
    fn a_duplicate_joins_whatever_others_say() {
        let mut events = Events::default();
        for event in [0, 0, 0, 0, 4, 4] {
            events.add(event, 0);
        }
        let copy = join(&mut events, &near(&[(2, 1.0), (4, 0.99), (5, 0.99)]));
        assert_eq!((copy.event, copy.score, copy.duplicate), (0, Some(1.0), true));
        // Also below the threshold, where that is what was asked for.
        let rule = Rule { threshold: 0.8, duplicate: 0.7, ..RULE };
        let copy = join_at(&mut events, 0, &near(&[(4, 0.7)]), i64::MIN, &rule);
        assert_eq!((copy.event, copy.new, copy.duplicate), (4, false, true));
        let other = join_at(&mut events, 0, &near(&[(4, 0.69)]), i64::MIN, &rule);
        assert_eq!((other.new, other.duplicate), (true, false));
    }

    #[test]
    fn an_event_bursts_by_its_own_past() {
        let bursts = |times: &[i64]| {
            let mut events = Events::default();
            let each = times.iter().map(|minute| {
                events.add(0, 60_000 * minute);
                events.begins_to_burst(0, i64::MIN)
            });
            let told = each.enumerate().filter(|(_, told)| *told).map(|(place, _)| place);
            told.collect::<Vec<_>>()
        };
        let texts = |from: i64, count: i64| (0..count).map(move |minute| from + minute);
        let times = |parts: &[(i64, i64)]| -> Vec<i64> {
            parts.iter().flat_map(|&(from, count)| texts(from, count)).collect()
        };
        // An event that has just begun has no past.
        assert_eq!(bursts(&times(&[(0, 50)])), [] as [usize; 0]);
        // After two texts yesterday and none since, the tenth text of an hour starts a burst.
        assert_eq!(bursts(&times(&[(-1440, 2), (0, 30)])), [11]);
        // Five in the hour before: fifteen are needed.
        assert_eq!(bursts(&times(&[(-1440, 1), (0, 5), (70, 20)])), [20]);
        // The same number of texts every hour is no burst; more texts later are.
        assert_eq!(bursts(&times(&[(0, 20), (60, 20), (120, 20)])), [] as [usize; 0]);
        assert_eq!(bursts(&times(&[(-1440, 1), (0, 12), (1440, 12)])), [10, 22]);
        // A late text within a burst neither ends it nor begins another.
        let mut late = times(&[(-1440, 1), (0, 15)]);
        late.insert(12, -90);
        late.insert(14, -600);
        assert_eq!(bursts(&late), [10]);
    }

    #[test]
    fn what_left_the_window_says_nothing_of_bursts() {
        // The first text is the latest; the last ten of twenty-one are an hour's.
        let minutes = [6000].into_iter().chain((0..11).map(|_| 0)).chain((0..10).map(|_| 600));
        let mut kept = Events::default();
        minutes.clone().for_each(|minute| kept.add(0, 60_000 * minute));
        assert!(!kept.begins_to_burst(0, i64::MIN), "all are far behind the first");
        kept.forget_before(1);
        let mut anew = Events::starting_at(1);
        minutes.skip(1).for_each(|minute| anew.add(0, 60_000 * minute));
        for events in [kept, anew] {
            assert!(events.begins_to_burst(0, i64::MIN), "{events:?}");
        }
    }

    #[test]
    fn what_left_the_window_is_forgotten() {
        let mut events = Events::default();
        for _ in 0..3 {
            join(&mut events, &[]);
        }
        events.add(1, 0);
        events.forget_before(2);
        assert_eq!((events.of(1), events.of(2), events.of(3)), (None, Some(2), Some(1)));
        assert_eq!((events.len(), events.size(0), events.size(1)), (2, 0, 2));
        events.forget_before(9);
        assert!(events.is_empty());
        assert_eq!(join(&mut events, &[]).event, 4, "numbers go on");
    }

    #[test]
    fn the_centre_takes_its_share() {
        let rule = Rule { centre: 0.5, votes: 1, ..RULE };
        let mut events = Events::default();
        let vectors: [&[f32]; 2] = [&[2.0, 0.0], &[0.0, 3.0]];
        events.add(0, 0);
        events.add(0, 1);
        let score = |since| {
            let vector_of = |number: u64| Some(vectors[number as usize]);
            let near = near(&[(0, 0.8), (1, 0.8)]);
            let reach = since..=1;
            events.decide(Some(&[1.0, 1.0]), &near, &reach, &rule, vector_of).0.score.unwrap()
        };
        assert!((score(0) - 0.9).abs() < 1e-6, "{}", score(0));
        // What is out of the window by its time is out of the centre.
        let expected = 0.4 + 0.5 * 0.5_f32.sqrt();
        assert!((score(1) - expected).abs() < 1e-6, "{}", score(1));
    }
}
