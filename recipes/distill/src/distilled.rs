//! The report of a run, as text, as JSON and as an HTML page.

use std::path::PathBuf;

use cognate::model::writer::Written;
use cognate_train::run;
use serde::Serialize;

use crate::DistillOptions;
use crate::texts::KINDS;
use crate::trainer::Point;
use crate::tune::Tuned;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TeacherInfo {
    pub name: String,
    /// BLAKE3 of everything that its vectors depend on.
    pub digest: String,
    /// Dimensions of its vectors.
    pub dims: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct Distilled {
    pub teachers: Vec<TeacherInfo>,
    /// Number of texts by kind: sentences, clauses, spans, bags, whole, generated.
    pub texts: [usize; KINDS],
    /// Number of lines left out because they share too much with an excluded text.
    pub kept_apart: usize,
    /// Number of trained words, and number of words in the model.
    pub words: [usize; 2],
    /// Number of pieces, and the mean cosine between words and the sums of their pieces.
    pub pieces: Option<(usize, f64)>,
    /// The outcome of tuning on the scores of pairs.
    pub tuned: Option<Tuned>,
    /// Number of listed words that no text can contain or that are repeated.
    pub left_out: usize,
    /// Number of words added to those of the base model.
    pub added: usize,
    pub dims: usize,
    /// The share of the teachers' vectors that the dimensions retain.
    pub kept: f64,
    /// Number of texts embedded in this run; the others were cached.
    pub asked: usize,
    pub asked_per_second: f64,
    pub cache: PathBuf,
    /// Seconds of training, and texts per second.
    pub seconds: f64,
    /// The share of the run that was restored from a checkpoint.
    pub resumed_at: Option<f64>,
    /// The loss curve.
    pub points: Vec<Point>,
    #[serde(flatten)]
    pub written: Written,
}

impl std::fmt::Display for Distilled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.written.path.display())?;
        let [trained, written] = self.words;
        let (dims, bytes) = (self.dims, self.written.bytes);
        writeln!(
            f,
            "  {written} words × {dims} dimensions, {bytes} bytes; {trained} words trained"
        )?;
        if let Some((pieces, agreement)) = self.pieces {
            writeln!(f, "  {pieces} pieces for words not listed, cosine {agreement:.3}")?;
        }
        if let Some(Tuned { families, before, after }) = self.tuned {
            let way = format!("{before:.4} from the teacher's cosines, {after:.4} at the end");
            writeln!(f, "  {families} families of texts: scores {way}")?;
        }
        if self.added > 0 {
            writeln!(f, "  {} words added to those of the model", self.added)?;
        }
        if self.left_out > 0 {
            writeln!(f, "  {} words of the list left out", self.left_out)?;
        }
        for teacher in &self.teachers {
            writeln!(f, "  teacher {}, {} dimensions", teacher.name, teacher.dims)?;
        }
        writeln!(f, "  {:.1} % of the teachers' vectors retained", 100.0 * self.kept)?;
        let [sentences, clauses, spans, bags, whole, generated] = self.texts;
        writeln!(
            f,
            "  {sentences} sentences, {clauses} clauses, {spans} spans, {bags} bags, {whole} whole \
             texts, {generated} generated"
        )?;
        if self.kept_apart > 0 {
            writeln!(f, "  {} lines left out, too near to --exclude", self.kept_apart)?;
        }
        let (asked, rate) = (self.asked, self.asked_per_second);
        let cache = self.cache.display();
        writeln!(f, "  {asked} texts embedded, {rate:.0} a second; cached in {cache}")?;
        if let Some(share) = self.resumed_at {
            writeln!(f, "  training resumed at {:.1} %", 100.0 * share)?;
        }
        if let (Some(first), Some(last)) = (self.points.first(), self.points.last()) {
            let (first, last, seconds) = (first.apart, last.apart, self.seconds);
            writeln!(
                f,
                "  1 - cosine {first:.4} at the beginning, {last:.4} at the end, {seconds:.1} s"
            )?;
        }
        write!(f, "{}", self.written)
    }
}

pub(super) fn html(distilled: &Distilled, options: &DistillOptions) -> String {
    let schedule = &options.schedule;
    let teachers: Vec<&str> = distilled.teachers.iter().map(|said| said.name.as_str()).collect();
    let [sentences, clauses, spans, bags, whole, generated] = distilled.texts;
    let facts = [
        ("teachers", teachers.join(", ")),
        ("vectors", format!("{} × {}", distilled.words[1], distilled.dims)),
        ("words trained", distilled.words[0].to_string()),
        ("sentences", sentences.to_string()),
        ("clauses", clauses.to_string()),
        ("spans", spans.to_string()),
        ("bags", bags.to_string()),
        ("whole texts", whole.to_string()),
        ("generated texts", generated.to_string()),
        ("epochs", schedule.epochs.to_string()),
        ("rate", schedule.pace.rate.to_string()),
        ("seed", schedule.seed.to_string()),
        ("fingerprint", distilled.written.fingerprint.clone()),
    ];
    let title = ["cognate-distill", "Distilled word vectors"];
    let mut page = run::page(title, &distilled.written, &facts);
    let mut put = |title: &str, label: &'static str, caption: &str, of: fn(&Point) -> f64| {
        let points: Vec<_> = distilled.points.iter().map(|point| (point.gone, of(point))).collect();
        run::put_curve(&mut page, [title, title, caption], label, schedule.epochs, &points);
    };
    put(
        "Distance to the teacher",
        "mean of 1 - cosine",
        "How far the sum of a text's word vectors points from where the teacher puts the text, in each \
         hundredth of the run.",
        |point| point.apart,
    );
    put(
        "Neighbours",
        "mean divergence",
        "How far a text's likeness to the others of its batch is from what the teacher says.",
        |point| point.divergence,
    );
    page.finish()
}
