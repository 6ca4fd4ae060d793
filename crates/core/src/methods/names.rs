//! Names of methods as people write them: any case, `_` for `-`, and the names of other tools.

use strsim::levenshtein;

use crate::methods::Method;

/// Other names that requests may use.
const ALIASES: [(&str, &str); 6] = [
    ("cosine", "avg-cos"),
    ("dynamax", "dynamax-jaccard"),
    ("learned-idf-weights", "learned-idf"),
    ("idf-rank", "learned-idf"),
    ("max", "max-cos"),
    ("samcnn", "patt"),
];

impl Method {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The method of that name or alias.
    pub fn named(name: &str) -> Option<Self> {
        let wanted = canonical(name);
        Self::ALL.iter().copied().find(|method| method.name() == wanted)
    }

    /// The three names that look most like a misspelt one.
    pub fn nearest(name: &str) -> [&'static str; 3] {
        let wanted = canonical(name);
        let mut names: Vec<&'static str> = Self::ALL.iter().map(|method| method.name()).collect();
        names.sort_by_key(|known| levenshtein(&wanted, known));
        let mut nearest = names.into_iter().chain(std::iter::repeat(""));
        std::array::from_fn(|_| nearest.next().unwrap_or(""))
    }
}

fn canonical(name: &str) -> String {
    // Names are short; a long one is no name, and is not worth the copying.
    let short: String = name.trim().chars().take(64).collect();
    let plain = short.to_lowercase().replace('_', "-");
    let alias = ALIASES.iter().find(|(alias, _)| *alias == plain);
    alias.map_or(plain, |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_people_write_them() {
        for name in ["dynamax-jaccard", "DynaMax", "dynamax_jaccard", " DYNAMAX-Jaccard "] {
            assert_eq!(Method::named(name), Some(Method::DynamaxJaccard), "{name}");
        }
        assert_eq!(Method::named("cosine"), Some(Method::AvgCos), "other libraries call it that");
        assert_eq!(Method::named("dynamix"), None);
        assert_eq!(Method::named(&"x".repeat(1 << 20)), None);
    }

    #[test]
    fn a_misspelt_name_is_answered_with_near_ones() {
        assert_eq!(Method::nearest("dynamax-jacard")[0], "dynamax-jaccard");
        assert_eq!(Method::nearest("avg_coz")[0], "avg-cos");
    }

    #[test]
    fn every_method_has_a_name_of_its_own() {
        for &method in Method::ALL {
            assert_eq!(Method::named(method.name()), Some(method));
        }
    }
}
