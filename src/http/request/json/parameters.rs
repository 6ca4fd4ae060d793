//! The settings of a query string; errors name the parameter and what it may be, as those of fields
//! do.

use std::vec::IntoIter;

use axum::extract::Query;
use axum::http::Uri;
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::http::error::{ApiError, Code, Result};
use crate::http::request::json::refusal;
use crate::http::request::json::trace::{Key, Problem, short_key};

pub(crate) fn read_query<T: DeserializeOwned>(uri: &Uri) -> Result<T> {
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri);
    let Query(pairs) = pairs.map_err(|_| {
        ApiError::at(Code::InvalidField, "", "the query string is not `name=value&name=value`")
    })?;
    let parameters = Parameters { pairs: pairs.into_iter(), now: Default::default() };
    T::deserialize(MapAccessDeserializer::new(parameters)).map_err(|problem| refusal(&problem))
}

struct Parameters {
    pairs: IntoIter<(String, String)>,
    now: (String, String),
}

impl Parameters {
    fn at_fault(&self, problem: Problem) -> Problem {
        problem.at([short_key(&self.now.0)].into_iter().collect())
    }
}

impl<'de> MapAccess<'de> for Parameters {
    type Error = Problem;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Problem> {
        let Some(pair) = self.pairs.next() else { return Ok(None) };
        self.now = pair;
        let key = seed.deserialize(Key(self.now.0.clone()));
        key.map(Some).map_err(|problem| self.at_fault(problem))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Problem> {
        let value = std::mem::take(&mut self.now.1);
        seed.deserialize(Written(value)).map_err(|problem| self.at_fault(problem))
    }
}

/// A value as it was written, of whatever type is expected.
struct Written(String);

macro_rules! parsed {
    ($($read:ident: $type:ty => $visit:ident;)+) => {$(
        fn $read<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
            match self.0.parse::<$type>() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(Problem::invalid_type(Unexpected::Other("another"), &visitor)),
            }
        }
    )+};
}

impl<'de> Deserializer<'de> for Written {
    type Error = Problem;

    parsed! {
        deserialize_bool: bool => visit_bool;
        deserialize_u32: u64 => visit_u64;
        deserialize_u64: u64 => visit_u64;
        deserialize_i64: i64 => visit_i64;
        deserialize_f64: f64 => visit_f64;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_string(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    forward_to_deserialize_any! {
        i8 i16 i32 u8 u16 f32 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map
        struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "snake_case")]
    enum Order {
        Last,
        PerHour,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Asked {
        sort: Option<Order>,
        since: Option<cognate_collections::Time>,
        limit: Option<usize>,
        centre: Option<f64>,
        after: Option<String>,
        #[serde(default)]
        all: bool,
    }

    fn read(query: &str) -> Result<Asked> {
        read_query(&format!("/x?{query}").parse().unwrap())
    }

    #[test]
    fn parameters_are_what_is_expected_of_them() {
        let asked = read("sort=per_hour&since=1&limit=7&centre=0.5&after=&all=true").unwrap();
        let expected = (Some(Order::PerHour), Some(7), Some(0.5), Some(String::new()), true);
        assert_eq!((asked.sort, asked.limit, asked.centre, asked.after, asked.all), expected);
        assert!(asked.since.is_some() && read("").unwrap().sort.is_none());
    }

    #[test]
    fn a_wrong_value_is_told_by_its_parameter_and_what_is_allowed() {
        for (query, at, expected) in [
            ("sort=burst", "/sort", "expected `last` or `per_hour`"),
            ("since=june", "/since", "RFC 3339"),
            ("limit=-1", "/limit", "a whole number"),
            ("all=yes&limit=1", "/all", "true or false"),
            ("limit=1&centre=x", "/centre", "a number"),
            ("limit=1&limit=2", "/limit", "twice"),
            ("top_k=1", "/top_k", "unknown field `top_k`; expected one of `sort`, "),
            ("a%20secret=1", "/a secret", "unknown field; expected one of `sort`, "),
        ] {
            let error = read(query).unwrap_err();
            let pointer = error.faults[0].pointer.to_string();
            let detail = error.detail.to_string();
            assert_eq!((error.code, &*pointer), (Code::InvalidField, at), "{query}");
            assert!(detail.contains(expected), "{detail}");
        }
    }
}
