//! Reading and describing types that have several forms in JSON.

/// Reads a type by the JSON form of its value: for each form the value and the expression made from
/// it.
macro_rules! forms {
    ($name:ident<$b:lifetime>: $($rest:tt)+) => {
        forms!(@read {<'de: $b, $b>} {$name<$b>} {$name<'de>} $($rest)+);
    };
    ($name:ident: $($rest:tt)+) => {
        forms!(@read {<'de>} {$name} {$name} $($rest)+);
    };
    (@read {$($of:tt)+} {$($read:tt)+} {$($value:tt)+} $expected:expr;
        $($form:ident($($given:tt)+) => $made:expr;)+) => {
        impl $($of)+ serde::Deserialize<'de> for $($read)+ {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Form;
                impl<'de> serde::de::Visitor<'de> for Form {
                    type Value = $($value)+;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expected)
                    }

                    $(forms!(@$form $expected; $($given)+ => $made);)+
                }
                from.deserialize_any(Form)
            }
        }
    };
    // A string, borrowed from the body if it has no escapes.
    (@text $expected:expr; $text:pat => $made:expr) => {
        fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
            let $text: std::borrow::Cow<'de, str> = std::borrow::Cow::Borrowed(text);
            $made
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
            let $text: std::borrow::Cow<'de, str> = std::borrow::Cow::Owned(text.to_owned());
            $made
        }
    };
    // An object with the fields of a type.
    (@object $expected:expr; $fields:pat in $type:ty => $made:expr) => {
        fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            let from = serde::de::value::MapAccessDeserializer::new(map);
            let $fields = <$type as serde::Deserialize>::deserialize(from)?;
            $made
        }
    };
    // A list that is read as another type is.
    (@list $expected:expr; $list:pat in $type:ty => $made:expr) => {
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
            let from = serde::de::value::SeqAccessDeserializer::new(list);
            let $list = <$type as serde::Deserialize>::deserialize(from)?;
            $made
        }
    };
    (@number $expected:expr; $number:pat => $made:expr) => {
        fn visit_f64<E: serde::de::Error>(self, $number: f64) -> Result<Self::Value, E> {
            $made
        }

        fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
            self.visit_f64(number as f64)
        }

        fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
            self.visit_f64(number as f64)
        }
    };
    // A whole number of 64 bits, signed or not; also `3.0`.
    (@whole $expected:expr; $number:pat => $made:expr) => {
        fn visit_u64<E: serde::de::Error>(self, $number: u64) -> Result<Self::Value, E> {
            $made
        }

        fn visit_i64<E: serde::de::Error>(self, $number: i64) -> Result<Self::Value, E> {
            $made
        }

        fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Self::Value, E> {
            self.visit_i64($crate::http::request::fields::whole(number, &$expected)?)
        }
    };
    (@truth $expected:expr; $truth:pat => $made:expr) => {
        fn visit_bool<E: serde::de::Error>(self, $truth: bool) -> Result<Self::Value, E> {
            $made
        }
    };
}

/// Describes a type as another, or as one of several.
macro_rules! described {
    ($name:ident $(<$any:lifetime>)? as $twin:ty) => {
        impl utoipa::PartialSchema for $name $(<$any>)? {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                <$twin>::schema()
            }
        }

        described!(@named $name $(<$any>)?, |schemas| <$twin as utoipa::ToSchema>::schemas(schemas));
    };
    ($name:ident $(<$any:lifetime>)? as one of $($one:ty),+; $description:literal) => {
        impl utoipa::PartialSchema for $name $(<$any>)? {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                utoipa::openapi::OneOfBuilder::new()
                    $(.item(utoipa::openapi::Ref::from_schema_name(<$one as utoipa::ToSchema>::name())))+
                    .description(Some($description))
                    .into()
            }
        }

        described!(@named $name $(<$any>)?, |schemas| $(
            schemas.push((<$one as utoipa::ToSchema>::name().into(), <$one as utoipa::PartialSchema>::schema()));
            <$one as utoipa::ToSchema>::schemas(schemas);
        )+);
    };
    (@named $name:ident $(<$any:lifetime>)?, |$schemas:ident| $($listed:tt)+) => {
        impl utoipa::ToSchema for $name $(<$any>)? {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn schemas(
                $schemas: &mut Vec<(
                    String,
                    utoipa::openapi::RefOr<utoipa::openapi::Schema>,
                )>,
            ) {
                $($listed)+
            }
        }
    };
}

pub(crate) use {described, forms};
