//! The head of every answer: the model and the method.

use cognate::engine::Measure;

use crate::http::request::query::Resolved;

pub(crate) struct Envelope<'r> {
    pub model: &'r str,
    pub method: &'r str,
    pub measure: &'static str,
    pub fingerprint: &'r str,
}

impl<'r> Envelope<'r> {
    pub(crate) fn new(resolved: &'r Resolved, measure: Measure) -> Self {
        Self {
            model: &resolved.model.name,
            method: resolved.method_name(),
            measure: measure.name(),
            fingerprint: resolved.model.engine.model().fingerprint(),
        }
    }
}

/// Declares an answer that begins with the head; its own fields follow.
// A flattened struct would be written through a map, and be `allOf` in the document.
macro_rules! enveloped {
    ($(#[$of:meta])* $vis:vis struct $name:ident<'r> { $($rest:tt)* }) => {
        $(#[$of])*
        #[derive(Debug, Default, serde::Serialize, utoipa::ToSchema)]
        $vis struct $name<'r> {
            /// The model's name.
            model: &'r str,
            /// The method, `auto` resolved.
            method: &'r str,
            /// The measure.
            measure: &'static str,
            /// Sixteen hexadecimal digits that change with the model.
            fingerprint: &'r str,
            $($rest)*
        }

        impl<'r> From<$crate::http::api::envelope::Envelope<'r>> for $name<'r> {
            fn from(head: $crate::http::api::envelope::Envelope<'r>) -> Self {
                let $crate::http::api::envelope::Envelope { model, method, measure, fingerprint } = head;
                Self { model, method, measure, fingerprint, ..Self::default() }
            }
        }
    };
}

pub(crate) use enveloped;
