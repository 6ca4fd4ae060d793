//! Names of methods, by use. Whether a method of that name exists is checked later, where the model
//! is known.

use std::borrow::Cow;

use cognate::engine::Measure;
use cognate::methods::{Info, Kind, Method};
use serde::Deserialize;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Declares types from a description, a name and the methods that are listed.
macro_rules! method_names {
    ($(#[doc = $doc:literal] $name:ident: $listed:expr;)+) => {$(
        #[doc = $doc]
        #[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
        #[serde(transparent)]
        pub(crate) struct $name<'b>(#[serde(borrow)] pub Cow<'b, str>);

        impl AsRef<str> for $name<'_> {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl PartialSchema for $name<'_> {
            fn schema() -> RefOr<Schema> {
                names($doc, $listed)
            }
        }

        impl ToSchema for $name<'_> {
            fn name() -> Cow<'static, str> {
                stringify!($name).into()
            }
        }
    )+};
}

method_names! {
    #[doc = "A method that scores pairs. `auto` is the model's choice; case and `_` for `-` do not matter."]
    PairMethod: |info| info.kind == Kind::Similarity;
    #[doc = "A method that has a vector of one text. `auto` is the model's choice."]
    VectorMethod: |info| info.embeds;
    #[doc = "A method whose score of two texts can be explained: any but those that score whole lists. \
             `auto` is the model's choice; case and `_` for `-` do not matter."]
    ExplainMethod: |_| true;
    #[doc = "Any method. `auto` is the model's choice; case and `_` for `-` do not matter. Methods that a \
             model fuses of others, `fused:NAME`, are named by `/methods` and by the document of a server \
             with such a model."]
    RankMethod: |_| true;
}

fn names(description: &str, listed: fn(&Info) -> bool) -> RefOr<Schema> {
    let infos = Method::ALL.iter().map(|method| method.info());
    let names = infos.filter(|info| listed(info)).map(|info| info.name);
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(std::iter::once("auto").chain(names)))
        .description(Some(description))
        .into()
}

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
