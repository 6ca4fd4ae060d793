//! `cargo bench --bench http`: what a request costs the service in processor time, next to a bare
//! HTTP server and to the same scores without HTTP.
//!
//! Time on the wall says as much of the client, the kernel and the neighbours as of the service; the
//! processor time of the server's own process is what a request takes from the machine. Contestants
//! take turns, and the figures are medians of rounds. `--bench http_allocations` counts allocations.

#[allow(dead_code)]
#[path = "../load/chance.rs"]
mod chance;
mod contest;
mod server;
#[path = "../support/mod.rs"]
mod support;
#[allow(dead_code)]
#[path = "../load/texts.rs"]
mod texts;
#[allow(dead_code)]
#[path = "../load/wire.rs"]
mod wire;

use contest::{Contest, METHODS, Row};

/// What runs of earlier commits printed. What to compare is the ratio of one pair to a bare server, between
/// rows of one machine. Whoever changes what every request passes through adds a row.
const BY_COMMIT: &str = include_str!("by_commit.tsv");

/// Rounds after the first, which warms up.
const ROUNDS: usize = 15;

fn main() -> anyhow::Result<()> {
    if std::env::args().any(|argument| argument == server::FLAG) {
        return server::run(|| (0, 0));
    }
    let mut contest = Contest::begin()?;
    let mut rounds: Vec<Vec<Row>> = Vec::new();
    for round in 0..=ROUNDS {
        let rows = contest.round()?;
        if round > 0 {
            rounds.push(rows);
        }
    }
    let names: Vec<String> = rounds[0].iter().map(|row| row.name.clone()).collect();
    let median = |name: &str| {
        let of_round = |rows: &Vec<Row>| rows.iter().find(|row| row.name == name).map(Row::micros);
        support::median(rounds.iter().filter_map(of_round).collect())
    };
    println!("{:>34} {:>12}", "", "CPU us each");
    for name in &names {
        println!("{name:>34} {:>12.1}", median(name));
    }
    let mut ratios = serde_json::Map::new();
    let mut ratio = |name: String, above: f64, below: f64, goal: f64| {
        println!("{name:>48} {:>6.2}  (goal: at most {goal})", above / below);
        ratios.insert(name, (above / below).into());
    };
    let (bare, null) = (median("bare"), median("null"));
    // The null route grows along with what all routes pass through, a bare server does not.
    ratio("null / bare".to_owned(), null, bare, 1.4);
    for method in METHODS {
        let [one, many] = [1, 100].map(|pairs| median(&contest::asked(method, pairs)));
        let computed = median(&contest::computed(method, 100));
        let name = method.name();
        ratio(format!("{name}: 1 pair / bare"), one, bare, 2.0);
        ratio(format!("{name}: 1 pair / null"), one, null, 1.6);
        ratio(format!("{name}: 100 pairs / (computed + null)"), many, computed + null, 1.25);
    }
    let one = METHODS.map(|method| median(&contest::asked(method, 1)));
    let cells = [bare, null, one[0], one[1]].map(|micros| format!("{micros:.1}")).join("\t");
    println!("\n{BY_COMMIT}this\t{cells}\t{:.2}", one[0] / bare);
    let micros: serde_json::Map<_, _> =
        names.iter().map(|name| (name.clone(), median(name).into())).collect();
    let figures = serde_json::json!({
        "cpu_us": micros, "ratios": ratios, "rounds": ROUNDS, "texts": contest.source(),
        "connections": contest::CONNECTIONS,
    });
    support::record("http", &figures);
    Ok(())
}
