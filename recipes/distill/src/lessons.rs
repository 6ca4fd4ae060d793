//! The training data: texts as bags of words, with target vectors from the teachers.

use std::path::PathBuf;

use cognate::model::Model;
use cognate::text::Normalisation;
use cognate_train::TrainError;
use rayon::prelude::*;

use crate::cache::{Cache, EmbeddingCount, Embeddings};
use crate::languages::{Centred, Folder};
use crate::pieces::map::Map;
use crate::pieces::{Example, Fitted, rare};
use crate::space::{Space, Targets, Views};
use crate::start::{Start, rarer_half};
use crate::student::Bags;
use crate::teacher::Teacher;
use crate::texts::{KINDS, SENTENCES_AT, SPANS_AT, Texts, WHOLE_AT};
use crate::words::{Lookup, LookupMemory};
use crate::{DistillOptions, TeacherInfo, pieces, space, turn};

/// The constant a of a word's initial weight, a / (a + p(w)), as in SIF (Arora et al. 2017).
const WEIGHT: f64 = 1e-3;
/// Words up to this index are too frequent to fit the map from teachers' vectors to vectors of rare
/// words; of a short list, half.
const FREQUENT: usize = 8000;
/// Weight of an omitted word, and of one without its accents, relative to a rare word when pieces
/// are fitted.
const LEFT_OUT: f32 = 3.0;

/// Texts and their targets; the last ones are single words.
pub(super) struct Lessons {
    /// The teachers' names and dimensions.
    pub(super) teachers: Vec<TeacherInfo>,
    /// How many texts were embedded, and how long it took.
    pub(super) asked: EmbeddingCount,
    /// The words of every text.
    pub(super) bags: Bags,
    pub(super) targets: Targets,
    /// unit(P'y) - m of every single word.
    pub(super) centred: Vec<f32>,
    /// Texts with words and a target; the last ones are single words.
    pub(super) usable: Vec<u32>,
    /// How many of these are not single words.
    longer: usize,
    /// The share of the teachers' vectors that the dimensions retain.
    pub(super) kept: f64,
    /// BLAKE3 of texts and words.
    pub(super) digest: String,
    /// The data for fitting pieces; `None` if no pieces are wanted.
    pub(super) parts: Option<Parts>,
}

/// The data that pieces of words are fitted to.
pub(super) struct Parts {
    /// The pieces of the first teacher's tokenizer.
    pub(super) candidates: Vec<String>,
    /// Words that are not in the list.
    pub(super) rare: Vec<String>,
    /// With several languages, words without their accents, and the places of those with them.
    unaccented: Vec<(String, usize)>,
    /// The teachers' vectors of these words.
    pub(super) of_rare: Views,
    /// The teachers' vectors of the listed words.
    pub(super) of_words: Views,
}

impl Parts {
    /// Fits pieces to the omitted and to rare words, and to words without their accents, which
    /// point where those with them do. The direction of a rare word is that of the
    /// map from teachers' vectors to the vectors of less frequent words.
    pub(super) fn fit(&self, start: &Start, rows: &[f32], [listed, most]: [usize; 2]) -> Fitted {
        let dims = rows.len() / start.words.len();
        let words = start.words.len();
        let plain = |word: &usize| !start.words[*word].chars().any(char::is_numeric);
        let from = FREQUENT.min(words / 2);
        let rarer: Vec<usize> = (from..words).filter(plain).collect();
        let fill = |word: usize, row: &mut [f32]| self.of_words.fill(word, row);
        let width = self.of_words.width();
        let map = Map::fit(&rarer, &fill, width, rows, dims);
        let of_rare = |word: usize| {
            let mut said = vec![0.0; width];
            self.of_rare.fill(word, &mut said);
            map.apply(&said)
        };
        let left_out: Vec<usize> = (listed..words).filter(plain).collect();
        let of_left_out = |&word: &usize| rows[word * dims..(word + 1) * dims].to_vec();
        let mut directions: Vec<Vec<f32>> = left_out.iter().map(of_left_out).collect();
        directions.par_extend((0..self.rare.len()).into_par_iter().map(of_rare));
        directions.extend(self.unaccented.iter().map(|(_, place)| of_left_out(place)));
        directions.par_iter_mut().for_each(|row| space::unit(row));
        let words = left_out.iter().map(|&word| (&start.words[word], LEFT_OUT));
        let words = words.chain(self.rare.iter().map(|word| (word, 1.0)));
        let words = words.chain(self.unaccented.iter().map(|(word, _)| (word, LEFT_OUT)));
        let examples: Vec<Example<'_>> = words
            .zip(&directions)
            .map(|((word, weight), direction)| Example { word, direction, weight })
            .collect();
        pieces::fit(&self.candidates, &examples, most, dims)
    }
}

impl Lessons {
    /// Embeds all texts and words with all teachers.
    pub(super) fn ask(
        options: &DistillOptions,
        texts: &[Texts],
        start: &Start,
        rules: &Normalisation,
        dims: usize,
    ) -> Result<Self, TrainError> {
        let cache = Cache::open(&options.cache)?;
        let mut asked = EmbeddingCount::default();
        let rare = match options.pieces {
            0 => Vec::new(),
            _ => {
                let mut files: Vec<PathBuf> = options.rare_words.iter().cloned().collect();
                for folder in &options.languages {
                    files.extend(Folder::read(folder)?.rare);
                }
                let listed = (start.words.as_slice(), start.home.as_slice());
                rare::words(&files, listed, rules, options.schedule.seed)?
            }
        };
        let TeacherVectors { teachers, views, of_words, centred_words, of_rare, candidates } =
            ask(options, &cache, texts, (start, &rare), &mut asked)?;
        let width = of_words.width();
        if dims > width {
            let what = if options.start.is_some() { "--start:" } else { "--dims:" };
            let problem =
                format!("{what} {dims} dimensions, more than the {width} of the teachers");
            return Err(TrainError::Options(problem));
        }
        let centred_words = centred_words.as_ref().unwrap_or(&of_words);
        let space = Space::of(&measured(&views, centred_words), dims);
        let centred = space.centred(centred_words);
        let mut targets = Targets::default();
        for views in &views {
            targets.extend(space.targets(views));
        }
        targets.extend(Targets::of(centred.clone(), dims));
        let bags = bags(texts, &start.words, rules);
        let usable = usable(&bags, &targets);
        let count: usize = texts.iter().map(Texts::len).sum();
        let longer = usable.partition_point(|&text| (text as usize) < count);
        if longer == 0 {
            let files = options.text.iter().chain(&options.whole).chain(&options.languages);
            let file = files.map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
            let problem = "no text holds a word that is listed".to_owned();
            return Err(TrainError::Data { file, problem });
        }
        let (kept, digest) = (space.kept, digest(texts, start));
        let unaccented = match options.languages.as_slice() {
            [] => Vec::new(),
            _ => rare::unaccented(&start.words, rules),
        };
        let parts =
            candidates.map(|candidates| Parts { candidates, rare, unaccented, of_rare, of_words });
        Ok(Self { teachers, asked, bags, targets, centred, usable, longer, kept, digest, parts })
    }

    /// The initial vectors. Without a base model, a / (a + p(w)) times the teachers' centred vector
    /// of the single word. With one, its vectors; targets are rotated onto the sums of its words,
    /// and new words get the direction of their target with the length of the model's rare words.
    pub(super) fn rows(&mut self, start: &Start, base: Option<&Model>) -> Vec<f32> {
        let dims = self.targets.dims;
        let Some(model) = base else {
            let mut centred = std::mem::take(&mut self.centred);
            for (row, share) in centred.chunks_exact_mut(dims).zip(&start.shares) {
                let weight = (WEIGHT / (WEIGHT + share)) as f32;
                row.iter_mut().for_each(|number| *number *= weight);
            }
            return centred;
        };
        let listed = model.vocabulary().len();
        let mut rows = vec![0.0; start.words.len() * dims];
        for (id, row) in (0..).zip(rows.chunks_exact_mut(dims).take(listed)) {
            if let Some(stored) = model.vectors().row(id) {
                stored.copy_to(row);
            }
        }
        // The rotation is computed from texts with only listed words.
        let bags = &self.bags;
        let is_known =
            |text: &u32| bags.text(*text as usize).iter().all(|&word| (word as usize) < listed);
        let known: Vec<u32> = self.of_texts().iter().copied().filter(is_known).collect();
        let rotation = turn::onto_sums(&self.targets, &rows, bags, &known);
        let numbers = self.targets.rows.iter();
        let mut turned: Vec<f32> = numbers.map(|number| number.to_f32()).collect();
        turn::turn(&mut turned, &rotation, dims);
        let targets = Targets::of(turned, dims);
        let length = rarer_half(&rows[..listed * dims], dims);
        let first_word = targets.len() - start.words.len();
        for (word, row) in rows.chunks_exact_mut(dims).enumerate().skip(listed) {
            for (to, from) in row.iter_mut().zip(targets.row(first_word + word)) {
                *to = length * from.to_f32();
            }
        }
        self.targets = targets;
        rows
    }

    /// Usable texts without single words.
    pub(super) fn of_texts(&self) -> &[u32] {
        &self.usable[..self.longer]
    }
}

struct TeacherVectors {
    teachers: Vec<TeacherInfo>,
    /// The teachers' vectors of texts, by kind.
    views: Vec<Views>,
    of_words: Views,
    /// With several languages, the same without what words of a language have in common.
    centred_words: Option<Views>,
    of_rare: Views,
    /// The pieces of the first teacher's tokenizer, if pieces are wanted.
    candidates: Option<Vec<String>>,
}

fn ask(
    options: &DistillOptions,
    cache: &Cache,
    texts: &[Texts],
    (start, rare): (&Start, &[String]),
    asked: &mut EmbeddingCount,
) -> Result<TeacherVectors, TrainError> {
    let kinds: Vec<&[String]> = [start.words.as_slice(), rare]
        .into_iter()
        .chain(texts.iter().flat_map(Texts::kinds))
        .collect();
    let mut found = vec![Vec::new(); kinds.len()];
    let (mut teachers, mut candidates) = (Vec::new(), None);
    let mut centred_words = Vec::new();
    // One teacher after another, so that only one is in memory.
    for folder in &options.teachers {
        let teacher = Teacher::open(folder)?;
        if options.pieces > 0 && teachers.is_empty() {
            let problem = "--pieces: the first teacher's tokenizer has none marked `##`";
            let none = || TrainError::Options(problem.to_owned());
            candidates = Some(teacher.pieces().ok_or_else(none)?);
        }
        let mut said = cache.embed(&teacher, &kinds, asked)?;
        if texts.len() > 1 {
            centre(&mut said[2..], texts.len());
            let home = |word: usize| start.home[word];
            let mut words = said[0].clone();
            Centred::measure([&words], texts.len(), |_, word| home(word)).apply(&mut words, home);
            centred_words.push(words);
        }
        for (kind, embeddings) in said.into_iter().enumerate() {
            found[kind].push(embeddings);
        }
        let (name, digest) = (teacher.name(), teacher.digest().to_owned());
        teachers.push(TeacherInfo { name, digest, dims: teacher.width() });
    }
    let mut views: Vec<Views> = found.into_iter().map(Views::new).collect();
    let of_texts = views.split_off(2);
    let [of_words, of_rare] = [0, 1].map(|kind| std::mem::take(&mut views[kind]));
    let centred_words = (!centred_words.is_empty()).then(|| Views::new(centred_words));
    Ok(TeacherVectors { teachers, views: of_texts, of_words, centred_words, of_rare, candidates })
}

/// Removes from the vectors of texts what those of their language have in common. The kinds of one
/// language stand together.
fn centre(said: &mut [Embeddings], languages: usize) {
    let kinds = said.len() / languages;
    let means = Centred::measure(said.iter(), languages, |table, _| table / kinds);
    for (table, embeddings) in said.iter_mut().enumerate() {
        means.apply(embeddings, |_| table / kinds);
    }
}

/// The teachers' vectors of further texts.
pub(super) fn say(
    options: &DistillOptions,
    texts: &[String],
    asked: &mut EmbeddingCount,
) -> Result<Views, TrainError> {
    let cache = Cache::open(&options.cache)?;
    let mut found = Vec::with_capacity(options.teachers.len());
    for folder in &options.teachers {
        found.extend(cache.embed(&Teacher::open(folder)?, &[texts], asked)?);
    }
    Ok(Views::new(found))
}

/// The kinds that the directions are computed from: sentences and spans of every language, or what
/// exists.
fn measured<'v>(views: &'v [Views], of_words: &'v Views) -> Vec<&'v Views> {
    for kinds in [[SENTENCES_AT, SPANS_AT].as_slice(), &[WHOLE_AT]] {
        let of_language = |views: &'v [Views]| {
            let of_kind = |&kind: &usize| views.get(kind);
            kinds.iter().filter_map(of_kind).filter(|views| !views.is_empty()).collect::<Vec<_>>()
        };
        let kinds: Vec<&Views> = views.chunks(KINDS).flat_map(of_language).collect();
        if !kinds.is_empty() {
            return kinds;
        }
    }
    vec![of_words]
}

/// The words of every text, followed by every single word.
fn bags(texts: &[Texts], words: &[String], rules: &Normalisation) -> Bags {
    let lookup = Lookup::new(words, rules);
    let (mut bags, mut memory, mut found) = (Bags::default(), LookupMemory::default(), Vec::new());
    for text in texts.iter().flat_map(Texts::kinds).flatten() {
        found.clear();
        lookup.read(text, &mut memory, &mut found);
        bags.push(&found);
    }
    for word in 0..words.len() as u32 {
        bags.push(&[word]);
    }
    bags
}

/// Texts with words and a target.
fn usable(bags: &Bags, targets: &Targets) -> Vec<u32> {
    let fits = |text: &u32| {
        let text = *text as usize;
        !bags.text(text).is_empty() && targets.row(text).iter().any(|x| x.to_f32() != 0.0)
    };
    (0..bags.len() as u32).filter(fits).collect()
}

fn digest(texts: &[Texts], start: &Start) -> String {
    let mut digest = blake3::Hasher::new();
    for kind in texts.iter().flat_map(Texts::kinds).chain([start.words.as_slice()]) {
        digest.update(&(kind.len() as u64).to_le_bytes());
        for text in kind {
            digest.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
    }
    for share in &start.shares {
        digest.update(&share.to_bits().to_le_bytes());
    }
    digest.finalize().to_hex().to_string()
}
