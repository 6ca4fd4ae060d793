//! The frame of a plot: axes with round ticks, and the mapping of numbers to coordinates.
//!
//! The SVG is written by hand, which allows the page's own colours for light and dark mode and
//! needs no drawing library. What is plotted is not known here.

use std::fmt::Write;

use crate::distribution::{equal_edges, histogram};

pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(character),
        }
    }
    out
}

#[derive(Debug, Clone)]
pub struct Axis {
    pub low: f64,
    pub high: f64,
    pub label: &'static str,
}

impl Axis {
    /// An axis for these numbers, slightly widened; an empty range gets some width.
    pub fn over(numbers: impl Iterator<Item = f64>, label: &'static str) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for number in numbers.filter(|number| number.is_finite()) {
            (low, high) = (low.min(number), high.max(number));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let room = if high > low { 0.03 * (high - low) } else { 0.5 };
        Self { low: low - room, high: high + room, label }
    }

    pub fn share(label: &'static str) -> Self {
        Self { low: 0.0, high: 1.0, label }
    }

    /// The relative position of a number, from 0 to 1; never NaN.
    pub fn place(&self, number: f64) -> f64 {
        let share = (number - self.low) / (self.high - self.low);
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// About five round numbers along the axis, and the digits to show them with.
    pub fn ticks(&self) -> (Vec<f64>, usize) {
        let rough = (self.high - self.low) / 5.0;
        let unit = 10.0_f64.powf(rough.log10().floor());
        let Some(step) = [1.0, 2.0, 2.5, 5.0, 10.0]
            .map(|factor| factor * unit)
            .into_iter()
            .find(|step| *step >= rough * 0.999)
        else {
            return (Vec::new(), 0);
        };
        let first = (self.low / step).ceil();
        let ticks = (0..12).map(|count| (first + f64::from(count)) * step);
        let digits = (0..6).find(|&digits| {
            let scaled = step * 10.0_f64.powi(digits);
            (scaled - scaled.round()).abs() < 1e-6
        });
        let within = ticks.take_while(|tick| *tick <= self.high + 1e-9 * step);
        (within.collect(), digits.unwrap_or(6) as usize)
    }
}

pub const WIDE: (f64, f64) = (480.0, 330.0);
/// Size of a plot if there are three in a row.
pub const MIDDLE: (f64, f64) = (330.0, 250.0);
/// Size of a plot if there are four in a row.
pub const SMALL: (f64, f64) = (250.0, 205.0);

#[derive(Debug)]
pub struct Frame {
    width: f64,
    height: f64,
    left: f64,
    top: f64,
    x: Axis,
    y: Axis,
    svg: String,
}

/// Space below the plot, for ticks and the axis label.
const BELOW: f64 = 40.0;
/// Width of the space right of the plot, for half a tick label.
const RIGHT: f64 = 14.0;
/// Space to the left of tick labels, for the axis label.
const BESIDE: f64 = 24.0;
/// Width from which a plot gets larger text: wide plots shrink most on a telephone.
const BROAD: f64 = 400.0;
/// Bins of a drawn histogram; divergences use bins of their own.
const BINS: usize = 50;
/// Maximum magnification of a plot; the plot's text is magnified, too.
const LARGEST: f64 = 1.25;

impl Frame {
    /// A wide frame with a curve over `x`; its y axis reaches down to `low`, if given.
    pub fn of_curve(
        what: &str,
        x: Axis,
        up: &'static str,
        low: Option<f64>,
        points: &[(f64, f64)],
    ) -> Self {
        let y = Axis::over(points.iter().map(|point| point.1).chain(low), up);
        let mut frame = Self::new(WIDE, x, y, what);
        frame.curve("c0", points.iter().copied());
        frame
    }

    /// A frame with the shares of the numbers of two groups by bin, and a threshold.
    pub fn of_groups(
        size: (f64, f64),
        x: Axis,
        what: &str,
        groups: [&[f64]; 2],
        threshold: f64,
    ) -> Self {
        let edges = equal_edges(x.low, x.high, BINS);
        let [one, other] = groups.map(|numbers| -> Vec<f64> {
            let counts = histogram(numbers, &edges).unwrap_or_default().into_iter();
            counts.map(|count| 100.0 * count as f64 / numbers.len().max(1) as f64).collect()
        });
        let highest = one.iter().chain(&other).copied().fold(0.1, f64::max);
        let y = Axis { low: 0.0, high: 1.05 * highest, label: "% of pairs" };
        let mut frame = Self::new(size, x, y, what);
        frame.steps("c1", &edges, &other);
        frame.steps("c0", &edges, &one);
        frame.mark("threshold", threshold);
        frame
    }

    /// Begins a plot: grid, ticks and axis labels. `what` is the text for screen readers.
    pub fn new(size: (f64, f64), x: Axis, y: Axis, what: &str) -> Self {
        let (width, height) = size;
        let broad = width > BROAD;
        let (ticks, digits) = y.ticks();
        let longest = ticks.iter().map(|tick| number(*tick, digits).chars().count()).max();
        let left = BESIDE + if broad { 8.2 } else { 6.3 } * longest.unwrap_or(0) as f64;
        let mut frame = Self { width, height, left, top: 10.0, x, y, svg: String::new() };
        let _ = write!(
            frame.svg,
            "<svg viewBox=\"0 0 {width} {height}\"{} style=\"max-width:{:.0}px\" role=\"img\" \
             aria-label=\"{}\">",
            if broad { " class=\"broad\"" } else { "" },
            width * LARGEST,
            escaped(what)
        );
        frame.axes();
        frame
    }

    fn bottom(&self) -> f64 {
        self.height - BELOW
    }

    fn right(&self) -> f64 {
        self.width - RIGHT
    }

    pub fn across(&self, x: f64) -> f64 {
        self.left + self.x.place(x) * (self.right() - self.left)
    }

    pub fn up(&self, y: f64) -> f64 {
        self.bottom() + self.y.place(y) * (self.top - self.bottom())
    }

    fn axes(&mut self) {
        let (left, right, top, bottom) = (self.left, self.right(), self.top, self.bottom());
        let (ticks, digits) = self.x.ticks();
        for tick in ticks {
            let at = self.across(tick);
            self.line("grid", [at, top], [at, bottom]);
            self.text("tick", [at, bottom + 14.0], "middle", &number(tick, digits));
        }
        let (ticks, digits) = self.y.ticks();
        for tick in ticks {
            let at = self.up(tick);
            self.line("grid", [left, at], [right, at]);
            self.text("tick", [left - 6.0, at + 3.5], "end", &number(tick, digits));
        }
        self.line("axis", [left, bottom], [right, bottom]);
        let (x, y) = (self.x.label, self.y.label);
        self.text("label", [(left + right) / 2.0, self.height - 8.0], "middle", x);
        let middle = (top + bottom) / 2.0;
        let _ = write!(
            self.svg,
            "<text class=\"label\" transform=\"translate(11 {middle:.1}) rotate(-90)\" \
             text-anchor=\"middle\">{}</text>",
            escaped(y)
        );
    }

    pub fn line(&mut self, class: &str, from: [f64; 2], to: [f64; 2]) {
        let _ = write!(
            self.svg,
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from[0], from[1], to[0], to[1]
        );
    }

    pub fn text(&mut self, class: &str, at: [f64; 2], anchor: &str, text: &str) {
        let _ = write!(
            self.svg,
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            at[0],
            at[1],
            escaped(text)
        );
    }

    /// Adds a line through points in the units of the axes.
    pub fn curve(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        let mut path = String::new();
        for (place, (x, y)) in points.enumerate() {
            let command = if place == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{command}{:.1} {:.1}", self.across(x), self.up(y));
        }
        let _ = write!(self.svg, "<path class=\"curve {class}\" d=\"{path}\"/>");
    }

    /// Adds dots, as one path of zero-length lines with round ends.
    pub fn dots(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        let mut path = String::new();
        for (x, y) in points {
            let _ = write!(path, "M{:.1} {:.1}h0", self.across(x), self.up(y));
        }
        let _ = write!(self.svg, "<path class=\"dots {class}\" d=\"{path}\"/>");
    }

    fn steps(&mut self, class: &str, edges: &[f64], heights: &[f64]) {
        let base = self.bottom();
        let first = self.across(edges.first().copied().unwrap_or(0.0));
        let mut path = format!("M{first:.1} {base:.1}");
        for (edges, &height) in edges.windows(2).zip(heights) {
            let _ = write!(path, "V{:.1}H{:.1}", self.up(height), self.across(edges[1]));
        }
        let _ = write!(path, "V{base:.1}Z");
        let _ = write!(self.svg, "<path class=\"steps {class}\" d=\"{path}\"/>");
    }

    pub fn mark(&mut self, class: &str, x: f64) {
        let at = self.across(x);
        let (top, bottom) = (self.top, self.bottom());
        self.line(class, [at, top], [at, bottom]);
    }

    pub fn finish(mut self) -> String {
        self.svg.push_str("</svg>");
        self.svg
    }
}

/// Formats a number with a true minus sign, without a sign if it rounds to 0.
pub fn number(number: f64, digits: usize) -> String {
    let shown = format!("{:.digits$}", number.abs());
    let zero = shown.bytes().all(|byte| byte == b'0' || byte == b'.');
    if number < 0.0 && !zero { format!("−{shown}") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let ticks = |low, high| Axis { low, high, label: "" }.ticks();
        assert_eq!(ticks(0.0, 1.0), (vec![0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0], 1));
        assert_eq!(ticks(-0.15, 5.15).0, [0.0, 2.0, 4.0]);
        for (low, high) in [(0.0, 1e-9), (-3.0, 1e12), (0.31, 0.33), (5.0, 5.0), (f64::NAN, 1.0)] {
            assert!(ticks(low, high).0.len() <= 12);
        }
    }

    #[test]
    fn no_number_leaves_the_paper() {
        let axis = Axis::over([2.0, f64::INFINITY, 2.0].into_iter(), "");
        for number in [f64::NAN, f64::INFINITY, -1e300, 2.0] {
            assert!((0.0..=1.0).contains(&axis.place(number)));
        }
        assert_eq!(escaped("<a href='x'>&\""), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;");
    }
}
