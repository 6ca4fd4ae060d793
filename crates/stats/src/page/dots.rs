//! A dot plot: named figures one below the other on a common axis.
//!
//! It is HTML, not SVG: a drawing shrinks with the window, and its text with it, while names and
//! numbers here stay readable on a telephone. What the figures measure is not known here.

use std::fmt::Write;

use crate::page::frame::{Axis, escaped, number};

/// The axis begins at 0 if the smallest figure is at most this share of the largest.
const NEAR_ZERO: f64 = 0.35;

#[derive(Debug, Clone)]
pub struct Dot {
    pub name: String,
    pub value: f64,
    pub interval: Option<[f64; 2]>,
    pub baseline: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct Drawing<'d> {
    pub digits: usize,
    pub label: &'d str,
}

/// The figures in falling order, with marks, whiskers for intervals, and a line at the baseline.
pub fn dots(dots: &[Dot], drawing: Drawing<'_>) -> String {
    let Drawing { digits, label } = drawing;
    let mut order: Vec<&Dot> = dots.iter().collect();
    order.sort_by(|a, b| b.value.total_cmp(&a.value));
    let shown = |dot: &Dot| number(dot.value, digits);
    let best = order.first().map(|dot| shown(dot));
    let axis = axis(dots);
    let at = |value: f64| 100.0 * axis.place(value);
    let rows = order.len().max(1);
    let mut out =
        format!("<div class=\"dotted\" role=\"group\" aria-label=\"{}\">", escaped(label));
    let _ = write!(out, "<div class=\"plane\" style=\"grid-row:1/span {rows}\">");
    let (ticks, tick_digits) = axis.ticks();
    for tick in &ticks {
        let _ = write!(out, "<i style=\"left:{:.2}%\"></i>", at(*tick));
    }
    for baseline in order.iter().filter(|dot| dot.baseline) {
        let _ = write!(out, "<i class=\"base\" style=\"left:{:.2}%\"></i>", at(baseline.value));
    }
    out.push_str("</div>");
    for (place, dot) in order.iter().enumerate() {
        let row = place + 1;
        let value = shown(dot);
        let (class, tag) = match (Some(&value) == best.as_ref(), dot.baseline) {
            (true, true) => ("best base", " <small>best, baseline</small>"),
            (true, false) => ("best", " <small>best</small>"),
            (false, true) => ("base", " <small>baseline</small>"),
            (false, false) => ("other", ""),
        };
        let name = escaped(&dot.name);
        let _ = write!(
            out,
            "<div class=\"name {class}\" style=\"grid-row:{row}\">{name}{tag}</div>\
             <div class=\"track {class}\" style=\"grid-row:{row}\">"
        );
        if let Some([low, high]) = dot.interval {
            let (from, width) = (at(low), at(high) - at(low));
            let _ = write!(
                out,
                "<i class=\"whisker\" style=\"left:{from:.2}%;width:{width:.2}%\"></i>"
            );
        }
        let _ = write!(
            out,
            "<i class=\"dot\" style=\"left:{:.2}%\"></i></div>\
             <div class=\"value {class}\" style=\"grid-row:{row}\">{value}</div>",
            at(dot.value)
        );
    }
    out.push_str("<div class=\"ticks\">");
    for tick in &ticks {
        let _ = write!(
            out,
            "<span style=\"left:{:.2}%\">{}</span>",
            at(*tick),
            number(*tick, tick_digits)
        );
    }
    let _ = write!(out, "</div><div class=\"unit\">{}</div></div>", escaped(label));
    out
}

pub fn is_cut(dots: &[Dot]) -> bool {
    let axis = axis(dots);
    axis.low > 0.0 || axis.high < 0.0
}

fn axis(dots: &[Dot]) -> Axis {
    let ends = dots.iter().flat_map(|dot| dot.interval.into_iter().flatten().chain([dot.value]));
    let axis = Axis::over(ends, "");
    if axis.low > 0.0 && axis.low <= NEAR_ZERO * axis.high {
        Axis { low: 0.0, ..axis }
    } else {
        axis
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(name: &str, value: f64) -> Dot {
        let baseline = name == "base";
        Dot { name: name.to_owned(), value, interval: Some([value - 1.0, value + 1.0]), baseline }
    }

    #[test]
    fn the_largest_stands_first_and_is_the_best() {
        let figures = [dot("low", 70.0), dot("<high>", 74.8), dot("base", 72.3)];
        let drawn = dots(&figures, Drawing { digits: 1, label: "r" });
        let places = ["&lt;high&gt;", "base", "low"].map(|name| {
            drawn
                .find(&format!("\">{name} "))
                .or_else(|| drawn.find(&format!("\">{name}<")))
                .unwrap_or_else(|| panic!("{name} is missing: {drawn}"))
        });
        assert!(places.is_sorted(), "{drawn}");
        assert_eq!(drawn.matches("<small>best</small>").count(), 1);
        assert!(
            drawn.contains("<div class=\"value best\" style=\"grid-row:1\">74.8</div>"),
            "{drawn}"
        );
    }

    #[test]
    fn the_axis_begins_near_the_figures_unless_zero_is_near() {
        assert!(is_cut(&[dot("a", 72.3), dot("b", 74.8)]));
        assert!(!is_cut(&[dot("a", 2.0), dot("b", 74.8)]));
        assert!(!is_cut(&[dot("a", -2.0), dot("b", 3.0)]));
        // A figure without a position (NaN) is not drawn.
        let drawn = dots(&[dot("a", f64::NAN)], Drawing { digits: 1, label: "" });
        assert!(!drawn.contains("left:NaN"), "{drawn}");
    }
}
