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

#[cfg(test)]
mod tests {
    use crate::engine::fuse::FuseBy;
    use crate::engine::{Measure, Opposites, OppositionKind, Reason, Strategy};
    use crate::methods::Kind;
    use crate::methods::sets::fbow_jaccard::Universe;
    use crate::model::phrase::Found;
    use crate::model::{Frequency, Storage, Verify};
    use crate::window::usual::Preset;

    #[test]
    fn names_are_those_of_requests_and_answers() {
        macro_rules! check {
            ($($choice:ty),+) => {$(
                for choice in <$choice>::ALL {
                    assert_eq!(serde_json::json!(choice), choice.name());
                    assert_eq!(choice.name().parse(), Ok(choice));
                }
            )+};
        }
        check!(Found, Frequency, FuseBy, Kind, Measure, Opposites, OppositionKind, Preset, Reason);
        check!(Strategy, Universe);
    }

    #[test]
    fn another_name_is_refused_by_the_list() {
        let told = |name: &str| name.parse::<Strategy>().unwrap_err().to_string();
        assert_eq!(told("x"), "expected best, mean or sum, got \"x\"");
        assert_eq!(told(&"é".repeat(1000)).chars().filter(|one| *one == 'é').count(), 80);
        let measure = "Cosine".parse::<Measure>().unwrap_err().to_string();
        assert_eq!(measure, "expected cosine or euclidean, got \"Cosine\"");
        assert_eq!(("map".parse(), "structure".parse()), (Ok(Storage::Map), Ok(Verify::Structure)));
    }
}
