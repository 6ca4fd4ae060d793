//! A text that is compared with many: its rows, its memberships in itself, and what it has learnt of
//! the words of the others.

use cognate_kernels::pairwise;
use cognate_kernels::simd::bytes;
use cognate_kernels::simd::bytes::ByteRows;
use cognate_kernels::vector::Row;

use crate::methods::common::rows;
use crate::methods::common::words_met::WordsMet;
use crate::methods::sets::dynamax::ratio::Side;
use crate::methods::sets::dynamax::{Buffers, Dynamax};
use crate::model::Phrase;

/// What belongs to a text that is compared with many.
pub(super) struct ForMany<'q> {
    rows: Rows<'q>,
    /// Memberships of the text's words in itself.
    own: Vec<f32>,
    met: WordsMet,
}

/// The rows of the text.
enum Rows<'q> {
    Floats(Vec<f32>),
    Bytes(ByteRows<'q>),
}

impl<'q> ForMany<'q> {
    pub(super) fn of(method: &Dynamax, one: &'q Phrase<'q>, buffers: &mut Buffers) -> Self {
        method.within(one, buffers);
        let own = std::mem::take(&mut buffers.both[0]);
        let (mut floats, mut of_bytes) = (Vec::new(), ByteRows::default());
        let rows = if rows::bytes(one, |word| method.weight(one, word), &mut of_bytes) {
            Rows::Bytes(of_bytes)
        } else {
            rows::weighted(one, |word| method.weight(one, word), &mut floats);
            Rows::Floats(floats)
        };
        Self { rows, own, met: WordsMet::by(one.words().len()) }
    }

    /// Makes room if too much is known.
    pub(super) fn tidy(&mut self) {
        self.met.tidy();
    }

    /// Multiplies the words of many texts that were not met yet with those of the one.
    pub(super) fn meet(&mut self, method: &Dynamax, many: &[Phrase<'_>], buffers: &mut Buffers) {
        let dims = many.first().map_or(1, |other| other.model().vectors().dims());
        let (met, places) = (&mut self.met, &mut buffers.places);
        places.clear();
        let words = many.iter().flat_map(|other| other.bag().map(move |word| (other, word)));
        let new = words.filter_map(|(other, word)| {
            let place = word.id.map(|id| met.place(id));
            places.push(place.map_or(u32::MAX, |(place, _)| place));
            place.filter(|(_, new)| *new).map(|_| (other, word))
        });
        let stride = match &self.rows {
            Rows::Bytes(rows) => {
                let mut others: ByteRows<'_> = std::mem::take(&mut buffers.bytes[0]);
                let of_bytes = new.filter_map(|(other, word)| match other.row(word) {
                    Row::I8(row, scale) => Some((row, method.weight(other, word) * scale)),
                    Row::F32(_) | Row::F16(_) => None,
                });
                others.fill(dims, of_bytes);
                bytes::products(&others, rows, &mut buffers.products);
                buffers.bytes[0] = others.emptied();
                rows.stride()
            }
            Rows::Floats(rows) => {
                buffers.rows.clear();
                for (other, word) in new {
                    let start = buffers.rows.len();
                    buffers.rows.resize(start + dims, 0.0);
                    let row = buffers.rows.get_mut(start..).unwrap_or_default();
                    other.row(word).scale_to(method.weight(other, word), row);
                }
                pairwise::products(&buffers.rows, rows, dims, &mut buffers.products);
                rows.len() / dims
            }
        };
        self.met.learn(&buffers.products, stride);
    }

    /// The text against another of which all words were met: they have the places from `first` on.
    pub(super) fn score(
        &self,
        method: &Dynamax,
        other: &Phrase<'_>,
        first: usize,
        buffers: &mut Buffers,
    ) -> f32 {
        method.within(other, buffers);
        std::mem::swap(&mut buffers.of_other[0], &mut buffers.both[0]);
        let places = buffers.places.get(first..first + other.words().len()).unwrap_or_default();
        let into = [&mut buffers.of_one[1], &mut buffers.of_other[1]];
        self.met.memberships(places, into);
        let [own, other] = &buffers.of_other;
        let one = Side { own: &self.own, other: &buffers.of_one[1] };
        method.ratio.of(one, Side { own, other })
    }
}
