//! The different words of two texts: each is multiplied with every other once, however often the texts
//! have it.

use cognate_kernels::simd;

use crate::methods::common::unit_rows::Products;
use crate::model::Phrase;
use crate::model::phrase::Word;

/// The different words of two texts, with memory for the next two.
#[derive(Default)]
pub(crate) struct Union {
    /// The words, each with the text that it is taken from.
    words: Vec<(Word, usize)>,
    /// How many of them are listed, which are the first, in order.
    listed: usize,
    /// For each word of either bag its place among them.
    places: [Vec<u32>; 2],
    /// For each word its largest product with the words of either text; 0 if all products are negative.
    most: [Vec<f32>; 2],
}

impl Union {
    /// Takes the words of two texts. A word whose row was made for its own text counts as different from
    /// all words of the other text; this changes no product.
    pub(crate) fn unite(&mut self, texts: [&Phrase<'_>; 2]) {
        let bags = texts.map(Phrase::bag);
        let listed = texts.map(Phrase::listed_in_bag);
        self.words.clear();
        for (places, bag) in self.places.iter_mut().zip(bags) {
            places.clear();
            // One more, which is written where a bag is at its end.
            places.resize(bag.len() + 1, 0);
        }
        let (mut at, mut last) = ([0; 2], Word::MAX);
        let [one, other] = &mut self.places;
        loop {
            let next = |side: usize| listed[side].get(at[side]).copied().unwrap_or(Word::MAX);
            let next = [next(0), next(1)];
            let word = next[0].min(next[1]);
            if word == Word::MAX {
                break;
            }
            if word != last {
                self.words.push((word, usize::from(next[0] != word)));
                last = word;
            }
            // Which text has the next word is not guessed: the place of one that has it not is written
            // once more.
            let place = self.words.len() as u32 - 1;
            one[at[0]] = place;
            other[at[1]] = place;
            at[0] += usize::from(next[0] == word);
            at[1] += usize::from(next[1] == word);
        }
        self.listed = self.words.len();
        for (side, bag) in bags.into_iter().enumerate() {
            self.places[side].truncate(bag.len());
            for (place, &word) in self.places[side].iter_mut().zip(bag).skip(listed[side].len()) {
                *place = self.words.len() as u32;
                self.words.push((word, side));
            }
        }
    }

    /// The place of a listed word among the words.
    pub(crate) fn place(&self, word: Word) -> Option<usize> {
        let listed = self.words.get(..self.listed)?;
        listed.binary_search_by_key(&word, |(word, _)| *word).ok()
    }

    /// The words, each with the text that it is taken of.
    pub(crate) fn words<'p>(
        &self,
        [one, other]: [&'p Phrase<'p>; 2],
    ) -> impl ExactSizeIterator<Item = (&'p Phrase<'p>, Word)> + Clone {
        self.words.iter().map(move |&(word, side)| (if side == 0 { one } else { other }, word))
    }

    pub(crate) fn compare(&mut self, products: &Products<'_>) {
        for (most, places) in self.most.iter_mut().zip(&self.places) {
            most.resize(products.stride(), 0.0);
            simd::largest_of_rows(products.numbers(), places, most);
        }
    }

    /// For each word of a text's bag its largest product with the words of a text.
    pub(crate) fn memberships(&self, side: usize, with: usize, out: &mut Vec<f32>) {
        self.gather(side, &self.most[with], out);
    }

    /// For each word of a text's bag the number of its place.
    pub(crate) fn gather(&self, side: usize, numbers: &[f32], out: &mut Vec<f32>) {
        let places = self.places[side].iter();
        out.clear();
        out.extend(places.map(|&place| numbers.get(place as usize).copied().unwrap_or_default()));
    }

    /// For each word of a text's bag, its place.
    pub(crate) fn places(&self, side: usize) -> &[u32] {
        &self.places[side]
    }
}
