//! Bodies of two dialects at one path, told apart by their fields.

use std::fmt;

use cognate::engine::Counts;
use serde::Deserializer;
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};

use crate::http::api::pipeline::{Plan, Question};
use crate::http::app::App;
use crate::http::compatible::address::Address;
use crate::http::dialect::Dialect;
use crate::http::error::ApiError;
use crate::http::registry::models::Models;
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

/// The field that no body of ours has.
const FIELD: &str = "inputs";

/// A question of ours, or one of another dialect.
pub(super) enum Either<N, O> {
    Native(N),
    Other(O),
}

impl<N, O> Question for Either<N, O>
where
    N: Question<Address = ()>,
    O: Question<Address = Address>,
{
    type In<'b> = Either<N::In<'b>, O::In<'b>>;
    type Address = Address;

    /// Ours is tried first, so that it costs nothing to tell them apart; the other's field is unknown
    /// to it and ends the attempt there.
    fn read<'b>(body: &'b [u8], address: &Address) -> Result<Self::In<'b>, ApiError> {
        match N::read(body, &()) {
            Ok(question) => Ok(Either::Native(question)),
            Err(_) if has_field(body, FIELD) => O::read(body, address).map(Either::Other),
            Err(error) => Err(error.spoken(Dialect::Native)),
        }
    }

    fn dialect(&self) -> Dialect {
        match self {
            Self::Native(question) => question.dialect(),
            Self::Other(question) => question.dialect(),
        }
    }

    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        match self {
            Self::Native(question) => question.plan(app, models),
            Self::Other(question) => question.plan(app, models),
        }
    }

    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        match self {
            Self::Native(question) => question.answer(plan, app, work, answer),
            Self::Other(question) => question.answer(plan, app, work, answer),
        }
    }
}

/// Whether an object has this field. Stops where it is found.
pub(super) fn has_field(body: &[u8], field: &str) -> bool {
    struct Look<'f>(&'f str, &'f mut bool);
    impl<'de> Visitor<'de> for Look<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                if key == self.0 {
                    *self.1 = true;
                    return Err(A::Error::custom("found"));
                }
                map.next_value::<IgnoredAny>()?;
            }
            Ok(())
        }
    }
    let mut found = false;
    // Whether the rest is JSON is for whoever reads it.
    let _ = serde_json::Deserializer::from_slice(body).deserialize_map(Look(field, &mut found));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_at_the_top_alone() {
        let cases = [
            (r#"{"inputs":"#, true),
            (r#"{"normalize":true,"inputs":["a"]}"#, true),
            (r#"{"in\u0070uts":1}"#, true),
            (r#"{"texts":[{"inputs":1}]}"#, false),
            (r#"["inputs"]"#, false),
            ("{", false),
        ];
        for (body, found) in cases {
            assert_eq!(has_field(body.as_bytes(), "inputs"), found, "{body}");
        }
    }
}
