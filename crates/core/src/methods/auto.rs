//! Which method `auto` stands for with a model, and why. Whether the model can serve it is not
//! asked here.

use crate::methods::{Kind, Method, polarity};
use crate::model::format::AUTO_METHOD;
use crate::model::{Frequency, Model};

/// The method that `auto` chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Auto {
    /// The method.
    pub method: Method,
    /// Why `auto` is this method.
    pub because: &'static str,
}

impl Auto {
    /// The method named by the model's file, with opposites counted where the file knows them, or else the one that suits its vectors.
    pub fn from_model(model: &Model) -> Self {
        let named = model.metadata().get(AUTO_METHOD).and_then(|name| Method::named(name));
        // The method must support every kind of question.
        if let Some(method) = named.filter(|method| method.info().kind == Kind::Similarity) {
            let counts = |other: &&Method| other.info().ignoring_opposites == Some(method);
            let counting = Method::ALL.iter().find(counts);
            return match counting.filter(|_| model.section(polarity::SECTION).is_some()) {
                Some(&method) => {
                    Self { method, because: "the method that the file names, opposites counted" }
                }
                None => Self { method, because: "the file names it" },
            };
        }
        let (method, because) = match model.frequency() {
            Frequency::None if model.vocabulary().counts.is_some() => {
                (Method::DynamaxSif, "vectors with counts")
            }
            Frequency::None => (Method::DynamaxJaccard, "vectors without counts"),
            Frequency::InNorm => {
                (Method::DynamaxJaccard, "vectors whose lengths carry the words' weights")
            }
        };
        Self { method, because }
    }
}
