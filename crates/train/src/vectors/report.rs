//! The page about a run: what was trained on what, and how the loss went.

use cognate_stats::page::frame::{Axis, Frame, WIDE};
use cognate_stats::page::{Head, Page};

use crate::vectors::{Trained, VectorsOptions};

pub(super) fn html(trained: &Trained, options: &VectorsOptions) -> String {
    let name = trained.written.path.file_stem().unwrap_or_default().to_string_lossy();
    let schedule = &options.schedule;
    let facts = [
        ("objective", trained.objective.name().to_owned()),
        ("vectors", format!("{} × {}", trained.words, trained.dims)),
        ("words of text", trained.tokens[0].to_string()),
        ("sentences", trained.sentences.to_string()),
        ("epochs", schedule.epochs.to_string()),
        ("rate", schedule.rate.to_string()),
        ("optimiser", if schedule.adagrad { "adagrad" } else { "sgd" }.to_owned()),
        ("seed", options.seed.to_string()),
        ("fingerprint", trained.written.fingerprint.clone()),
    ];
    let mut page = Page::new(&Head {
        kicker: "cognate train vectors",
        title: "Word vectors",
        subject: &name,
        facts: &facts,
    });
    page.section("Loss");
    let x = Axis { low: 0.0, high: f64::from(schedule.epochs), label: "epochs" };
    let y = Axis::over(trained.losses.iter().map(|(_, loss)| *loss), "mean loss of an example");
    let mut frame = Frame::new(WIDE, x, y, "The loss over the run");
    let epochs = f64::from(schedule.epochs);
    frame.curve("c0", trained.losses.iter().map(|(share, loss)| (share * epochs, *loss)));
    page.figure("Mean loss of each hundredth of the run.", &frame.finish());
    page.end_section();
    page.section("Lengths of vectors");
    let words = |list: &[(String, f32)]| {
        let shown = list.iter().map(|(word, norm)| format!("{word} {norm:.3}"));
        shown.collect::<Vec<_>>().join(", ")
    };
    page.note(&format!("Shortest of the thousand most frequent: {}.", words(&trained.smallest)));
    page.note(&format!("Longest of them: {}.", words(&trained.largest)));
    page.end_section();
    page.finish()
}
