//! A deserialiser around another that reports in types what is wrong with a value, and its
//! position. A parser's own errors are only sentences.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::http::error::{Pointer, Segment};

/// Longest name of a field in a pointer: clients choose it.
const NAME_CHARS: usize = 64;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Syntax,
    /// The value has another type, or another form, than expected.
    Type(String),
    /// A list or an object of another length.
    Length(String),
    /// A number out of this range.
    Range(String),
    UnknownField(&'static [&'static str]),
    UnknownWord(&'static [&'static str]),
    Missing(&'static str),
    Twice(&'static str),
    Other,
}

#[derive(Debug)]
pub(super) struct Problem {
    pub(super) kind: Kind,
    /// Set as soon as the error passes the deserialiser of the faulty value.
    at: Option<Pointer>,
}

impl Problem {
    /// The problem at this position.
    pub(super) fn at(self, place: Pointer) -> Self {
        Self { at: Some(place), ..self }
    }

    pub(super) fn pointer(&self) -> Pointer {
        let at = self.at.clone().unwrap_or_default();
        match self.kind {
            // A repeated name that the caller chose is not known here.
            Kind::Twice("") => at,
            Kind::Twice(field) => at.field(field),
            _ => at,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.kind)
    }
}

impl std::error::Error for Problem {}

impl From<Kind> for Problem {
    fn from(kind: Kind) -> Self {
        Self { kind, at: None }
    }
}

impl Error for Problem {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Kind::Other.into()
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Kind::Type(expected.to_string()).into()
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        match found {
            Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => {
                Kind::Range(expected).into()
            }
            _ => Kind::Type(expected).into(),
        }
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Kind::Length(expected.to_string()).into()
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Self {
        Kind::UnknownWord(known).into()
    }

    fn unknown_field(_: &str, known: &'static [&'static str]) -> Self {
        Kind::UnknownField(known).into()
    }

    fn missing_field(field: &'static str) -> Self {
        Kind::Missing(field).into()
    }

    fn duplicate_field(field: &'static str) -> Self {
        Kind::Twice(field).into()
    }
}

/// The position of the reader, and the problem behind a parser error.
#[derive(Debug, Default)]
pub(super) struct Trace {
    path: RefCell<Vec<Segment>>,
    problem: RefCell<Option<Problem>>,
}

impl Trace {
    fn depth(&self) -> usize {
        self.path.borrow().len()
    }

    fn enter(&self, segment: Segment) {
        self.path.borrow_mut().push(segment);
    }

    fn leave(&self) {
        self.path.borrow_mut().pop();
    }

    /// The pointer to the value at this depth.
    fn pointer(&self, depth: usize) -> Option<Pointer> {
        Some(self.path.borrow().iter().take(depth).cloned().collect())
    }

    /// Stores the problem of the value at this depth behind a parser error.
    fn hold<T, E: Error>(&self, read: Result<T, Problem>, depth: usize) -> Result<T, E> {
        read.map_err(|problem| {
            let at = problem.at.or_else(|| self.pointer(depth));
            *self.problem.borrow_mut() = Some(Problem { at, ..problem });
            E::custom("held")
        })
    }

    /// The problem behind a parser error; without one, the parser's own.
    fn release<E>(&self, _: E) -> Problem {
        let own = || Problem { kind: Kind::Syntax, at: self.pointer(usize::MAX) };
        self.problem.borrow_mut().take().unwrap_or_else(own)
    }
}

pub(super) struct Traced<'t, T> {
    inner: T,
    trace: &'t Trace,
    /// The depth of the value that it reads.
    depth: usize,
    items: usize,
}

impl<'t, T> Traced<'t, T> {
    pub(super) fn new(inner: T, trace: &'t Trace) -> Self {
        Self { inner, trace, depth: trace.depth(), items: 0 }
    }
}

macro_rules! passed_on {
    ($($read:ident)+) => {$(
        fn $read<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
            let visitor = Traced::new(visitor, self.trace);
            self.inner.$read(visitor).map_err(|error| self.trace.release(error))
        }
    )+};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Traced<'_, D> {
    type Error = Problem;

    passed_on! { deserialize_any deserialize_option deserialize_ignored_any }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        let visitor = Traced::new(visitor, self.trace);
        let read = self.inner.deserialize_newtype_struct(name, visitor);
        read.map_err(|error| self.trace.release(error))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        self.deserialize_any(Word(visitor))
    }

    // The value's own type decides, so the visitor finds a wrong type.
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map struct identifier
    }
}

struct Word<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for Word<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<V::Value, E> {
        self.0.visit_enum(word.into_deserializer())
    }

    // For a unit variant `"word"` the parser also accepts `{"word": null}`.
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(MapAccessDeserializer::new(map))
    }
}

macro_rules! visits {
    ($($visit:ident($($value:ident: $type:ty)?);)+) => {$(
        fn $visit<E: Error>(self $(, $value: $type)?) -> Result<V::Value, E> {
            self.trace.hold(self.inner.$visit($($value)?), self.depth)
        }
    )+};
}

macro_rules! visits_of {
    ($($visit:ident($access:ident);)+) => {$(
        fn $visit<A: $access<'de>>(self, from: A) -> Result<V::Value, A::Error> {
            self.trace.hold(self.inner.$visit(Traced::new(from, self.trace)), self.depth)
        }
    )+};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Traced<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visits! {
        visit_bool(value: bool);
        visit_i64(value: i64);
        visit_u64(value: u64);
        visit_f64(value: f64);
        visit_str(value: &str);
        visit_borrowed_str(value: &'de str);
        visit_string(value: String);
        visit_unit();
        visit_none();
    }

    visits_of! {
        visit_some(Deserializer);
        visit_newtype_struct(Deserializer);
        visit_seq(SeqAccess);
        visit_map(MapAccess);
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Traced<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        let read = self.inner.deserialize(Traced::new(from, self.trace));
        self.trace.hold(read, self.depth)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Traced<'_, A> {
    type Error = Problem;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Problem> {
        self.trace.enter(Segment::Index(self.items));
        self.items += 1;
        let read = self.inner.next_element_seed(Traced::new(seed, self.trace));
        let read = read.map_err(|error| self.trace.release(error))?;
        self.trace.leave();
        Ok(read)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Traced<'_, A> {
    type Error = Problem;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Problem> {
        let key = self.inner.next_key::<String>().map_err(|error| self.trace.release(error))?;
        let Some(key) = key else { return Ok(None) };
        self.trace.enter(short_key(&key));
        let at = |problem| Problem { at: self.trace.pointer(usize::MAX), ..problem };
        seed.deserialize(Key(key)).map(Some).map_err(at)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Problem> {
        let read = self.inner.next_value_seed(Traced::new(seed, self.trace));
        let read = read.map_err(|error| self.trace.release(error))?;
        self.trace.leave();
        Ok(read)
    }
}

/// The segment of a pointer for a field of this name.
pub(super) fn short_key(name: &str) -> Segment {
    Segment::Key(name.chars().take(NAME_CHARS).collect())
}

pub(super) struct Key(pub(super) String);

impl<'de> Deserializer<'de> for Key {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_string(self.0)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
