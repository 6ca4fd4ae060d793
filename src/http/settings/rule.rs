//! The form that a value of a setting is written in, and its range.

/// A value as it is written, in a file, a variable or a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawValue {
    One(String),
    Many(Vec<String>),
}

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueShape {
    /// A whole number of something, both ends of its range included.
    Count(u64, u64),
    /// A size in bytes, which may carry a unit, both ends of its range included.
    Bytes(u64, u64),
    /// One of these words.
    Choice(&'static [&'static str]),
    Switch,
    /// Anything of the form that this names.
    Text(&'static str),
    /// Any number of values of the form that this names.
    List(&'static str),
}

/// The form of a value, and the word for having none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    pub shape: ValueShape,
    /// The word for having none, where that is possible.
    pub unset: Option<&'static str>,
}

impl Rule {
    /// A number within a range.
    pub(crate) const fn count(least: u64, most: u64) -> Self {
        Self { shape: ValueShape::Count(least, most), unset: None }
    }

    /// A size within a range.
    pub(crate) const fn bytes(least: u64, most: u64) -> Self {
        Self { shape: ValueShape::Bytes(least, most), unset: None }
    }

    /// One of some words.
    pub(crate) const fn choice(words: &'static [&'static str]) -> Self {
        Self { shape: ValueShape::Choice(words), unset: None }
    }

    pub(crate) const fn switch() -> Self {
        Self { shape: ValueShape::Switch, unset: None }
    }

    /// A text of a form.
    pub(crate) const fn text(form: &'static str) -> Self {
        Self { shape: ValueShape::Text(form), unset: None }
    }

    /// Texts of a form.
    pub(crate) const fn list(form: &'static str) -> Self {
        Self { shape: ValueShape::List(form), unset: None }
    }

    /// The same, or none, written so.
    pub(crate) const fn or(self, unset: &'static str) -> Self {
        Self { unset: Some(unset), ..self }
    }

    /// Whether this is a list.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.shape, ValueShape::List(_))
    }

    /// What values are allowed, in words; nothing if the form says it all.
    pub fn range(&self) -> Option<String> {
        match self.shape {
            ValueShape::Count(least, most) => Some(format!("{least} to {most}")),
            ValueShape::Bytes(least, most) => Some(format!("{} to {}", size(least), size(most))),
            ValueShape::Choice(words) => Some(words.join(" or ")),
            ValueShape::Switch => Some("true or false".to_owned()),
            ValueShape::Text(_) | ValueShape::List(_) => None,
        }
    }
}

/// A size in the largest unit that divides it.
pub(super) fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fits = |&(shift, _): &(u32, &str)| bytes > 0 && bytes.trailing_zeros() >= shift;
    match units.into_iter().find(fits) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// How every variable of ours begins.
pub(super) const VARIABLES: &str = "COGNATE_";
