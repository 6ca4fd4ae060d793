//! Pairs of texts that are related or not: three columns `label`, `text`, `text`, or any columns
//! under a header that names `label`, `text1` and `text2`.

use crate::eval::datasets::Rows;
use crate::eval::datasets::Source;
use crate::eval::datasets::field;
use crate::eval::datasets::short;
use crate::eval::datasets::text;
use crate::files::ReadError;

/// The pairs of one file.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::eval) struct PairSet {
    pub(in crate::eval) name: String,
    /// Whether each pair is related.
    pub(in crate::eval) labels: Vec<bool>,
    pub(in crate::eval) texts: Vec<(String, String)>,
}

/// Where a row holds what.
#[derive(Clone, Copy)]
struct Columns {
    label: usize,
    texts: [usize; 2],
    /// How many there are, where more or fewer are a fault.
    count: usize,
}

/// Reads the pairs of a file.
pub(in crate::eval) fn read(source: &Source) -> Result<PairSet, ReadError> {
    of(Rows::open(&source.path)?, source.name.clone())
}

pub(super) fn of(mut rows: Rows, name: String) -> Result<PairSet, ReadError> {
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
    let (mut labels, mut texts) = (Vec::new(), Vec::new());
    let take = |fields: &[&str]| {
        if fields.len() != columns.count {
            let expected = format!("expected {} columns, found {}", columns.count, fields.len());
            return Err(format!(
                "{expected}; without a header naming label, text1 and text2 they are label, text, \
                 text"
            ));
        }
        let label = match field(fields, columns.label, "label")? {
            "1" => true,
            "0" => false,
            other => return Err(format!("label: expected 0 or 1, found `{}`", short(other))),
        };
        let [one, other] = columns.texts;
        let one = text(field(fields, one, "text1")?, "the first text")?;
        let other = text(field(fields, other, "text2")?, "the second text")?;
        Ok((label, (one.to_owned(), other.to_owned())))
    };
    while let Some((label, pair)) = rows.next(take)? {
        labels.push(label);
        texts.push(pair);
    }
    let related = labels.iter().filter(|&&label| label).count();
    if related < 2 || labels.len() - related < 2 {
        return Err(rows.wrong(format!(
            "expected at least 2 pairs of either label, found {related} with 1 and {} with 0",
            labels.len() - related
        )));
    }
    Ok(PairSet { name, labels, texts })
}
