//! The last texts of a stream, by their vectors: for each new one its nearest among them, exactly.
//!
//! A window is bounded by number and by time. What is asked of it in batches is answered as if every
//! text had come alone, bit for bit. Rows are scanned as signed bytes first, with a bound that no
//! score is above ([`kernels::scan`](cognate_kernels::scan)); what may belong to the answer is then
//! scored from its whole vector. [`events`] joins texts to events by their nearest, [`stream`] is
//! both over an engine, and [`naming`] finds words for an event. Where texts come from, and who asks, is not
//! known here.

pub mod events;
pub mod likeness;
pub mod naming;
mod nearest;
pub mod options;
pub mod stream;
#[cfg(test)]
mod tests;
pub mod usual;

use std::ops::RangeInclusive;

use cognate_kernels::scan::{Probe, QUERIES, ROWS, Shelf};
use cognate_kernels::vector;
use cognate_kernels::vector::Row;

use crate::window::nearest::Nearest;

/// Number of texts whose nearest texts are found in one batch.
pub const BATCH: usize = 64;

/// The limits of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Number of texts before each.
    pub last: usize,
    /// Maximum time difference between a text and its neighbours, in milliseconds; `None`: no limit.
    pub within: Option<i64>,
}

impl Limits {
    /// Returns the times of the texts that can be neighbours of a text with this time: a late text joins no
    /// event that began long after it.
    pub fn reach(self, time: i64) -> RangeInclusive<i64> {
        let within = self.within.unwrap_or(i64::MAX);
        time.saturating_sub(within)..=time.saturating_add(within)
    }
}

/// A text of a stream.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'e> {
    /// The time at which the text was written, in milliseconds.
    pub time: i64,
    /// Its vector; nothing where it has none, and then it is near to no other.
    pub vector: Option<&'e [f32]>,
}

/// A text that is near to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    /// The text's number in the stream, from 0.
    pub number: u64,
    /// The similarity of both.
    pub score: f32,
}

/// The last texts of a stream.
#[derive(Debug)]
pub struct Window {
    limits: Limits,
    dims: usize,
    /// Places for texts, a multiple of [`ROWS`]: those of the window and a batch beyond.
    places: usize,
    /// The number of the first text that was added.
    begun: u64,
    next: u64,
    /// Texts from before this time are near to none.
    oldest: i64,
    shelf: Shelf,
    vectors: Vec<f32>,
    lengths: Vec<f32>,
    times: Vec<i64>,
    unit: Vec<f32>,
}

impl Window {
    /// An empty window for vectors of `dims`.
    pub fn new(dims: usize, limits: Limits) -> Self {
        let places = places(limits);
        Self {
            limits,
            dims,
            places,
            begun: 0,
            next: 0,
            oldest: i64::MIN,
            shelf: Shelf::new(dims, places),
            vectors: vec![0.0; places * dims],
            lengths: vec![0.0; places],
            times: vec![0; places],
            unit: Vec::new(),
        }
    }

    /// The number that the next text will have.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Gives the next text this number. Only an empty window can begin elsewhere than at 0.
    pub fn begin_at(&mut self, next: u64) {
        (self.begun, self.next) = (next, next);
    }

    /// Ignores texts from before this time from now on.
    pub fn leave_out_before(&mut self, oldest: i64) {
        self.oldest = oldest;
    }

    /// The time from before which texts are near to none.
    pub fn oldest(&self) -> i64 {
        self.oldest
    }

    /// Numbers of a vector.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Returns the bytes of memory that the window takes, even while it has no texts.
    pub fn bytes(&self) -> usize {
        Self::bytes_of(self.dims, self.limits)
    }

    /// Bytes of memory that a window of vectors of `dims` takes.
    pub fn bytes_of(dims: usize, limits: Limits) -> usize {
        // A vector, the same as signed bytes, its length and its time.
        places(limits).saturating_mul(dims * 5 + 12)
    }

    /// The limits of the window.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The numbers of the texts that the window keeps for the next text.
    pub fn kept(&self) -> std::ops::Range<u64> {
        self.next.saturating_sub(self.limits.last as u64)..self.next
    }

    /// Time and vector of a text of the window; the vector is zero if there is none.
    pub fn text(&self, number: u64) -> Option<Entry<'_>> {
        if !self.kept().contains(&number) {
            return None;
        }
        Some(Entry { time: self.times[self.place(number)], vector: self.vector(number) })
    }

    /// The vector of a text that the window held before the last batch, if it has one.
    pub(crate) fn vector(&self, number: u64) -> Option<&[f32]> {
        let place = self.place(number);
        let vector = self.vectors.get(place * self.dims..(place + 1) * self.dims);
        vector.filter(|_| self.lengths[place] > 0.0)
    }

    /// Adds texts without asking for their nearest.
    pub fn add(&mut self, entry: &Entry<'_>) -> u64 {
        self.write(entry).number
    }

    /// Adds a text, and gives it back as what is asked for its nearest.
    fn write(&mut self, entry: &Entry<'_>) -> Question {
        let number = self.next;
        let place = self.place(number);
        let vectors = place * self.dims..(place + 1) * self.dims;
        self.times[place] = entry.time;
        let vector = entry.vector.filter(|vector| vector.len() == self.dims);
        let length = vector.map_or(0.0, |vector| vector::norm(Row::F32(vector)));
        let sound = length.is_finite() && length > 0.0;
        self.lengths[place] = if sound { length } else { 0.0 };
        self.unit.clear();
        match vector.filter(|_| sound) {
            Some(vector) => {
                self.vectors[vectors].copy_from_slice(vector);
                self.unit.extend(vector.iter().map(|number| number / length));
            }
            None => {
                self.vectors[vectors].fill(0.0);
                self.unit.resize(self.dims, 0.0);
            }
        }
        let probe = Probe::new(&self.unit);
        self.shelf.put_probe(place, &probe);
        self.next += 1;
        Question { number, place, probe }
    }

    /// For each text in turn its nearest among those kept, at most `most` of those that have at
    /// least the score `floor`, the best first and of equal ones the newest; then the text is added.
    pub fn follow(&mut self, texts: &[Entry<'_>], most: usize, floor: f32) -> Vec<Vec<Near>> {
        let mut all = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            let questions = batch.iter().map(|entry| self.write(entry)).collect();
            all.extend(self.search(questions, most, floor));
        }
        all
    }

    /// For each text what [`follow`](Self::follow) finds of it if it is the next. None is added.
    pub fn look_up(&mut self, texts: &[Entry<'_>], most: usize, floor: f32) -> Vec<Vec<Near>> {
        let mut all = Vec::with_capacity(texts.len());
        let next = self.next;
        for batch in texts.chunks(BATCH) {
            // Each has a place behind the window for as long as it is asked for, and the number of the next.
            let asked = batch.iter().map(|entry| Question { number: next, ..self.write(entry) });
            let questions = asked.collect();
            all.extend(self.search(questions, most, floor));
            self.next = next;
        }
        all
    }

    /// The nearest of at most a batch of texts, which are the last that were written.
    fn search(&self, questions: Vec<Question>, most: usize, floor: f32) -> Vec<Vec<Near>> {
        let first = questions.first().map_or(self.next, |question| question.number);
        let searches = questions.into_iter().map(|one| (one, Nearest::new(most, floor)));
        let mut searches: Vec<_> = searches.collect();
        let oldest = first.saturating_sub(self.limits.last as u64);
        let newest = self.next;
        // Whole tiles of places, the newest texts first: their scores are the highest as a rule, and
        // a high score spares looking at what is below it.
        let tiles = self.places / ROWS;
        let span = usize::try_from(newest - oldest).unwrap_or(usize::MAX);
        let touched = tiles.min(span.div_ceil(ROWS) + 1);
        let newest = newest.saturating_sub(1);
        let newest = (newest, self.place(newest));
        let mut tile = newest.1 / ROWS;
        for _ in 0..touched {
            for four in searches.chunks_mut(QUERIES) {
                self.look(tile, newest, four);
            }
            tile = if tile == 0 { tiles - 1 } else { tile - 1 };
        }
        searches.into_iter().map(|(_, nearest)| nearest.into_list()).collect()
    }

    /// Offers the rows of one tile to up to four searches; `newest` are number and place of the newest
    /// text.
    fn look(&self, tile: usize, newest: (u64, usize), searches: &mut [(Question, Nearest)]) {
        let probe = |at: usize| {
            let (question, nearest) = &searches[at];
            (&question.probe, nearest.least())
        };
        let reached = self.shelf.reach(tile, (searches.len(), probe), None);
        for ((question, nearest), mut rows) in searches.iter_mut().zip(reached) {
            while rows != 0 {
                let place = tile * ROWS + rows.trailing_zeros() as usize;
                rows &= rows - 1;
                if let Some(number) = self.number(place, newest)
                    && number < question.number
                    && self.keeps((number, place), question)
                    && let Some(score) = self.score(place, question.place)
                {
                    nearest.offer(Near { number, score });
                }
            }
        }
    }

    /// Whether the window before a text holds an earlier text.
    fn keeps(&self, (number, place): (u64, usize), before: &Question) -> bool {
        before.number - number <= self.limits.last as u64
            && self.reach(self.times[before.place]).contains(&self.times[place])
    }

    /// Returns the times of the window's texts that can be neighbours of a text with this time.
    pub fn reach(&self, time: i64) -> RangeInclusive<i64> {
        let (since, until) = self.limits.reach(time).into_inner();
        self.oldest.max(since)..=until
    }

    /// Returns the score of two texts that have vectors: their cosine, and exactly 1 if both vectors are the
    /// same, as an engine scores texts of the same words.
    fn score(&self, one: usize, other: usize) -> Option<f32> {
        let lengths = self.lengths[one] * self.lengths[other];
        if lengths <= 0.0 {
            return None;
        }
        let row = |place: usize| &self.vectors[place * self.dims..(place + 1) * self.dims];
        let rows = [one, other].map(|place| Row::F32(row(place)));
        let score = vector::cosine_by_lengths(rows[0], rows[1], lengths);
        let same = score > 0.999 && row(one) == row(other);
        if same { Some(1.0) } else { score.is_finite().then_some(score) }
    }

    fn place(&self, number: u64) -> usize {
        // Below the number of places, which is a usize.
        (number % self.places as u64) as usize
    }

    /// The number of the text in a place, the newest that was written there.
    fn number(&self, place: usize, (newest, newest_place): (u64, usize)) -> Option<u64> {
        // Without a division, which would take as long as the rest.
        let behind = if place > newest_place { self.places } else { 0 };
        newest.checked_sub((newest_place + behind - place) as u64)
    }
}

/// Returns the number of slots for a window's texts and one more batch.
fn places(limits: Limits) -> usize {
    limits.last.saturating_add(BATCH).next_multiple_of(ROWS)
}

/// A text whose nearest are searched: its number, its place, and its vector as bytes.
struct Question {
    number: u64,
    place: usize,
    probe: Probe,
}
