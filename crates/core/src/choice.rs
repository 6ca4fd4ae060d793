//! Choices that are made by name. A choice's names stand in one list, from which its name, its parser and the
//! sentence about a name that it does not have are made.

/// A value that is none of those expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, got {got:?}")]
pub struct Unexpected {
    pub(crate) expected: String,
    got: String,
}

impl Unexpected {
    /// What was expected and what was given, which is cut if it is long.
    pub fn new(expected: &str, got: &str) -> Self {
        Self { expected: expected.to_owned(), got: got.chars().take(80).collect() }
    }

    /// A name that is none of a choice's.
    pub(crate) fn name(names: &[&str], got: &str) -> Self {
        let (last, others) = names.split_last().unwrap_or((&"", &[]));
        Self::new(&format!("{} or {last}", others.join(", ")), got)
    }
}

/// The names of a choice: `ALL`, `name()` and `FromStr`.
macro_rules! choice {
    ($choice:ident { $($variant:ident = $name:literal),+ }) => {
        impl $choice {
            /// Every choice, in the order of declaration.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name in requests, answers, flags and files.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }

        impl std::str::FromStr for $choice {
            type Err = $crate::choice::Unexpected;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                let known = Self::ALL.into_iter().find(|known| known.name() == name);
                known.ok_or_else(|| $crate::choice::Unexpected::name(&Self::ALL.map(Self::name), name))
            }
        }
    };
}

pub(crate) use choice;
