//! The attributes and times of a chunk's items by column, so that a condition is tested on all
//! items at once. A column is made when a filter first names its attribute, and dropped when the
//! chunk changes. [`Comparison::admits`] defines a condition; a test compares the columns with it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::embedded::bits::{BLOCK, Bits, TILES, and, or, set, without};
use crate::filter::{Comparison, Condition, Side};
use crate::settings::{Paid, allocated};
use crate::{
    AskedAttribute, Attribute, AttributeKind, Budget, Filter, Item, ItemSelector, MAX_ATTRIBUTES,
};

/// Minimum number of items for which a chunk gets columns.
const MIN_ITEMS: usize = 16;
/// Most columns of a chunk. A filter with more attributes is tested item by item.
pub(super) const MAX_COLUMNS: usize = MAX_ATTRIBUTES + 1;
/// The code of an item without a value: above every other code and the end of any range of codes.
const MISSING: u16 = u16::MAX;
/// The position of the kind in the bits of a key.
const KIND: u32 = 120;
/// Bytes of a text that its key holds; the lowest byte of a key tells whether there are more.
const KEY_BYTES: usize = 14;

/// The items of a block: this many are copied when a chunk is changed while a reader holds it.
#[derive(Debug, Clone, Default)]
pub(super) struct Chunk {
    /// Never empty, and rising.
    pub(super) numbers: Vec<u64>,
    pub(super) items: Vec<Arc<Item>>,
    /// Which indices of the block these items have.
    pub(super) places: Bits,
    pub(super) columns: Columns,
}

impl Chunk {
    pub(super) fn block(&self) -> u64 {
        self.numbers.first().map_or(0, |number| number / BLOCK)
    }

    pub(super) fn index(&self, number: u64) -> Option<usize> {
        let guess = number.checked_sub(*self.numbers.first()?)? as usize;
        let is_there = self.numbers.get(guess) == Some(&number);
        if is_there { Some(guess) } else { self.numbers.binary_search(&number).ok() }
    }
}

type NamedColumn = (Option<Box<str>>, Arc<Column>);

/// By attribute; the column of times has no name.
#[derive(Debug, Default)]
pub(super) struct Columns(RwLock<Vec<NamedColumn>>);

impl Clone for Columns {
    /// A copied chunk is about to change, so its columns are not copied.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Columns {
    pub(super) fn clear(&self) {
        *self.0.write() = Vec::new();
    }

    fn get(&self, name: Option<&str>) -> Option<Arc<Column>> {
        let columns = self.0.read();
        columns.iter().find(|(own, _)| own.as_deref() == name).map(|(_, column)| Arc::clone(column))
    }

    fn keep(&self, name: Option<&str>, column: &Arc<Column>) {
        let mut columns = self.0.write();
        columns.retain(|(own, _)| own.as_deref() != name);
        if columns.len() == MAX_COLUMNS {
            columns.remove(0);
        }
        columns.push((name.map(Box::from), Arc::clone(column)));
    }
}

#[derive(Debug)]
struct Column {
    /// For each index of the block, the index of the item's value in `keys`.
    codes: [u16; BLOCK as usize],
    /// Each value once, in order; of long texts their beginnings.
    keys: Box<[u128]>,
    /// For each key, the index of an item that has the value.
    examples: Box<[u16]>,
    _paid: Paid,
}

impl Column {
    fn bytes(name: Option<&str>, values: usize) -> usize {
        let own = size_of::<Self>() + 2 * size_of::<usize>();
        let slot = size_of::<NamedColumn>();
        let lists = [values * size_of::<u128>(), values * size_of::<u16>()];
        let all = [own, slot, name.map_or(0, str::len)].into_iter().chain(lists);
        all.map(allocated).sum()
    }

    /// `None` if there is no memory for it.
    fn new(chunk: &Chunk, name: Option<&str>, budget: &Arc<Budget>) -> Option<Self> {
        let mut paid = budget.take_spare(Self::bytes(name, chunk.items.len())).ok()?;
        let key = |(at, item)| Some((key(&*value(item, name)?), at));
        let mut values: Vec<(u128, usize)> =
            chunk.items.iter().map(Arc::as_ref).enumerate().filter_map(key).collect();
        let rest = |one: &(u128, usize)| is_cut(one.0).then(|| chunk.text(one.1, name));
        values.sort_unstable_by(|one, other| {
            one.0.cmp(&other.0).then_with(|| rest(one).cmp(&rest(other)))
        });
        let (mut keys, mut examples) = (Vec::new(), Vec::new());
        let mut codes = [MISSING; BLOCK as usize];
        for run in values.chunk_by(|one, next| one.0 == next.0 && rest(one) == rest(next)) {
            for (_, at) in run {
                codes[(chunk.numbers[*at] % BLOCK) as usize] = keys.len() as u16;
            }
            keys.extend(run.first().map(|(key, _)| *key));
            examples.extend(run.first().map(|(_, at)| *at as u16));
        }
        paid.shrink_to(Self::bytes(name, keys.len()));
        Some(Self { codes, keys: keys.into(), examples: examples.into(), _paid: paid })
    }

    /// The items that the test admits, which may include those without a value.
    fn tested(&self, test: &Comparison, chunk: &Chunk, name: Option<&str>) -> Bits {
        let not = |bits| without(&chunk.places, &bits);
        let any_of = |list: &[Attribute]| {
            let each = list.iter().map(|value| self.coded(self.codes_of(value, chunk, name)));
            each.fold([0; TILES], |all, one| or(&all, &one))
        };
        match test {
            Comparison::In(values) => any_of(values.list()),
            Comparison::NotIn(values) => not(any_of(values.list())),
            Comparison::Exists(true) => self.coded(0..self.keys.len()),
            Comparison::Exists(false) => not(self.coded(0..self.keys.len())),
            Comparison::Beside(_, Attribute::Truth(_)) => [0; TILES],
            Comparison::Beside(side, other) => {
                let equal = self.codes_of(other, chunk, name);
                let alike = self.codes_of_kind(other.kind());
                self.coded(match side {
                    Side::Above => equal.end..alike.end,
                    Side::NotBelow => equal.start..alike.end,
                    Side::Below => alike.start..equal.start,
                    Side::NotAbove => alike.start..equal.end,
                })
            }
        }
    }

    fn codes_of_kind(&self, kind: AttributeKind) -> Range<usize> {
        // Mostly all values are of one kind.
        let before = |kind: u128| match (self.keys.first(), self.keys.last()) {
            (Some(first), _) if first >> KIND >= kind => 0,
            (_, Some(last)) if last >> KIND >= kind => {
                self.keys.partition_point(|key| key >> KIND < kind)
            }
            _ => self.keys.len(),
        };
        before(kind as u128)..before(kind as u128 + 1)
    }

    /// The codes of values equal to this value: one code, or an empty range at which it would be
    /// inserted.
    fn codes_of(&self, value: &Attribute, chunk: &Chunk, name: Option<&str>) -> Range<usize> {
        let key = key(value);
        let start = self.keys.partition_point(|own| *own < key);
        let same = self.keys.get(start..).unwrap_or_default();
        let same = same.iter().take_while(|own| **own == key).count();
        let Attribute::Text(text) = value else { return start..start + same };
        if !is_cut(key) {
            return start..start + same;
        }
        let examples = self.examples.get(start..start + same).unwrap_or_default();
        let of = |at: &u16| chunk.text(usize::from(*at), name);
        let before = examples.partition_point(|at| of(at) < &**text);
        let is_there = examples.get(before).is_some_and(|at| of(at) == &**text);
        start + before..start + before + usize::from(is_there)
    }

    fn coded(&self, range: Range<usize>) -> Bits {
        let mut bits = [0; TILES];
        if range.is_empty() {
            return bits;
        }
        let (start, count) = (range.start as u16, range.len() as u16);
        for (tile, codes) in bits.iter_mut().zip(self.codes.as_chunks::<64>().0) {
            for (byte, codes) in codes.as_chunks::<8>().0.iter().enumerate() {
                let truths = codes.map(|code| u8::from(code.wrapping_sub(start) < count));
                // Moves the lowest bit of each byte into the highest byte, in their order.
                let gathered = u64::from_le_bytes(truths).wrapping_mul(0x0102_0408_1020_4080) >> 56;
                *tile |= gathered << (8 * byte);
            }
        }
        bits
    }
}

fn value<'i>(item: &'i Item, name: Option<&str>) -> Option<Cow<'i, Attribute>> {
    match name {
        Some(name) => item.attributes.get(name).map(Cow::Borrowed),
        None => Some(Cow::Owned(Attribute::Number(item.time.into()))),
    }
}

/// Returns a number that orders values first by kind, then within a kind. Only equal values have
/// equal keys, except texts longer than the key.
fn key(value: &Attribute) -> u128 {
    let kind = (value.kind() as u128) << KIND;
    kind | match value {
        Attribute::Truth(truth) => u128::from(*truth),
        Attribute::Number(number) => {
            // The nearest float, and how far a whole number is from it. Zero has one sign.
            let float = number.as_f64().unwrap_or_default() + 0.0;
            let rest = number.as_i128().map_or(0, |whole| whole - float as i128);
            let bits = float.to_bits();
            let ordered = if float < 0.0 { !bits } else { bits | 1 << 63 };
            u128::from(ordered) << 16 | (rest + (1 << 15)).cast_unsigned()
        }
        Attribute::Text(text) => {
            let mut bytes = [0; 16];
            let length = text.len().min(KEY_BYTES);
            bytes[1..=length].copy_from_slice(&text.as_bytes()[..length]);
            bytes[15] = text.len().min(KEY_BYTES + 1) as u8;
            u128::from_be_bytes(bytes)
        }
    }
}

fn is_cut(key: u128) -> bool {
    key >> KIND == AttributeKind::Text as u128 && key & 0xff > KEY_BYTES as u128
}

impl Chunk {
    /// The selected items not older than a time, without those excluded by name. Columns are stored
    /// if a budget is given.
    pub(super) fn meant(
        &self,
        which: &ItemSelector<'_>,
        oldest: Option<i64>,
        budget: Option<&Arc<Budget>>,
    ) -> Bits {
        let young = self.young(oldest, budget);
        let meant = self.admitted(&which.filter, &young, budget);
        match which.event.as_deref().filter(|_| meant != [0; TILES]) {
            Some(event) => and(&meant, &self.those(|item| item.is_of_event(event))),
            None => meant,
        }
    }

    pub(super) fn young(&self, oldest: Option<i64>, budget: Option<&Arc<Budget>>) -> Bits {
        let test =
            |oldest: i64| Comparison::Beside(Side::NotBelow, Attribute::Number(oldest.into()));
        oldest.map_or(self.places, |oldest| self.tested(None, &test(oldest), budget))
    }

    fn admitted(&self, filter: &Filter, some: &Bits, budget: Option<&Arc<Budget>>) -> Bits {
        filter.conditions().iter().fold(*some, |some, condition| match condition {
            _ if some == [0; TILES] => some,
            Condition::Of(name, test) => and(&some, &self.tested(Some(name), test, budget)),
            Condition::Time(test) => and(&some, &self.tested(None, test, budget)),
            Condition::Any(filters) => filters.iter().fold([0; TILES], |any, filter| {
                or(&any, &self.admitted(filter, &without(&some, &any), budget))
            }),
            Condition::Not(filter) => without(&some, &self.admitted(filter, &some, budget)),
        })
    }

    /// The items that have an attribute, of a given kind if the question names one.
    pub(super) fn having(&self, asked: &AskedAttribute<'_>, budget: Option<&Arc<Budget>>) -> Bits {
        let (name, kind) = *asked;
        match (self.column(Some(name), budget), kind) {
            (Some(column), Some(kind)) => column.coded(column.codes_of_kind(kind)),
            (Some(column), None) => column.coded(0..column.keys.len()),
            (None, _) => self.those(|item| item.attributes.have(asked)),
        }
    }

    /// A stored column, or a new column if a given budget has memory for it.
    fn column(&self, name: Option<&str>, budget: Option<&Arc<Budget>>) -> Option<Arc<Column>> {
        let made = |budget| {
            let column = Arc::new(Column::new(self, name, budget)?);
            self.columns.keep(name, &column);
            Some(column)
        };
        let budget = budget.filter(|_| self.items.len() >= MIN_ITEMS);
        budget.and_then(|budget| self.columns.get(name).or_else(|| made(budget)))
    }

    /// The items whose attribute, or time if `name` is `None`, passes a test.
    fn tested(&self, name: Option<&str>, test: &Comparison, budget: Option<&Arc<Budget>>) -> Bits {
        match self.column(name, budget) {
            Some(column) => column.tested(test, self, name),
            None => self.those(|item| test.admits(value(item, name).as_deref())),
        }
    }

    fn those(&self, holds: impl Fn(&Item) -> bool) -> Bits {
        let mut bits = [0; TILES];
        for (number, _) in self.numbers.iter().zip(&self.items).filter(|(_, item)| holds(item)) {
            set(&mut bits, (number % BLOCK) as usize);
        }
        bits
    }

    fn text(&self, index: usize, name: Option<&str>) -> &str {
        match name.and_then(|name| self.items.get(index)?.attributes.get(name)) {
            Some(Attribute::Text(text)) => text,
            _ => "",
        }
    }
}
