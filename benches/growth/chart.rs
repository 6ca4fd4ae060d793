//! The chart: one small panel a size, logarithmic both ways, as SVG that needs nothing beside it.

use std::fmt::Write as _;

use crate::panels::{Chart, Panel};

const COLUMNS: usize = 3;
const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 270.0;
/// What a panel keeps free on the left, above, on the right and below for words.
const LEFT: f64 = 58.0;
const TOP: f64 = 62.0;
const RIGHT: f64 = 48.0;
const BELOW: f64 = 42.0;
/// From one line of small letters to the next.
const LINE: f64 = 11.0;
/// Told apart by those who see few colours, too; one a method.
const COLOURS: [&str; 2] = ["#0072b2", "#d55e00"];

/// An axis: from, to, and what is written where.
struct Axis {
    from: f64,
    to: f64,
    ticks: Vec<f64>,
}

impl Axis {
    /// An axis from the first size to the last, with a tick a power of ten, or of two where sizes
    /// are few.
    fn of_sizes(sizes: &[f64]) -> Self {
        let (from, to) = ends(sizes);
        let base: f64 = if to < 1_000.0 { 2.0 } else { 10.0 };
        let step = if base == 2.0 && to / from > 100.0 { 2 } else { 1 };
        let ticks = (0..20).step_by(step).map(|power| base.powi(power));
        Self { from, to, ticks: ticks.filter(|tick| (from..=to).contains(tick)).collect() }
    }

    /// An axis between round numbers, with a tick a power of ten, and more where there are few.
    fn of_costs(costs: &[f64]) -> Self {
        let (least, most) = ends(costs);
        let marks: &[f64] = if most / least < 100.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let power = |power: i32| marks.iter().map(move |mark| mark * 10_f64.powi(power));
        let round: Vec<f64> = (0..12).flat_map(power).collect();
        let from = round.iter().copied().filter(|mark| *mark <= least).fold(1.0, f64::max);
        let to = round.iter().copied().filter(|mark| *mark >= most).fold(1e12, f64::min);
        let ticks = round.into_iter().filter(|mark| (from..=to).contains(mark)).collect();
        Self { from, to, ticks }
    }

    /// Where a value lies, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        (value / self.from).ln() / (self.to / self.from).ln()
    }
}

fn ends(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (least, values.iter().copied().fold(0.0, f64::max))
}

/// The whole chart.
pub fn svg(chart: &Chart) -> String {
    let rows = chart.panels.len().div_ceil(COLUMNS);
    let (width, height) = (COLUMNS as f64 * WIDTH, rows as f64 * HEIGHT);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"11\" fill=\"#333\" role=\"img\" \
         aria-label=\"How cost grows\">\n<rect width=\"{width}\" height=\"{height}\" \
         fill=\"#fff\"/>\n"
    );
    for (number, panel) in chart.panels.iter().enumerate() {
        let (column, row) = (number % COLUMNS, number / COLUMNS);
        let (left, top) = (column as f64 * WIDTH, row as f64 * HEIGHT);
        let _ = writeln!(out, "<g transform=\"translate({left} {top})\">");
        draw(&mut out, panel);
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

fn draw(out: &mut String, panel: &Panel) {
    let points = || panel.lines.iter().flat_map(|line| &line.points);
    let sizes = Axis::of_sizes(&points().map(|point| point.0).collect::<Vec<_>>());
    let costs = Axis::of_costs(&points().map(|point| point.1).collect::<Vec<_>>());
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BELOW);
    let across = |size: f64| LEFT + sizes.place(size) * (right - LEFT);
    let up = |cost: f64| bottom - costs.place(cost) * (bottom - TOP);
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"20\" font-size=\"13\" font-weight=\"600\">{}</text>",
        panel.title
    );
    legend(out, panel);
    for &tick in &sizes.ticks {
        let x = across(tick);
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#eee\"/><text x=\"{x:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\">{}</text>",
            bottom + 15.0,
            short(tick)
        );
    }
    for &tick in &costs.ticks {
        let y = up(tick);
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            LEFT - 5.0,
            y + 4.0,
            short(tick)
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#666\">{}</text>",
        f64::midpoint(LEFT, right),
        bottom + 31.0,
        panel.x
    );
    let middle = f64::midpoint(TOP, bottom);
    let _ = writeln!(
        out,
        "<text transform=\"translate(15 {middle:.1}) rotate(-90)\" text-anchor=\"middle\" \
         fill=\"#666\">{}</text>",
        panel.y
    );
    for (number, line) in panel.lines.iter().enumerate() {
        let (colour, dashes) = style(panel, number);
        let place = |(size, cost): &(f64, f64)| format!("{:.1} {:.1}", across(*size), up(*cost));
        let path: Vec<String> = line.points.iter().map(place).collect();
        let _ = writeln!(
            out,
            "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"{dashes}/>",
            path.join("L")
        );
        for (size, cost) in &line.points {
            let _ = write!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.2\" fill=\"{colour}\"/>",
                across(*size),
                up(*cost)
            );
        }
    }
    last_figures(out, panel, right + 5.0, &up);
}

/// The last figure of each line beside its end, moved apart where they would lie on one another.
fn last_figures(out: &mut String, panel: &Panel, x: f64, up: &dyn Fn(f64) -> f64) {
    let last = panel.lines.iter().enumerate().filter_map(|(number, line)| {
        let &(_, cost) = line.points.last()?;
        Some((up(cost) + 3.5, cost, style(panel, number).0))
    });
    let mut last: Vec<(f64, f64, &str)> = last.collect();
    last.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let mut lowest = f64::INFINITY;
    for (y, cost, colour) in last {
        let y = y.min(lowest);
        lowest = y - LINE;
        let _ = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\" font-size=\"10\">{}</text>",
            figure(cost)
        );
    }
}

/// A colour a method; where a method has two lines the second is dashed.
fn style(panel: &Panel, number: usize) -> (&'static str, &'static str) {
    let each = panel.lines.len().div_ceil(COLOURS.len());
    let dashes = if number.is_multiple_of(each) { "" } else { " stroke-dasharray=\"4 3\"" };
    (COLOURS[(number / each).min(COLOURS.len() - 1)], dashes)
}

fn legend(out: &mut String, panel: &Panel) {
    let columns = 2;
    for (number, line) in panel.lines.iter().enumerate() {
        let (colour, dashes) = style(panel, number);
        let x = LEFT + (number % columns) as f64 * (WIDTH - LEFT) * 0.49;
        let y = 33.0 + (number / columns) as f64 * (LINE + 2.0);
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} {y}h14\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>\
             <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"9.5\">{}</text>",
            x + 18.0,
            y + 3.5,
            line.name
        );
    }
}

/// A round number in few signs.
fn short(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{} M", value / 1e6),
        value if value >= 1e4 => format!("{} k", value / 1e3),
        value => format!("{value}"),
    }
}

/// A measured number with what of it can be believed.
fn figure(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{:.2} M", value / 1e6),
        value if value >= 1e4 => format!("{:.0} k", value / 1e3),
        value if value >= 100.0 => format!("{value:.0}"),
        value => format!("{value:.1}"),
    }
}
