//! What a method fitted to a model and its corpus, on its way into the model file.

use crate::model::draft::{Draft, Table};
use crate::model::format::Dtype;

/// What a method fitted to a model and a corpus, to be stored as a section.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The section's name.
    pub section: &'static str,
    /// The section's settings, as JSON: how the method was fitted.
    pub settings: String,
    /// The section's tensors: name, shape, numbers.
    pub tensors: Vec<(&'static str, Vec<usize>, Vec<f32>)>,
    /// The section's tensors of bytes: name, bytes.
    pub bytes: Vec<(&'static str, Vec<u8>)>,
}

impl Fitted {
    /// Puts it into the draft of a model file, in place of an earlier fit.
    pub fn put_into<'a>(&'a self, draft: &mut Draft<'a>) {
        let table = |(name, shape, numbers): &'a (&'static str, Vec<usize>, Vec<f32>)| {
            Table::new(*name, Dtype::F32, shape, numbers)
        };
        let bytes = self.bytes.iter();
        let bytes = bytes.map(|(name, bytes)| Table::new(*name, Dtype::U8, &[bytes.len()], bytes));
        let tables = self.tensors.iter().map(table).chain(bytes).collect();
        draft.set_section(self.section, self.settings.clone(), tables);
    }
}

/// Why a method cannot be fitted to a model and its corpus.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{section} cannot be fitted: {problem}")]
pub struct Unfittable {
    /// The requested section.
    pub section: &'static str,
    /// The problem.
    pub problem: String,
}
