//! Parses a filter from JSON. Conditions, values and depth are counted during parsing, so that an
//! oversized filter is never in memory.

use std::collections::HashSet;
use std::fmt;

use cognate_files::instant;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_json::error::Category;

use crate::Attribute;
use crate::filter::{Comparison, Condition, Filter, FilterProblem, Side, Values};

const MAX_BYTES: usize = 64 << 10;
const MAX_VALUES: usize = 256;
const MAX_IN_ALL: usize = 1024;
/// Longest name in a pointer: clients choose it.
const NAME_CHARS: usize = 64;
const DEEPEST: usize = 4;

const TOO_LONG: &str = "a filter has at most 65,536 bytes";
const TOO_MUCH: &str = "a filter has at most 1,024 conditions and values in all";
const TOO_MANY: &str = "a list of a filter has at most 256 values";
const TOO_DEEP: &str = "filters lie in filters at most 4 deep";
const TWICE: &str = "this stands in its filter twice";
const NOT_JSON: &str = "the filter is not JSON";
const A_FILTER: &str = "a filter is an object";
const FILTERS: &str = "`any` is a list of filters";
const A_TRUTH: &str = "`exists` is true or false";
const A_VALUE: &str = "expected a string, a number, true or false";
const UNORDERED: &str = "only numbers and strings have an order";
const A_TIME: &str = "expected a time: a date, RFC 3339, seconds or milliseconds since 1970";
const OUT_OF_RANGE: &str = "the number is out of range";
const UNKNOWN_TEST: &str = "expected one of eq, ne, in, gt, gte, lt, lte, exists";
const NO_TEST: &str = "a condition has at least one of eq, ne, in, gt, gte, lt, lte, exists";

pub(super) fn filter(written: &str) -> Result<Filter, FilterProblem> {
    if written.len() > MAX_BYTES {
        return Err(FilterProblem { pointer: String::new(), what: TOO_LONG });
    }
    let mut reading = Reading {
        left: MAX_IN_ALL,
        at: String::new(),
        expected: A_FILTER,
        problem: None,
        of_time: false,
    };
    let mut json = serde_json::Deserializer::from_str(written);
    let read = AFilter { reading: &mut reading, depth: 1 }.deserialize(&mut json);
    read.and_then(|filter| json.end().map(|()| filter)).map_err(|error| {
        let Reading { at, expected, problem, .. } = reading;
        problem.unwrap_or_else(|| match error.classify() {
            // No message of the parser is repeated: it may quote the request.
            Category::Data => FilterProblem { pointer: at, what: expected },
            _ if stops_behind_a_number(written, &error) => {
                FilterProblem { pointer: at, what: OUT_OF_RANGE }
            }
            _ => FilterProblem { pointer: String::new(), what: NOT_JSON },
        })
    })
}

/// Whether the parser stopped right after a whole number, which happens for a number beyond the
/// range of floats.
fn stops_behind_a_number(written: &str, error: &serde_json::Error) -> bool {
    let line = written.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let read = line.get(..error.column()).unwrap_or_default();
    let before = read.trim_end_matches(|c: char| c.is_ascii_digit() || "+-.eE".contains(c));
    before.len() < read.len()
        && before.ends_with([':', ',', '[', ' ', '\t'])
        && serde_json::from_str::<serde::de::IgnoredAny>(written).is_ok()
}

struct Reading {
    left: usize,
    /// JSON pointer to the next value.
    at: String,
    expected: &'static str,
    problem: Option<FilterProblem>,
    /// Whether values are times, which are read as milliseconds.
    of_time: bool,
}

impl Reading {
    fn fault<E: Error>(&mut self, what: &'static str) -> E {
        let pointer = self.at.clone();
        self.problem.get_or_insert(FilterProblem { pointer, what });
        E::custom(what)
    }

    fn count<E: Error>(&mut self) -> Result<(), E> {
        self.left = self.left.checked_sub(1).ok_or_else(|| self.fault(TOO_MUCH))?;
        Ok(())
    }

    /// Reads the value under a name or an index.
    fn under<T, E>(
        &mut self,
        step: impl fmt::Display,
        read: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let above = self.at.len();
        let short: String = step.to_string().chars().take(NAME_CHARS).collect();
        self.at.push('/');
        self.at.push_str(&short.replace('~', "~0").replace('/', "~1"));
        let value = read(self)?;
        // On failure the pointer stays, for the error.
        self.at.truncate(above);
        Ok(value)
    }
}

struct AFilter<'r> {
    reading: &'r mut Reading,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for AFilter<'_> {
    type Value = Filter;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Filter, D::Error> {
        self.reading.expected = A_FILTER;
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AFilter<'_> {
    type Value = Filter;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(A_FILTER)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Filter, A::Error> {
        let Self { reading, depth } = self;
        if depth > DEEPEST {
            return Err(reading.fault(TOO_DEEP));
        }
        let (mut conditions, mut names) = (Vec::new(), HashSet::new());
        while let Some(name) = map.next_key::<String>()? {
            reading.under(&name, |reading| {
                reading.count()?;
                if !names.insert(name.clone()) {
                    return Err(reading.fault(TWICE));
                }
                match name.as_str() {
                    "any" => {
                        let filters = map.next_value_seed(Filters { reading, depth: depth + 1 })?;
                        conditions.push(Condition::Any(filters));
                    }
                    "not" => {
                        let filter = map.next_value_seed(AFilter { reading, depth: depth + 1 })?;
                        conditions.push(Condition::Not(filter));
                    }
                    name => {
                        reading.of_time = name == "time";
                        let tests = match map.next_value_seed(Asked { reading, form: Form::Any })? {
                            Written::Values(list) => vec![Comparison::In(Values::new(list))],
                            Written::Tests(tests) => tests,
                        };
                        let of = |test| match name {
                            "time" => Condition::Time(test),
                            name => Condition::Of(name.into(), test),
                        };
                        conditions.extend(tests.into_iter().map(of));
                    }
                }
                Ok(())
            })?;
        }
        Ok(Filter(conditions))
    }
}

struct Filters<'r> {
    reading: &'r mut Reading,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Filters<'_> {
    type Value = Vec<Filter>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Vec<Filter>, D::Error> {
        self.reading.expected = FILTERS;
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Filters<'_> {
    type Value = Vec<Filter>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FILTERS)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Filter>, A::Error> {
        let Self { reading, depth } = self;
        let mut filters = Vec::new();
        loop {
            let next = reading.under(filters.len(), |reading| {
                list.next_element_seed(Counted(AFilter { reading, depth }))
            })?;
            match next {
                Some(filter) => filters.push(filter),
                None => return Ok(filters),
            }
        }
    }
}

/// A filter of a list, which is counted before its contents.
struct Counted<'r>(AFilter<'r>);

impl<'de> DeserializeSeed<'de> for Counted<'_> {
    type Value = Filter;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Filter, D::Error> {
        self.0.reading.count()?;
        self.0.deserialize(from)
    }
}

fn time(written: &Attribute) -> Option<Attribute> {
    let time = match written {
        Attribute::Text(text) => instant::milliseconds(text),
        Attribute::Number(number) => instant::milliseconds(&number.to_string()),
        Attribute::Truth(_) => None,
    };
    time.map(|time| Attribute::Number(time.into()))
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// A value, a list of them, or an object of tests.
    Any,
    Values,
    Value,
}

struct Asked<'r> {
    reading: &'r mut Reading,
    form: Form,
}

enum Written {
    Values(Vec<Attribute>),
    Tests(Vec<Comparison>),
}

impl<'de> DeserializeSeed<'de> for Asked<'_> {
    type Value = Written;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Written, D::Error> {
        self.reading.expected = A_VALUE;
        from.deserialize_any(self)
    }
}

impl Asked<'_> {
    fn one<E: Error>(self, value: Attribute) -> Result<Written, E> {
        self.reading.count()?;
        let value = match self.reading.of_time {
            true => time(&value).ok_or_else(|| self.reading.fault(A_TIME))?,
            false => value,
        };
        Ok(Written::Values(vec![value]))
    }
}

impl<'de> Visitor<'de> for Asked<'_> {
    type Value = Written;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(A_VALUE)
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Written, E> {
        self.one(Attribute::Truth(truth))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Written, E> {
        self.one(Attribute::Number(number.into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Written, E> {
        self.one(Attribute::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Written, E> {
        match Number::from_f64(number) {
            Some(number) => self.one(Attribute::Number(number)),
            None => Err(self.reading.fault(OUT_OF_RANGE)),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Written, E> {
        self.one(Attribute::Text(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Written, A::Error> {
        let Self { reading, form } = self;
        if form == Form::Value {
            return Err(reading.fault(A_VALUE));
        }
        let mut values = Vec::new();
        loop {
            let next = reading.under(values.len(), |reading| {
                list.next_element_seed(Asked { reading, form: Form::Value })
            })?;
            match next {
                None => return Ok(Written::Values(values)),
                Some(_) if values.len() == MAX_VALUES => return Err(reading.fault(TOO_MANY)),
                Some(Written::Values(one)) => values.extend(one),
                Some(Written::Tests(_)) => return Err(reading.fault(A_VALUE)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Written, A::Error> {
        let Self { reading, form } = self;
        if form != Form::Any {
            return Err(reading.fault(A_VALUE));
        }
        let (mut tests, mut names) = (Vec::new(), HashSet::new());
        while let Some(name) = map.next_key::<String>()? {
            let test = reading.under(&name, |reading| {
                if !names.insert(name.clone()) {
                    return Err(reading.fault(TWICE));
                }
                test(&name, &mut map, reading)
            })?;
            tests.push(test);
        }
        if tests.is_empty() { Err(reading.fault(NO_TEST)) } else { Ok(Written::Tests(tests)) }
    }
}

fn test<'de, A: MapAccess<'de>>(
    name: &str,
    map: &mut A,
    reading: &mut Reading,
) -> Result<Comparison, A::Error> {
    let side = match name {
        "eq" | "in" | "ne" => {
            let asked = Asked { reading: &mut *reading, form: Form::Values };
            return match map.next_value_seed(asked)? {
                Written::Values(list) if name == "ne" => Ok(Comparison::NotIn(Values::new(list))),
                Written::Values(list) => Ok(Comparison::In(Values::new(list))),
                Written::Tests(_) => Err(reading.fault(A_VALUE)),
            };
        }
        "exists" => {
            reading.expected = A_TRUTH;
            return map.next_value().map(Comparison::Exists);
        }
        "gt" => Side::Above,
        "gte" => Side::NotBelow,
        "lt" => Side::Below,
        "lte" => Side::NotAbove,
        _ => return Err(reading.fault(UNKNOWN_TEST)),
    };
    let asked = Asked { reading: &mut *reading, form: Form::Value };
    match map.next_value_seed(asked)? {
        Written::Values(list) => match list.into_iter().next() {
            Some(Attribute::Truth(_)) | None => Err(reading.fault(UNORDERED)),
            Some(bound) => Ok(Comparison::Beside(side, bound)),
        },
        Written::Tests(_) => Err(reading.fault(A_VALUE)),
    }
}

#[cfg(test)]
mod tests;
