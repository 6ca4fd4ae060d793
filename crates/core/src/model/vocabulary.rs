//! Word to id, id to word, and what the corpus says of a word: counts and idf.
//!
//! A look-up costs one hash and, as a rule, one cache line of the index, then one comparison of
//! bytes. Whoever looks up several words takes these steps for all of them in turn, so that the
//! memory of one is on its way while the others are looked at. The index is an open-addressing table built when the model is packed and never changed,
//! so its worst probe sequence is known and no client can make it longer.

use cognate_kernels::simd;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::lines;
use crate::model::lines::{Key, Lines, MASKS, WIDE};
use crate::model::options::Limits;

/// Number of a word: its row in `vectors`.
pub type WordId = u32;

/// The id of an empty slot.
pub const EMPTY: u32 = lines::EMPTY;

/// The hash that places words in the index: XXH3 (64 bit, seed 0) of the word's UTF-8, a published
/// function that gives the same value on every machine and in every release.
#[inline]
pub fn hash(word: &[u8]) -> u64 {
    xxh3_64(word)
}

/// Slot and tag of a word of this hash in an index of `2^bits` slots: the high bits say where, the
/// low 32 are kept beside the id so that a mismatch is seen without looking at the word.
#[inline]
fn place(hash: u64, bits: u32) -> (usize, u32) {
    let slot = if bits == 0 { 0 } else { hash >> (u64::BITS - bits) };
    (slot as usize, hash as u32)
}

/// A view of a model's vocabulary, borrowed from the mapping.
#[derive(Debug, Clone, Copy)]
pub struct Vocabulary<'m> {
    bytes: &'m [u8],
    offsets: &'m [u64],
    index: &'m [[u32; 2]],
    bits: u32,
    max_probe: u32,
    /// A second, faster index of the short words; `None` if it could not be built.
    pub(crate) lines: Option<&'m Lines>,
    /// Occurrences of each word, where the model has them.
    pub counts: Option<&'m [u64]>,
    /// Documents that hold each word, where the model has them.
    pub document_frequencies: Option<&'m [u32]>,
    /// The idf of each word, where the model has it.
    pub idf: Option<&'m [f32]>,
    /// Statistics of the corpus behind the counts.
    pub corpus: Corpus,
}

#[derive(Debug, Default)]
pub(crate) struct Work {
    lines: lines::Work,
    hashes: Vec<u64>,
}

/// The size of the corpus that words were counted in.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Corpus {
    /// Tokens.
    pub tokens: Option<u64>,
    /// Documents.
    pub documents: Option<u64>,
    /// The idf of unknown words.
    pub idf_unknown: Option<f32>,
}

impl<'m> Vocabulary<'m> {
    /// A view of checked tables: `index.len()` is a power of two.
    pub(crate) fn new(
        bytes: &'m [u8],
        offsets: &'m [u64],
        index: &'m [[u32; 2]],
        max_probe: u32,
    ) -> Self {
        let bits = index.len().trailing_zeros();
        let (counts, document_frequencies, idf) = (None, None, None);
        Self {
            bytes,
            offsets,
            index,
            bits,
            max_probe,
            lines: None,
            counts,
            document_frequencies,
            idf,
            corpus: Corpus::default(),
        }
    }

    /// The raw tables: bytes, offsets, index.
    pub(crate) fn tables(&self) -> (&'m [u8], &'m [u64], &'m [[u32; 2]]) {
        (self.bytes, self.offsets, self.index)
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Never: an accepted model has at least one word.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id of a word.
    #[inline]
    pub fn lookup(&self, word: &str) -> Option<WordId> {
        self.lookup_bytes(word.as_bytes())
    }

    /// The id of a word given as bytes.
    #[inline]
    pub fn lookup_bytes(&self, word: &[u8]) -> Option<WordId> {
        match self.lines {
            Some(lines) if (1..=lines::LONGEST).contains(&word.len()) => lines.find(Key::new(word)),
            _ => self.candidates(hash(word)).find(|&id| self.word_bytes(id) == Some(word)),
        }
    }

    /// Notes the words at these places of `text` and prefetches the memory that holds their ids.
    pub(crate) fn ask(
        &self,
        text: &[u8],
        places: impl Iterator<Item = [usize; 2]>,
        work: &mut Work,
    ) {
        if let Some(lines) = self.lines {
            return lines.ask(text, places, &mut work.lines);
        }
        work.hashes.clear();
        work.hashes.extend(places.map(|[start, end]| {
            let hash = hash(text.get(start..end).unwrap_or_default());
            self.prefetch_slot(hash);
            hash
        }));
    }

    /// Appends the id of each of the words that were asked for last, or [`EMPTY`]; `seen` gets each
    /// id. Each step is taken for all words before the next step, so that the processor loads the memory
    /// of one word while it works on the others.
    pub(crate) fn find_all(
        &self,
        text: &[u8],
        places: impl Iterator<Item = [usize; 2]>,
        work: &Work,
        found: &mut Vec<WordId>,
        seen: impl Fn(WordId),
    ) {
        if let Some(lines) = self.lines {
            let long = |word: &[u8]| self.lookup_bytes(word);
            return lines.find_all(text, places, &work.lines, found, long, seen);
        }
        let hashes = &work.hashes;
        let first = found.len();
        found.extend(hashes.iter().map(|&hash| {
            let candidate = self.candidates(hash).next();
            if let Some(id) = candidate {
                self.prefetch_ends(id);
                seen(id);
            }
            candidate.unwrap_or(EMPTY)
        }));
        let found = found.get_mut(first..).unwrap_or_default();
        found.iter().filter(|&&id| id != EMPTY).for_each(|&id| self.prefetch_bytes(id));
        for ((found, &hash), place) in found.iter_mut().zip(hashes.iter()).zip(places) {
            if *found != EMPTY && !self.is_word(*found, text, place) {
                // Another word has the same tag.
                let mut others = self.candidates(hash);
                *found = others.find(|&id| self.is_word(id, text, place)).unwrap_or(EMPTY);
            }
        }
    }

    /// Asks for the slot of a word of this hash, which will be read soon.
    #[inline]
    pub(crate) fn prefetch_slot(&self, hash: u64) {
        let (slot, _) = place(hash, self.bits);
        simd::prefetch(self.index.get(slot..=slot).unwrap_or_default());
    }

    /// Asks for the place where a word's bytes begin and end, which will be read soon.
    #[inline]
    pub(crate) fn prefetch_ends(&self, id: WordId) {
        let id = id as usize;
        simd::prefetch(self.offsets.get(id..=id).unwrap_or_default());
    }

    /// Asks for a word's bytes, which will be read soon.
    #[inline]
    pub(crate) fn prefetch_bytes(&self, id: WordId) {
        let from = self.offsets.get(id as usize).map_or(0, |&from| from as usize);
        simd::prefetch(self.bytes.get(from..from.saturating_add(1)).unwrap_or_default());
    }

    /// The ids that a word of this hash may have: as a rule one, if it is listed.
    #[inline]
    pub(crate) fn candidates(&self, hash: u64) -> impl Iterator<Item = WordId> + use<'m> {
        let (index, (slot, tag)) = (self.index, place(hash, self.bits));
        let mask = index.len().wrapping_sub(1);
        let probed = (0..=self.max_probe as usize).map_while(move |distance| {
            let &[found, id] = index.get(slot.wrapping_add(distance) & mask)?;
            (id != EMPTY).then_some((found, id))
        });
        probed.filter(move |&(found, _)| found == tag).map(|(_, id)| id)
    }

    /// Whether this is the id of the word in a range of `text`. Quickest where sixteen bytes can be
    /// read from its beginning on.
    #[inline]
    pub(crate) fn is_word(&self, id: WordId, text: &[u8], [start, end]: [usize; 2]) -> bool {
        let ends = self.offsets.get(id as usize).zip(self.offsets.get(id as usize + 1));
        let Some((&from, &to)) = ends else { return false };
        let (from, to) = (from as usize, to as usize);
        if to.wrapping_sub(from) != end.wrapping_sub(start) {
            return false;
        }
        let listed = self.bytes.get(from..).and_then(|rest| rest.first_chunk::<WIDE>());
        let looked_up = text.get(start..).and_then(|rest| rest.first_chunk::<WIDE>());
        match (listed, looked_up, MASKS.get(end - start)) {
            (Some(listed), Some(looked_up), Some(mask)) => {
                let differs = u128::from_le_bytes(*listed) ^ u128::from_le_bytes(*looked_up);
                differs & mask == 0
            }
            _ => self.bytes.get(from..to) == text.get(start..end),
        }
    }

    /// The bytes of a word.
    #[inline]
    pub fn word_bytes(&self, id: WordId) -> Option<&'m [u8]> {
        let from = *self.offsets.get(id as usize)? as usize;
        let to = *self.offsets.get(id as usize + 1)? as usize;
        self.bytes.get(from..to)
    }

    pub(crate) fn all_bytes(self) -> impl ExactSizeIterator<Item = &'m [u8]> {
        (0..self.len()).map(move |id| self.word_bytes(id as WordId).unwrap_or_default())
    }

    /// A word. Empty for an id that is not in the vocabulary.
    pub fn word(&self, id: WordId) -> &'m str {
        self.word_bytes(id).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or("")
    }

    /// All words in id order.
    pub fn words(&self) -> impl Iterator<Item = &'m str> {
        let view = *self;
        (0..self.len() as u32).map(move |id| view.word(id))
    }

    /// The share of the corpus that is this word; 0 for a word that was not seen or not counted.
    pub fn probability(&self, id: WordId) -> f64 {
        match (self.counts.and_then(|counts| counts.get(id as usize)), self.corpus.tokens) {
            (Some(&count), Some(tokens)) if tokens > 0 => count as f64 / tokens as f64,
            _ => 0.0,
        }
    }

    /// The idf of a word, or of an unknown word. `None` when the model has no idf at all.
    pub fn idf(&self, id: Option<WordId>) -> Option<f32> {
        let table = self.idf?;
        match id.and_then(|id| table.get(id as usize)) {
            Some(&idf) => Some(idf),
            None => self.corpus.idf_unknown,
        }
    }
}

/// A vocabulary's tables, as they are written into a model file.
#[derive(Debug)]
pub struct VocabularyTables {
    /// The words' UTF-8, one after another.
    pub bytes: Vec<u8>,
    /// The beginning of each word, and the end of the last one.
    pub offsets: Vec<u64>,
    /// (tag, word id) a slot, at most half of them used.
    pub index: Vec<[u32; 2]>,
    /// The longest probe sequence.
    pub max_probe: u32,
}

impl VocabularyTables {
    /// Builds the tables of distinct words; the first word gets id 0.
    pub fn build<'a>(words: impl ExactSizeIterator<Item = &'a str>) -> Self {
        let mut slots = words.len().max(1).saturating_mul(2).next_power_of_two();
        let (mut bytes, mut offsets) = (Vec::new(), Vec::with_capacity(words.len() + 1));
        offsets.push(0);
        for word in words {
            bytes.extend_from_slice(word.as_bytes());
            offsets.push(bytes.len() as u64);
        }
        // Half full is as a rule enough; a longer run of neighbours than readers accept is not.
        loop {
            let (index, max_probe) = fill(&bytes, &offsets, slots);
            if max_probe <= Limits::DEFAULT.max_probe {
                return Self { bytes, offsets, index, max_probe };
            }
            slots *= 2;
        }
    }

    /// The tables as the vocabulary that is read from them later.
    pub fn view(&self) -> Vocabulary<'_> {
        Vocabulary::new(&self.bytes, &self.offsets, &self.index, self.max_probe)
    }
}

/// Places every word in an index of that many slots; also the furthest one lies from home.
fn fill(bytes: &[u8], offsets: &[u64], slots: usize) -> (Vec<[u32; 2]>, u32) {
    let bits = slots.trailing_zeros();
    let mut index = vec![[0, EMPTY]; slots];
    let mut max_probe = 0;
    for (id, ends) in offsets.windows(2).enumerate() {
        let word = bytes.get(ends[0] as usize..ends[1] as usize).unwrap_or_default();
        let (home, tag) = place(hash(word), bits);
        let mut distance = 0;
        while let Some(slot) = index.get_mut((home + distance) & (slots - 1)) {
            if slot[1] == EMPTY {
                *slot = [tag, id as u32];
                break;
            }
            distance += 1;
        }
        max_probe = max_probe.max(distance as u32);
    }
    (index, max_probe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        // Values of the reference implementation, so that a change of library cannot orphan files.
        assert_eq!(hash(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(hash(b"a"), 0xe6c6_32b6_1e96_4e1f);
        assert_eq!(hash(b"abc"), 0x78af_5f94_892f_3950);
    }

    #[test]
    fn every_word_is_found_and_no_other() {
        let words: Vec<String> = (0..5000).map(|n| format!("w{}", n * 7919)).collect();
        let tables = VocabularyTables::build(words.iter().map(String::as_str));
        let vocabulary = tables.view();
        assert!(tables.max_probe <= 64, "{}", tables.max_probe);
        for (id, word) in words.iter().enumerate() {
            assert_eq!(vocabulary.lookup(word), Some(id as u32));
            assert_eq!(vocabulary.word(id as u32), word);
            assert_eq!(vocabulary.lookup(&format!("{word}x")), None);
        }
        assert_eq!(vocabulary.lookup(""), None);
    }

    #[test]
    fn words_of_every_length_are_told_apart_wherever_they_stand() {
        let words: Vec<String> = (1..40).map(|length| "x".repeat(length)).collect();
        let tables = VocabularyTables::build(words.iter().map(String::as_str));
        let vocabulary = tables.view();
        for (id, word) in (0..).zip(&words) {
            for behind in ["", " ", "yyyyyyyyyyyyyyyyyyyyyyyy"] {
                let text = format!("ab{word}{behind}");
                let place = [2, 2 + word.len()];
                let found = vocabulary.candidates(hash(word.as_bytes()));
                let found: Vec<_> =
                    found.filter(|&id| vocabulary.is_word(id, text.as_bytes(), place)).collect();
                assert_eq!(found, [id], "{text}");
                let other = format!("ab{}y{behind}", &word[1..]);
                assert!(!vocabulary.is_word(id, other.as_bytes(), place), "{other}");
                assert!(!vocabulary.is_word(id + 1, text.as_bytes(), place), "{text}");
            }
        }
    }

    #[test]
    fn words_that_are_asked_for_together_are_found_as_alone() {
        let words = ["a", "quake", "hits", "a-word-of-more-than-a-line-holds"];
        let tables = VocabularyTables::build(words.into_iter());
        let text =
            "a no hits a-word-of-more-than-a-line-holds none-of-more-than-a-line-holds quake";
        let places = text.split(' ').scan(0, |start, word| {
            let place = [*start, *start + word.len()];
            *start += word.len() + 1;
            Some(place)
        });
        let alone: Vec<u32> =
            text.split(' ').map(|word| tables.view().lookup(word).unwrap_or(EMPTY)).collect();
        assert_eq!(alone, [0, EMPTY, 2, 3, EMPTY, 1]);
        let lines = Lines::new(tables.view().all_bytes()).unwrap();
        for lines in [None, Some(&lines)] {
            let vocabulary = Vocabulary { lines, ..tables.view() };
            let (mut work, mut found) = (Work::default(), vec![9]);
            let seen = std::cell::RefCell::new(Vec::new());
            vocabulary.ask(text.as_bytes(), places.clone(), &mut work);
            let see = |id| seen.borrow_mut().push(id);
            vocabulary.find_all(text.as_bytes(), places.clone(), &work, &mut found, see);
            assert_eq!(found[1..], alone);
            assert_eq!(seen.into_inner(), [0, 2, 3, 1]);
        }
    }

    #[test]
    fn a_word_of_the_same_tag_is_not_taken_for_another() {
        let (bytes, offsets) = (b"ab".as_slice(), [0, 1, 2]);
        let (slot, tag) = place(hash(b"b"), 2);
        let mut index = [[0, EMPTY]; 4];
        index[slot] = [tag, 0];
        index[(slot + 1) % 4] = [tag, 1];
        let vocabulary = Vocabulary::new(bytes, &offsets, &index, 1);
        let find = |vocabulary: &Vocabulary<'_>, text: &str| {
            let (mut work, mut found) = (Work::default(), Vec::new());
            let places = || [[0, 1]].into_iter();
            vocabulary.ask(text.as_bytes(), places(), &mut work);
            vocabulary.find_all(text.as_bytes(), places(), &work, &mut found, |_| ());
            found
        };
        assert_eq!(find(&vocabulary, "b"), [1]);
        index[(slot + 1) % 4] = [0, EMPTY];
        let vocabulary = Vocabulary::new(bytes, &offsets, &index, 1);
        assert_eq!(find(&vocabulary, "b"), [EMPTY]);
    }
}
