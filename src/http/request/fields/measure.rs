//! The measure that vectors are to be compared by.

use std::borrow::Cow;

use cognate::engine::Measure;
use serde::Deserialize;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// The name of a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct MeasureName(pub Measure);

impl PartialSchema for MeasureName {
    fn schema() -> RefOr<Schema> {
        let description = "What two vectors are compared by: the cosine of their angle, or 1 / (1 + \
                           their distance), so that larger is always more alike. Only methods that have \
                           vectors can be asked for `euclidean`.";
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(Measure::ALL.map(Measure::name)))
            .description(Some(description))
            .into()
    }
}

impl ToSchema for MeasureName {
    fn name() -> Cow<'static, str> {
        "Measure".into()
    }
}
