//! Several languages in one vector space: a folder each, with a list of words and texts.
//!
//! The lists become one. A word that several languages share has one vector, and its count is the
//! mean over the languages, each scaled to the same total, so that no language counts for more.
//!
//! Teachers of many languages put the texts of one language near each other, whatever they say.
//! [`Centred`] takes that away: the mean of a language's texts is subtracted from each of them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use cognate::text::Normalisation;
use cognate_files::ReadError;
use cognate_train::TrainError;
use half::f16;
use rayon::prelude::*;

use crate::cache::Embeddings;
use crate::space;
use crate::words::{WordList, probabilities};

/// The list of words in the folder of a language.
const WORDS: &str = "words.tsv";
/// Words of a language that pieces of words are fitted to.
const RARE: &str = "rare.txt";
/// The name of the folder of English.
const ENGLISH: &str = "en";
/// The sum of the counts of a language once it is scaled.
const TOTAL: f64 = 1e9;

/// The files of a language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    pub words: PathBuf,
    pub rare: Option<PathBuf>,
    /// Every other file of text, in the order of names.
    pub text: Vec<PathBuf>,
}

/// The words of all languages.
#[derive(Debug, Default)]
pub struct Words {
    /// The most frequent first.
    pub list: WordList,
    /// For each language, the share of its running text that each word makes up.
    pub shares: Vec<Vec<f64>>,
    /// For each word the language in which its share is largest.
    pub home: Vec<usize>,
}

impl Folder {
    pub fn read(folder: &Path) -> Result<Self, TrainError> {
        let failed = |source| ReadError::Io { path: folder.to_owned(), source };
        let mut text = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let ends = |end: &&str| name.ends_with(end);
            if name != RARE && [".txt", ".txt.gz", ".txt.zst"].iter().any(ends) {
                text.push(path);
            }
        }
        text.sort();
        if text.is_empty() {
            let problem = "no text: expected files named .txt, .txt.gz or .txt.zst".to_owned();
            return Err(TrainError::Data { file: folder.display().to_string(), problem });
        }
        let rare = Some(folder.join(RARE)).filter(|path| path.exists());
        Ok(Self { words: folder.join(WORDS), rare, text })
    }

    /// Whether its name says that the language is English, which texts can be generated in.
    pub fn is_english(&self) -> bool {
        self.words.parent().and_then(Path::file_name).is_some_and(|name| name == ENGLISH)
    }
}

impl Words {
    /// The words of these folders; each list must have counts.
    pub fn read(folders: &[Folder], rules: &Normalisation) -> Result<Self, TrainError> {
        let mut lists = Vec::with_capacity(folders.len());
        for folder in folders {
            let list = WordList::read(&folder.words, rules)?;
            if list.counts.is_none() {
                let problem = "expected a count after each word".to_owned();
                let file = folder.words.display().to_string();
                return Err(TrainError::Data { file, problem });
            }
            lists.push(list);
        }
        Ok(Self::of(&lists))
    }

    fn of(lists: &[WordList]) -> Self {
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut words: Vec<(&str, Vec<f64>)> = Vec::new();
        for (language, list) in lists.iter().enumerate() {
            let shares = probabilities(list.counts.as_deref().unwrap_or_default());
            for (word, share) in list.words.iter().zip(shares) {
                let place = *places.entry(word).or_insert_with(|| {
                    words.push((word, vec![0.0; lists.len()]));
                    words.len() - 1
                });
                words[place].1[language] = share;
            }
        }
        let sum = |shares: &[f64]| shares.iter().sum::<f64>();
        words.sort_by(|a, b| sum(&b.1).total_cmp(&sum(&a.1)).then_with(|| a.0.cmp(b.0)));
        let count = |shares: &[f64]| (sum(shares) / lists.len().max(1) as f64 * TOTAL) as u64;
        let largest = |shares: &[f64]| {
            let places = (0..shares.len()).rev();
            places.max_by(|&a, &b| shares[a].total_cmp(&shares[b])).unwrap_or(0)
        };
        Self {
            list: WordList {
                words: words.iter().map(|(word, _)| (*word).to_owned()).collect(),
                counts: Some(words.iter().map(|(_, shares)| count(shares).max(1)).collect()),
                left_out: lists.iter().map(|list| list.left_out).sum(),
            },
            shares: (0..lists.len())
                .map(|language| words.iter().map(|(_, shares)| shares[language]).collect())
                .collect(),
            home: words.iter().map(|(_, shares)| largest(shares)).collect(),
        }
    }
}

/// Vectors of length 1 that have a mean of 0 in each of some groups.
#[derive(Debug)]
pub struct Centred {
    /// The mean of each group.
    means: Vec<Vec<f32>>,
}

impl Centred {
    /// Measures the means of groups; `group` tells the group of a vector.
    pub fn measure<'e>(
        embeddings: impl IntoIterator<Item = &'e Embeddings>,
        groups: usize,
        group: impl Fn(usize, usize) -> usize,
    ) -> Self {
        let mut sums: Vec<(Vec<f64>, usize)> = vec![(Vec::new(), 0); groups];
        for (table, embeddings) in embeddings.into_iter().enumerate() {
            for row in 0..embeddings.len() {
                let (sum, count) = &mut sums[group(table, row)];
                sum.resize(embeddings.width, 0.0);
                let numbers = sum.iter_mut().zip(embeddings.row(row));
                numbers.for_each(|(sum, number)| *sum += f64::from(number.to_f32()));
                *count += 1;
            }
        }
        let mean = |(sum, count): &(Vec<f64>, usize)| {
            sum.iter().map(|&number| (number / *count as f64) as f32).collect()
        };
        Self { means: sums.iter().map(mean).collect() }
    }

    /// Subtracts the mean of its group from each vector, and scales it to length 1.
    pub fn apply(&self, embeddings: &mut Embeddings, group: impl Fn(usize) -> usize + Sync) {
        let width = embeddings.width.max(1);
        embeddings.rows.par_chunks_mut(width).enumerate().for_each_init(
            Vec::new,
            |work, (row, to)| {
                work.clear();
                let mean = &self.means[group(row)];
                work.extend(to.iter().zip(mean).map(|(number, mean)| number.to_f32() - mean));
                space::unit(work);
                to.iter_mut().zip(&*work).for_each(|(to, &number)| *to = f16::from_f32(number));
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &[(&str, u64)]) -> WordList {
        WordList {
            words: words.iter().map(|(word, _)| (*word).to_owned()).collect(),
            counts: Some(words.iter().map(|(_, count)| *count).collect()),
            left_out: 1,
        }
    }

    #[test]
    fn lists_become_one_in_which_languages_count_alike() {
        let one = list(&[("die", 6), ("und", 3), ("hund", 1)]);
        let other = list(&[("the", 800), ("die", 150), ("dog", 50)]);
        let words = Words::of(&[one, other]);
        assert_eq!(words.list.words, ["the", "die", "und", "hund", "dog"]);
        let counts = words.list.counts.unwrap();
        assert_eq!(counts[..3], [400_000_000, 375_000_000, 150_000_000]);
        assert_eq!(words.home, [1, 0, 0, 0, 1]);
        assert_eq!(words.shares[1], [0.8, 0.15, 0.0, 0.0, 0.05]);
        assert_eq!(words.list.left_out, 2);
    }

    #[test]
    fn folders_need_a_text_and_may_hold_rare_words() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Folder::read(folder.path()).is_err());
        for name in ["words.tsv", "b.txt", "a.txt.gz", "rare.txt", "notes.md"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = Folder::read(folder.path()).unwrap();
        assert_eq!(found.text, ["a.txt.gz", "b.txt"].map(|name| folder.path().join(name)));
        assert_eq!(found.rare, Some(folder.path().join("rare.txt")));
    }

    #[test]
    fn what_a_group_has_in_common_goes() {
        let rows = |numbers: &[f32]| numbers.iter().map(|&number| f16::from_f32(number)).collect();
        let mut embeddings =
            Embeddings { rows: rows(&[0.6, 0.8, 0.6, -0.8, 0.0, 1.0, 1.0, 0.0]), width: 2 };
        let group = |row: usize| row / 2;
        let centred = Centred::measure([&embeddings], 2, |_, row| group(row));
        centred.apply(&mut embeddings, group);
        let near = |row: usize, wanted: [f32; 2]| {
            let row = embeddings.row(row).iter().zip(wanted);
            row.into_iter().all(|(found, wanted)| (found.to_f32() - wanted).abs() < 1e-2)
        };
        let half = 0.5_f32.sqrt();
        assert!(near(0, [0.0, 1.0]) && near(1, [0.0, -1.0]));
        assert!(near(2, [-half, half]) && near(3, [half, -half]));
    }
}
