//! Counts of a vocabulary's words in a corpus, and the idf computed from them. The modules that read
//! texts count the words.

use crate::model::draft::{Draft, Table};
use crate::model::format::Dtype;

/// The counts of a vocabulary's words in a corpus.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counts {
    /// Occurrences of each word.
    pub occurrences: Option<Vec<u64>>,
    /// Documents that hold each word.
    pub documents: Option<Vec<u32>>,
    /// Tokens in all, unknown tokens included.
    pub tokens: Option<u64>,
    /// Documents in all.
    pub document_total: Option<u64>,
    /// The idf of each word.
    pub idf: Vec<f32>,
    /// The idf of a word that was not seen.
    pub idf_unknown: f32,
    /// Number of lines without a count.
    pub skipped_lines: u64,
}

impl Counts {
    /// Collection counts give `ln(C / c)`; a word that was not seen is taken to have half the
    /// smallest count of the table, as it may have been cut off there.
    pub fn of_occurrences(occurrences: Vec<u64>, tokens: u64, unseen: f64) -> Self {
        let idf = |count: f64| (tokens as f64 / count).ln().max(0.0) as f32;
        let of_count = |&count: &u64| idf(if count > 0 { count as f64 } else { unseen });
        Self {
            idf: occurrences.iter().map(of_count).collect(),
            idf_unknown: idf(unseen),
            occurrences: Some(occurrences),
            tokens: Some(tokens),
            ..Self::default()
        }
    }

    /// Document frequencies give the smooth idf `ln((1 + N) / (1 + df)) + 1`.
    pub fn of_documents(documents: Vec<u32>, total: u64) -> Self {
        let idf = |df: f64| (((1.0 + total as f64) / (1.0 + df)).ln() + 1.0) as f32;
        Self {
            idf: documents.iter().map(|&df| idf(f64::from(df))).collect(),
            idf_unknown: idf(0.0),
            documents: Some(documents),
            document_total: Some(total),
            ..Self::default()
        }
    }
}

impl<'a> Draft<'a> {
    /// Adds the counts of the words; the vocabulary must be there.
    pub fn push_counts(&mut self, counts: &'a Counts) {
        if let Some(occurrences) = &counts.occurrences {
            self.tables.push(Table::new("counts", Dtype::U64, &[occurrences.len()], occurrences));
            self.metadata.insert("idf_unknown".to_owned(), counts.idf_unknown.to_string());
        }
        if let Some(documents) = &counts.documents {
            self.tables.push(Table::new("df", Dtype::U32, &[documents.len()], documents));
        }
        if !counts.idf.is_empty() {
            self.tables.push(Table::new("idf", Dtype::F32, &[counts.idf.len()], &counts.idf));
        }
        for (key, total) in [("tokens", counts.tokens), ("documents", counts.document_total)] {
            if let Some(total) = total {
                self.metadata.insert(key.to_owned(), total.to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idf_is_made_of_counts_as_the_formulas_say() {
        let near = |got: f32, expected: f64| assert!((f64::from(got) - expected).abs() < 1e-6);
        let of_documents = Counts::of_documents(vec![0, 3], 7);
        near(of_documents.idf[0], 8_f64.ln() + 1.0);
        near(of_documents.idf[1], 2_f64.ln() + 1.0);
        near(of_documents.idf_unknown, 8_f64.ln() + 1.0);
        assert_eq!(of_documents.documents, Some(vec![0, 3]));
        assert_eq!(of_documents.document_total, Some(7));
        let of_occurrences = Counts::of_occurrences(vec![10, 1, 0], 100, 0.5);
        near(of_occurrences.idf[0], 10_f64.ln());
        near(of_occurrences.idf[1], 100_f64.ln());
        near(of_occurrences.idf[2], 200_f64.ln());
        near(of_occurrences.idf_unknown, 200_f64.ln());
        assert_eq!(of_occurrences.occurrences, Some(vec![10, 1, 0]));
        assert_eq!(of_occurrences.tokens, Some(100));
    }
}
