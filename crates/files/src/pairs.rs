//! Pairs of texts that are related or not: three columns `label`, `text`, `text`, or any columns
//! under a header that names `label`, `text1` and `text2`.
//!
//! How many there must be, and how long a text may be, is for the reader's caller to say.

use crate::ReadError;
use crate::rows::{Rows, field, short};

/// Labelled pairs, in the order of their file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pairs {
    /// Whether each pair is related.
    pub labels: Vec<bool>,
    /// The texts of each pair.
    pub texts: Vec<(String, String)>,
}

/// What a caller says of a field that holds a text, given with what it is called in messages: the
/// text, or what is wrong with it.
pub type Accept = for<'r> fn(&'r str, &str) -> Result<&'r str, String>;

/// Where a row holds what.
#[derive(Clone, Copy)]
struct Columns {
    label: usize,
    texts: [usize; 2],
    /// How many there are, where more or fewer are a fault.
    count: usize,
}

impl Pairs {
    pub fn read(rows: &mut Rows, accept: Accept) -> Result<Self, ReadError> {
        let first = rows.peek()?;
        let place = |name: &str| first.iter().position(|field| field == name);
        let named = [place("label"), place("text1"), place("text2")];
        let columns = match named {
            [Some(label), Some(one), Some(other)] => {
                rows.next(|_| Ok(()))?;
                Columns { label, texts: [one, other], count: first.len() }
            }
            _ => Columns { label: 0, texts: [1, 2], count: 3 },
        };
        let mut pairs = Self::default();
        while let Some((label, texts)) = rows.next(|fields| columns.take(fields, accept))? {
            pairs.labels.push(label);
            pairs.texts.push(texts);
        }
        Ok(pairs)
    }

    /// How many of them are related.
    pub fn related(&self) -> usize {
        self.labels.iter().filter(|&&label| label).count()
    }
}

impl Columns {
    fn take(self, fields: &[&str], accept: Accept) -> Result<(bool, (String, String)), String> {
        if fields.len() != self.count {
            let expected = format!("expected {} columns, found {}", self.count, fields.len());
            return Err(format!(
                "{expected}; without a header naming label, text1 and text2 they are label, text, \
                 text"
            ));
        }
        let label = match field(fields, self.label, "label")? {
            "1" => true,
            "0" => false,
            other => return Err(format!("label: expected 0 or 1, found `{}`", short(other))),
        };
        let [one, other] = self.texts;
        let one = accept(field(fields, one, "text1")?, "the first text")?;
        let other = accept(field(fields, other, "text2")?, "the second text")?;
        Ok((label, (one.to_owned(), other.to_owned())))
    }
}
