//! Events in a stream: each text joins the event that its nearest before it speak for, or begins one.
//!
//! An event's score for a text is the mean of the scores of its `votes` texts nearest to it (an event
//! that has fewer texts needs as many as it has), of which those that are not among the nearest found
//! count 0; `centre` of it is replaced by the cosine between the text and the mean of the event's
//! texts. The text joins the event of the highest score if that is not below the threshold. One pair
//! that is alike by chance so joins no two events, which it does where the nearest text alone decides.
//! Events of which the window holds no text any more are forgotten.

use std::collections::{HashMap, VecDeque};

use cognate_kernels::vector;
use cognate_kernels::vector::Row;
use serde::{Deserialize, Serialize};

use crate::window::Near;

/// How a text finds its event.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// The least score at which a text joins an event.
    pub threshold: f32,
    /// Number of an event's texts that vote, at least 1.
    pub votes: usize,
    /// The share of an event's score that its centre makes up, from 0 to 1.
    pub centre: f32,
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
    /// The nearest text of the event that was joined, else of any.
    pub nearest: Option<Near>,
}

/// The events of the texts in a window.
#[derive(Debug, Default)]
pub struct Events {
    /// The number of the first text that is remembered.
    first: u64,
    /// The event of each text that is remembered.
    of: VecDeque<u64>,
    known: HashMap<u64, Event>,
}

/// Bytes of memory of an event beside the sum of its vectors, with its place in the list.
const EVENT_BYTES: usize = 96;

/// The state of an event.
#[derive(Debug, Clone, Default)]
struct Event {
    /// Texts since it began.
    size: u64,
    /// Texts that are remembered.
    remembered: u64,
    /// The sum of the texts' vectors, each brought to length 1.
    sum: Vec<f32>,
}

impl Events {
    /// No events; the first text will have this number.
    pub fn starting_at(first: u64) -> Self {
        Self { first, ..Self::default() }
    }

    /// The event of a text that is remembered.
    pub fn of(&self, number: u64) -> Option<u64> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.of.get(at).copied()
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

    /// Bytes of memory that they take, roughly, where vectors have `dims` numbers.
    pub fn bytes(&self, dims: usize, rule: &Rule) -> usize {
        let sum = if rule.centre == 0.0 { 0 } else { dims * size_of::<f32>() };
        self.of.len() * size_of::<u64>() + self.known.len() * (EVENT_BYTES + sum)
    }

    /// Decides the event of the next text, given its nearest earlier texts, best first.
    pub fn join(&mut self, vector: Option<&[f32]>, near: &[Near], rule: &Rule) -> Decision {
        let number = self.first + self.of.len() as u64;
        let mut best: Option<(f32, u64, Near)> = None;
        let mut looked: Vec<u64> = Vec::new();
        for (at, &nearest) in near.iter().enumerate() {
            let Some(event) = self.of(nearest.number).filter(|event| !looked.contains(event))
            else {
                continue;
            };
            looked.push(event);
            let score = self.score(event, vector, near.get(at..).unwrap_or_default(), rule);
            if best.is_none_or(|(highest, ..)| score > highest) {
                best = Some((score, event, nearest));
            }
        }
        let joined = best.filter(|(score, ..)| *score >= rule.threshold);
        let decision = Decision {
            event: joined.map_or(number, |(_, event, _)| event),
            new: joined.is_none(),
            score: best.map(|(score, ..)| score),
            nearest: joined.map(|(.., nearest)| nearest).or(near.first().copied()),
        };
        self.add(decision.event, vector);
        decision
    }

    /// An event's score for a text, of which `near` begins with the nearest that belongs to it.
    fn score(&self, event: u64, vector: Option<&[f32]>, near: &[Near], rule: &Rule) -> f32 {
        let Some(known) = self.known.get(&event) else { return 0.0 };
        let wanted = usize::try_from(known.size).unwrap_or(usize::MAX).min(rule.votes.max(1));
        let of_event = near.iter().filter(|near| self.of(near.number) == Some(event));
        let sum: f32 = of_event.take(wanted).map(|near| near.score).sum();
        let votes = sum / wanted.max(1) as f32;
        if rule.centre == 0.0 {
            return votes;
        }
        let centre = vector.map_or(0.0, |vector| {
            let cosine = vector::cosine(Row::F32(vector), Row::F32(&known.sum));
            if cosine.is_finite() { cosine } else { 0.0 }
        });
        (1.0 - rule.centre) * votes + rule.centre * centre
    }

    /// Adds the next text to an event.
    pub fn add(&mut self, event: u64, vector: Option<&[f32]>) {
        self.of.push_back(event);
        let known = self.known.entry(event).or_default();
        known.size += 1;
        known.remembered += 1;
        let Some(vector) = vector else { return };
        if known.sum.is_empty() {
            known.sum.resize(vector.len(), 0.0);
        }
        let length = vector::norm(Row::F32(vector));
        if length.is_finite() && length > 0.0 {
            vector::add_scaled(&mut known.sum, 1.0 / length, Row::F32(vector));
        }
    }

    /// Forgets texts before this number, and events without any other.
    pub fn forget_before(&mut self, number: u64) {
        while self.first < number
            && let Some(event) = self.of.pop_front()
        {
            self.first += 1;
            if let Some(known) = self.known.get_mut(&event) {
                known.remembered -= 1;
                if known.remembered == 0 {
                    self.known.remove(&event);
                }
            }
        }
    }

    /// The events that are remembered, by number: texts since each began, and the sum of their
    /// vectors.
    pub fn all(&self) -> Vec<(u64, u64, &[f32])> {
        let all = self.known.iter();
        let mut all: Vec<_> =
            all.map(|(&event, known)| (event, known.size, known.sum.as_slice())).collect();
        all.sort_unstable_by_key(|&(event, ..)| event);
        all
    }

    /// Sets the state of an event whose texts were [added](Self::add) before.
    pub fn restore(&mut self, event: u64, size: u64, sum: Vec<f32>) {
        if let Some(known) = self.known.get_mut(&event) {
            (known.size, known.sum) = (size.max(known.remembered), sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { threshold: 0.5, votes: 2, centre: 0.0 };

    fn near(list: &[(u64, f32)]) -> Vec<Near> {
        list.iter().map(|&(number, score)| Near { number, score }).collect()
    }

    #[test]
    fn an_event_needs_as_many_votes_as_it_has_texts() {
        let mut events = Events::default();
        let first = events.join(None, &[], &RULE);
        assert_eq!((first.event, first.new, first.score), (0, true, None));
        // The first text alone is all of its event.
        let second = events.join(None, &near(&[(0, 0.6)]), &RULE);
        assert_eq!((second.event, second.new, second.score), (0, false, Some(0.6)));
        // One of two is near: half of its score is not enough.
        let third = events.join(None, &near(&[(1, 0.9)]), &RULE);
        assert_eq!((third.event, third.new, third.score), (2, true, Some(0.45)));
        assert_eq!(third.nearest, Some(Near { number: 1, score: 0.9 }));
        // Two of the first event speak for it louder than the nearest text does for its own.
        let fourth = events.join(None, &near(&[(2, 0.7), (0, 0.69), (1, 0.72)]), &RULE);
        assert_eq!((fourth.event, fourth.new), (0, false));
        assert_eq!(fourth.nearest, Some(Near { number: 0, score: 0.69 }));
        assert_eq!((events.size(0), events.size(2), events.len()), (3, 1, 2));
    }

    #[test]
    fn what_left_the_window_is_forgotten() {
        let mut events = Events::default();
        for _ in 0..3 {
            events.join(None, &[], &RULE);
        }
        events.add(1, None);
        events.forget_before(2);
        assert_eq!((events.of(1), events.of(2), events.of(3)), (None, Some(2), Some(1)));
        assert_eq!((events.len(), events.size(0), events.size(1)), (2, 0, 2));
        events.forget_before(9);
        assert!(events.is_empty());
        assert_eq!(events.join(None, &[], &RULE).event, 4, "numbers go on");
    }

    #[test]
    fn the_centre_takes_its_share() {
        let rule = Rule { centre: 0.5, votes: 1, ..RULE };
        let mut events = Events::default();
        events.join(Some(&[2.0, 0.0]), &[], &rule);
        events.add(0, Some(&[0.0, 3.0]));
        let decision = events.join(Some(&[1.0, 1.0]), &near(&[(0, 0.8)]), &rule);
        assert!((decision.score.unwrap() - 0.9).abs() < 1e-6, "{decision:?}");
    }
}
