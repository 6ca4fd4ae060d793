//! What there is to learn: texts as bags of words, and where the teachers put each of them.

use cognate::text::Normalisation;
use cognate_train::TrainError;

use crate::cache::{Asked, Cache};
use crate::pieces::rare;
use crate::space::{Space, Targets, Views};
use crate::start::Start;
use crate::student::Bags;
use crate::teacher::Teacher;
use crate::texts::Texts;
use crate::words::{Lookup, LookupMemory};
use crate::{DistillOptions, TeacherSaid};

/// Texts and their targets; at last every word as a text by itself.
pub(super) struct Lessons {
    /// The teachers that were asked.
    pub(super) teachers: Vec<TeacherSaid>,
    /// How much they were asked now.
    pub(super) asked: Asked,
    /// The words of every text.
    pub(super) bags: Bags,
    /// Where every text is to point.
    pub(super) targets: Targets,
    /// unit(P'y) - m of every word by itself.
    pub(super) centred: Vec<f32>,
    /// Texts with words and with a direction, words by themselves at last.
    pub(super) usable: Vec<u32>,
    /// How many of them are no words by themselves.
    longer: usize,
    /// The share of the teachers' vectors that the dimensions keep.
    pub(super) kept: f64,
    /// BLAKE3 of texts and words.
    pub(super) digest: String,
    /// What is needed to fit pieces; nothing where none are wanted.
    pub(super) parts: Option<Parts>,
}

/// What pieces of words are fitted to.
pub(super) struct Parts {
    /// The pieces of the first teacher.
    pub(super) candidates: Vec<String>,
    /// Words that are not listed.
    pub(super) rare: Vec<String>,
    /// What the teachers say of them.
    pub(super) of_rare: Views,
    /// What the teachers say of the listed words.
    pub(super) of_words: Views,
}

impl Lessons {
    /// Asks all teachers about all texts and words.
    pub(super) fn ask(
        options: &DistillOptions,
        texts: &Texts,
        start: &Start,
        rules: &Normalisation,
        dims: usize,
    ) -> Result<Self, TrainError> {
        let cache = Cache::open(&options.cache)?;
        let mut asked = Asked::default();
        let rare = match options.pieces {
            0 => Vec::new(),
            _ => rare::words(
                options.rare_words.as_deref(),
                &start.words,
                rules,
                options.schedule.seed,
            )?,
        };
        let Answers { teachers, views, of_words, of_rare, candidates } =
            ask(options, &cache, texts, [&start.words, &rare], &mut asked)?;
        let width = of_words.width();
        if dims > width {
            let what = if options.start.is_some() { "--start:" } else { "--dims:" };
            let problem =
                format!("{what} {dims} dimensions, more than the {width} of the teachers");
            return Err(TrainError::Options(problem));
        }
        let space = Space::of(&measured(&views, &of_words), dims);
        let centred = space.centred(&of_words);
        let mut targets = Targets::default();
        for views in &views {
            targets.extend(space.targets(views));
        }
        targets.extend(Targets::of(centred.clone(), dims));
        let bags = bags(texts, &start.words, rules);
        let usable = usable(&bags, &targets);
        let longer = usable.partition_point(|&text| (text as usize) < texts.len());
        if longer == 0 {
            let files = options.text.iter().chain(&options.whole);
            let file = files.map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
            let problem = "no text holds a word that is listed".to_owned();
            return Err(TrainError::Data { file, problem });
        }
        let (kept, digest) = (space.kept, digest(texts, start));
        let parts = candidates.map(|candidates| Parts { candidates, rare, of_rare, of_words });
        Ok(Self { teachers, asked, bags, targets, centred, usable, longer, kept, digest, parts })
    }

    /// Usable texts, words by themselves left out.
    pub(super) fn of_texts(&self) -> &[u32] {
        &self.usable[..self.longer]
    }
}

struct Answers {
    teachers: Vec<TeacherSaid>,
    /// Of texts, by kind.
    views: Vec<Views>,
    of_words: Views,
    of_rare: Views,
    /// The pieces of the first teacher, where pieces are wanted.
    candidates: Option<Vec<String>>,
}

fn ask(
    options: &DistillOptions,
    cache: &Cache,
    texts: &Texts,
    [words, rare]: [&Vec<String>; 2],
    asked: &mut Asked,
) -> Result<Answers, TrainError> {
    let kinds: Vec<&[String]> =
        [words, rare].map(Vec::as_slice).into_iter().chain(texts.kinds()).collect();
    let mut found = vec![Vec::new(); kinds.len()];
    let (mut teachers, mut candidates) = (Vec::new(), None);
    // One teacher after another, so that only one is held in memory.
    for folder in &options.teachers {
        let teacher = Teacher::open(folder)?;
        if options.pieces > 0 && teachers.is_empty() {
            let problem = "--pieces: the first teacher's tokenizer has none marked `##`";
            let none = || TrainError::Options(problem.to_owned());
            candidates = Some(teacher.pieces().ok_or_else(none)?);
        }
        for (kind, embeddings) in cache.embed(&teacher, &kinds, asked)?.into_iter().enumerate() {
            found[kind].push(embeddings);
        }
        let (name, digest) = (teacher.name(), teacher.digest().to_owned());
        teachers.push(TeacherSaid { name, digest, dims: teacher.width() });
    }
    let mut views: Vec<Views> = found.into_iter().map(Views::new).collect();
    let of_texts = views.split_off(2);
    let [of_words, of_rare] = [0, 1].map(|kind| std::mem::take(&mut views[kind]));
    Ok(Answers { teachers, views: of_texts, of_words, of_rare, candidates })
}

/// What teachers say of more texts.
pub(super) fn say(
    options: &DistillOptions,
    texts: &[String],
    asked: &mut Asked,
) -> Result<Views, TrainError> {
    let cache = Cache::open(&options.cache)?;
    let mut found = Vec::with_capacity(options.teachers.len());
    for folder in &options.teachers {
        found.extend(cache.embed(&Teacher::open(folder)?, &[texts], asked)?);
    }
    Ok(Views::new(found))
}

/// The kinds that directions are taken from: sentences and spans, or what there is.
fn measured<'v>(views: &'v [Views], of_words: &'v Views) -> Vec<&'v Views> {
    let [sentences, _, spans, _, whole] = [0, 1, 2, 3, 4].map(|kind| views.get(kind));
    for kinds in [[sentences, spans], [whole, None]] {
        let kinds = kinds.into_iter().flatten().filter(|views| !views.is_empty());
        let kinds: Vec<&Views> = kinds.collect();
        if !kinds.is_empty() {
            return kinds;
        }
    }
    vec![of_words]
}

/// The words of every text, and every word by itself.
fn bags(texts: &Texts, words: &[String], rules: &Normalisation) -> Bags {
    let lookup = Lookup::new(words, rules);
    let (mut bags, mut memory, mut found) = (Bags::default(), LookupMemory::default(), Vec::new());
    for text in texts.kinds().into_iter().flatten() {
        found.clear();
        lookup.read(text, &mut memory, &mut found);
        bags.push(&found);
    }
    for word in 0..words.len() as u32 {
        bags.push(&[word]);
    }
    bags
}

/// Texts with words and with a direction.
fn usable(bags: &Bags, targets: &Targets) -> Vec<u32> {
    let fits = |text: &u32| {
        let text = *text as usize;
        !bags.text(text).is_empty() && targets.row(text).iter().any(|x| x.to_f32() != 0.0)
    };
    (0..bags.len() as u32).filter(fits).collect()
}

fn digest(texts: &Texts, start: &Start) -> String {
    let mut digest = blake3::Hasher::new();
    for kind in texts.kinds().into_iter().chain([start.words.as_slice()]) {
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
