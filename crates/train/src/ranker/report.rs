//! The page about a run: what was trained on what, and how loss and figures went.

use cognate_stats::page::frame::{Axis, Frame, WIDE};
use cognate_stats::page::{Head, Page};

use crate::ranker::run::Epoch;
use crate::ranker::{RankerOptions, Trained};

/// What is drawn of an epoch.
type Figure = fn(&Epoch) -> f64;

pub(super) fn html(trained: &Trained, options: &RankerOptions) -> String {
    let name = trained.written.path.file_stem().unwrap_or_default().to_string_lossy();
    let [trained_on, judges] = trained.queries;
    let mut facts = vec![
        ("encoder", trained.encoder.name().to_owned()),
        ("posts", trained.examples.to_string()),
        ("queries", format!("{trained_on}, judged by {judges}")),
        ("best epoch", trained.best_epoch.to_string()),
        ("rate", options.pace.rate.to_string()),
        ("momentum", options.pace.momentum.to_string()),
        ("seed", options.seed.to_string()),
        ("fingerprint", trained.written.fingerprint.clone()),
    ];
    if let Some(with) = trained.with_ql {
        facts.push((
            "with ql",
            format!("α {}: MAP {:.4}, P30 {:.4}", with.alpha, with.map, with.p30),
        ));
    }
    let mut page = Page::new(&Head {
        kicker: "cognate train ranker",
        title: "A ranker of posts",
        subject: &name,
        facts: &facts,
    });
    let plot = |what: &str, label: &'static str, curves: &[(&str, Figure)]| {
        let last = trained.epochs.len() as f64;
        let x = Axis { low: 1.0, high: last.max(2.0), label: "epoch" };
        let numbers = curves.iter().flat_map(|(_, figure)| trained.epochs.iter().map(figure));
        let y = Axis::over(numbers, label);
        let mut frame = Frame::new(WIDE, x, y, what);
        for (class, figure) in curves {
            let points = trained.epochs.iter().enumerate();
            frame.curve(class, points.map(|(at, epoch)| (at as f64 + 1.0, figure(epoch))));
        }
        frame.mark("threshold", trained.best_epoch as f64);
        frame.finish()
    };
    page.section("Loss");
    let drawing = plot("The loss by epoch", "mean loss of a post", &[("c0", |epoch| epoch.loss)]);
    page.figure("Mean loss of the posts of each epoch, as they were met.", &drawing);
    page.end_section();
    page.section("Queries that judge");
    page.legend(&[("c0", "mean average precision"), ("c1", "precision among the first thirty")]);
    let curves: [(&str, Figure); 2] = [("c0", |epoch| epoch.map), ("c1", |epoch| epoch.p30)];
    let drawing = plot("The figures by epoch", "mean over queries", &curves);
    page.figure("After each epoch; the line marks the one that was kept.", &drawing);
    page.end_section();
    page.finish()
}
