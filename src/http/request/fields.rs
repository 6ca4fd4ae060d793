//! What bodies are made of: texts borrowed from the body, lists that cannot grow without bound,
//! numbers that must fit. Strings with escapes are the only ones that are copied.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error;
use serde::de::IgnoredAny;
use serde::de::MapAccess;
use serde::de::SeqAccess;
use serde::de::Unexpected;
use serde::de::Visitor;

/// Most items of any list that are kept, whatever the settings; the others are only counted.
pub const MOST_ITEMS: usize = 100_000;

/// How a number that does not fit begins its complaint, here as in `serde_json`.
pub const OUT_OF_RANGE: &str = "number out of range";

/// A string, borrowed from the body where it stands there as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
#[serde(transparent)]
pub struct Text<'b>(pub Cow<'b, str>);

impl AsRef<str> for Text<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for Text<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Strings;
        impl<'de> Visitor<'de> for Strings {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        from.deserialize_str(Strings)
    }
}

/// A list of which at most [`MOST_ITEMS`] items are kept.
#[derive(Debug, Clone, PartialEq)]
pub struct List<T> {
    /// The items.
    pub items: Vec<T>,
    /// How many the list had.
    pub length: usize,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Items(PhantomData))
    }
}

struct Items<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<T>, A::Error> {
        let mut items = Vec::new();
        while items.len() < MOST_ITEMS {
            match list.next_element()? {
                Some(item) => items.push(item),
                None => return Ok(List { length: items.len(), items }),
            }
        }
        let mut length = items.len();
        while list.next_element::<IgnoredAny>()?.is_some() {
            length += 1;
        }
        Ok(List { items, length })
    }
}

/// A list of exactly two texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair<'b>(pub Text<'b>, pub Text<'b>);

impl<'de: 'b, 'b> Deserialize<'de> for Pair<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Two)
    }
}

/// Reads a [`Pair`]. The parser's own tuples take a third item for a fault of the JSON.
pub struct Two;

impl<'de> Visitor<'de> for Two {
    type Value = Pair<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of two strings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let a = list.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let b = list.next_element()?.ok_or_else(|| A::Error::invalid_length(1, &self))?;
        match list.next_element::<IgnoredAny>()? {
            None => Ok(Pair(a, b)),
            Some(_) => Err(A::Error::invalid_length(3, &self)),
        }
    }
}

/// One text or a list of texts.
#[derive(Debug, Clone, PartialEq)]
pub struct OneOrMore<'b> {
    /// The texts.
    pub texts: List<Text<'b>>,
    /// Whether it is one text, and no list.
    pub alone: bool,
}

impl<'b> OneOrMore<'b> {
    fn one(text: Cow<'b, str>) -> Self {
        Self { texts: List { items: vec![Text(text)], length: 1 }, alone: true }
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for OneOrMore<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = OneOrMore<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of strings")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(OneOrMore::one(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(OneOrMore::one(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                let texts = Items(PhantomData).visit_seq(list)?;
                Ok(OneOrMore { texts, alone: false })
            }
        }
        from.deserialize_any(Either)
    }
}

/// A candidate's own name: a string or a whole number, given back as it came.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Id<'b> {
    /// A string.
    Text(Text<'b>),
    /// A whole number.
    Number(i64),
}

impl<'de: 'b, 'b> Deserialize<'de> for Id<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Id<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a whole number")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Id::Text(Text(Cow::Borrowed(text))))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Id::Text(Text(Cow::Owned(text.to_owned()))))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Id::Number(number))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                let number = i64::try_from(number);
                number.map(Id::Number).map_err(|_| E::custom(OUT_OF_RANGE))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
                whole(number).map(Id::Number).ok_or_else(|| misfit(number, &self))
            }
        }
        from.deserialize_any(Either)
    }
}

/// A text to be ranked, with or without a name of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate<'b> {
    /// Its name.
    pub id: Option<Id<'b>>,
    /// The text.
    pub text: Text<'b>,
    /// Whether it is an object, and no mere string.
    pub object: bool,
}

impl AsRef<str> for Candidate<'_> {
    fn as_ref(&self) -> &str {
        self.text.as_ref()
    }
}

/// A candidate that is not a mere string.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedCandidate<'b> {
    #[serde(borrow)]
    id: Option<Id<'b>>,
    #[serde(borrow)]
    text: Text<'b>,
}

impl<'de: 'b, 'b> Deserialize<'de> for Candidate<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Candidate<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an object with `id` and `text`")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Candidate { id: None, text: Text(Cow::Borrowed(text)), object: false })
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Candidate { id: None, text: Text(Cow::Owned(text.to_owned())), object: false })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let fields = serde::de::value::MapAccessDeserializer::new(map);
                let NamedCandidate { id, text } = NamedCandidate::deserialize(fields)?;
                Ok(Candidate { id, text, object: true })
            }
        }
        from.deserialize_any(Either)
    }
}

/// What is wrong with a number that is no whole one: its fraction, or its size.
fn misfit<E: Error>(number: f64, expected: &dyn serde::de::Expected) -> E {
    match number.fract() == 0.0 {
        true => E::custom(OUT_OF_RANGE),
        false => E::invalid_type(Unexpected::Float(number), expected),
    }
}

/// The whole number that JSON also lets be written as `3.0`, if it is one.
fn whole(number: f64) -> Option<i64> {
    // Beyond this not every whole number has a float of its own.
    let exact = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
    exact.then_some(number as i64)
}

/// Largest score or threshold that can be asked for; no method comes near it.
pub const MOST_SCORE: f64 = 1e6;

/// A score that is asked for, at most [`MOST_SCORE`] either way. Kept as it was written: the parser
/// would turn what is too large for an f32 into infinity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Real(pub f64);

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Real;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Real, E> {
                Real::of(number)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Real, E> {
                Real::of(number as f64)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Real, E> {
                Real::of(number as f64)
            }
        }
        from.deserialize_f64(Number)
    }
}

impl Real {
    /// The number, if it fits.
    pub fn of<E: Error>(number: f64) -> Result<Self, E> {
        if number.abs() <= MOST_SCORE { Ok(Self(number)) } else { Err(E::custom(OUT_OF_RANGE)) }
    }
}

/// A whole number from 1 to [`MOST_ITEMS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(pub usize);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Clone, Copy)]
        struct Whole;
        impl Visitor<'_> for Whole {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from 1 to {MOST_ITEMS}")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Count, E> {
                let fits = usize::try_from(number).ok().filter(|n| (1..=MOST_ITEMS).contains(n));
                fits.map(Count).ok_or_else(|| E::custom(OUT_OF_RANGE))
            }

            fn visit_i64<E: Error>(self, _negative: i64) -> Result<Count, E> {
                Err(E::custom(OUT_OF_RANGE))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Count, E> {
                let number = whole(number).ok_or_else(|| misfit(number, &self))?;
                u64::try_from(number).map_or_else(|_| self.visit_i64(number), |n| self.visit_u64(n))
            }
        }
        from.deserialize_any(Whole)
    }
}
