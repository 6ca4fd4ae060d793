//! The page about a run: who was asked about what, and how the loss went.

use cognate_stats::page::frame::{Axis, Frame, WIDE};
use cognate_stats::page::{Head, Page};

use crate::run::Point;
use crate::{DistillOptions, Distilled};

pub(super) fn html(distilled: &Distilled, options: &DistillOptions) -> String {
    let name = distilled.written.path.file_stem().unwrap_or_default().to_string_lossy();
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
    let mut page = Page::new(&Head {
        kicker: "cognate-distill",
        title: "Distilled word vectors",
        subject: &name,
        facts: &facts,
    });
    let epochs = f64::from(schedule.epochs);
    let mut plot = |title: &str, label: &'static str, caption: &str, of: fn(&Point) -> f64| {
        page.section(title);
        let x = Axis { low: 0.0, high: epochs, label: "epochs" };
        let y = Axis::over(distilled.points.iter().map(of), label);
        let mut frame = Frame::new(WIDE, x, y, title);
        let curve = distilled.points.iter().map(|point| (point.gone * epochs, of(point)));
        frame.curve("c0", curve);
        page.figure(caption, &frame.finish());
        page.end_section();
    };
    plot(
        "Distance to the teacher",
        "mean of 1 - cosine",
        "How far the sum of a text's word vectors points from where the teacher puts the text, in each \
         hundredth of the run.",
        |point| point.apart,
    );
    plot(
        "Neighbours",
        "mean divergence",
        "How far a text's likeness to the others of its batch is from what the teacher says.",
        |point| point.divergence,
    );
    page.finish()
}
