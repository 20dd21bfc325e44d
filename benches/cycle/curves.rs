//! How the cost of a case grows: CPU time with 1, 2, 4 and 8 times its nodes, pods, jobs or queues,
//! as one SVG file each and as a table. Twice as much may cost 2.2 times as much.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use vc_engine::Evaluator;

use crate::cases::Times;
use crate::run::start;

/// A case, and what of it grows.
struct Curves {
    case: &'static str,
    /// Fresh starts of each size: fewer where they take long.
    rounds: usize,
    growing: &'static [Growing],
}

/// What grows, and how many times the nodes and pods that makes.
type Growing = (&'static str, fn(u64) -> Times);

const NODES: Growing = ("nodes", |factor| Times { nodes: factor, ..Times::ONE });
const PODS: Growing = ("pods", |factor| Times { pending: factor, ..Times::ONE });

/// Small enough that eight times as much is measured in seconds.
const ALL: &[Curves] = &[
    Curves { case: "allocate/5k-10k", rounds: 15, growing: &[NODES, PODS] },
    Curves { case: "shapes/4k-500", rounds: 15, growing: &[NODES, PODS] },
    Curves {
        case: "unschedulable/5k-5k",
        rounds: 9,
        growing: &[("jobs", |factor| Times { pending: factor, ..Times::ONE })],
    },
    Curves {
        case: "preempt/5k-50k",
        rounds: 5,
        growing: &[
            ("nodes and victims", |factor| Times { nodes: factor, running: factor, ..Times::ONE }),
            ("pods of the gang", |factor| Times { pending: factor, ..Times::ONE }),
        ],
    },
    Curves {
        case: "topology/10k-small",
        rounds: 5,
        growing: &[
            ("nodes and HyperNodes", |factor| Times { nodes: factor, ..Times::ONE }),
            ("gangs", |factor| Times { pending: factor, ..Times::ONE }),
        ],
    },
    Curves {
        case: "topology/10k-flat",
        rounds: 5,
        growing: &[("HyperNodes of the same nodes", |factor| Times {
            hyper_nodes: factor,
            ..Times::ONE
        })],
    },
    Curves {
        case: "topology/8k-sub-groups",
        rounds: 5,
        growing: &[("sub-groups", |factor| Times { pending: factor, ..Times::ONE })],
    },
    Curves {
        case: "stress/1k-queues",
        rounds: 9,
        growing: &[("queues, with a gang each", |factor| Times { pending: factor, ..Times::ONE })],
    },
    Curves {
        case: "stress/job-of-50k",
        rounds: 5,
        growing: &[("pods of the job", |factor| Times { pending: factor, ..Times::ONE })],
    },
    Curves {
        case: "stress/grown-job",
        rounds: 9,
        growing: &[("the job", |factor| Times { pending: factor, running: factor, ..Times::ONE })],
    },
];

/// Of what grows, in order.
const COLORS: [&str; 2] = ["#1f77b4", "#d62728"];

const FACTORS: [u64; 4] = [1, 2, 4, 8];
/// Doubling may cost so much.
const LIMIT: f64 = 2.2;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 320.0;
const MARGIN: f64 = 50.0;
/// The largest cost that is drawn, as multiple of the smallest.
const TOP: f64 = 128.0;

/// # Errors
/// A case fails, a file cannot be written, or a step costs too much.
#[allow(clippy::print_stdout, reason = "a table for whoever runs it")]
pub(crate) fn draw_all(
    directory: &Path,
    prefix: &str,
    most_rounds: Option<usize>,
) -> anyhow::Result<()> {
    fs::create_dir_all(directory).context("cannot make the directory")?;
    println!("{:<20} {:<24} {:>10} {:>10} {:>10} {:>10}  worst step", "case", "grows", 1, 2, 4, 8);
    let mut too_steep = Vec::new();
    for &Curves { case, rounds, growing } in ALL.iter().filter(|it| it.case.starts_with(prefix)) {
        let rounds = most_rounds.map_or(rounds, |most| rounds.min(most.max(1)));
        let mut curves = Vec::new();
        for (&(what, times), color) in growing.iter().zip(COLORS) {
            let rounds = cpu_millis(case, rounds, times)?;
            let (millis, worst) = (medians(&rounds), worst_step(&rounds));
            let cells: String = millis.iter().map(|millis| format!(" {millis:>10.1}")).collect();
            let verdict = if LIMIT < worst { format!(", over {LIMIT}") } else { String::new() };
            println!("{case:<20} {what:<24}{cells}  {worst:.2} times{verdict}");
            if LIMIT < worst {
                too_steep.push(format!("{case} in {what}"));
            }
            curves.push((what, color, millis));
        }
        let file = directory.join(format!("{}.svg", case.replace('/', "-")));
        fs::write(&file, svg(case, &curves))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    let hint = "hint: measure again while nothing else runs";
    ensure!(too_steep.is_empty(), "twice as much over {LIMIT}: {}\n{hint}", too_steep.join(", "));
    Ok(())
}

/// CPU milliseconds of one start of each size, one after the other.
type Round = [f64; FACTORS.len()];

/// CPU time of the first cycle, in rounds in which every size has its turn.
fn cpu_millis(case: &str, n_rounds: usize, times: fn(u64) -> Times) -> anyhow::Result<Vec<Round>> {
    let mut rounds = vec![Round::default(); n_rounds];
    for round in &mut rounds {
        for (millis, &factor) in round.iter_mut().zip(&FACTORS) {
            let samples = start(case, Evaluator::Fast, times(factor), &[])?;
            let (_, first) = samples.first().with_context(|| format!("{case}: no sample"))?;
            *millis = first.cpu_nanos as f64 / 1e6;
        }
    }
    Ok(rounds)
}

/// By size. The fastest of several would flatter small sizes, which fit into the short times in which
/// nobody disturbs.
fn medians(rounds: &[Round]) -> Vec<f64> {
    let sizes = 0..FACTORS.len();
    sizes.map(|size| median(rounds.iter().map(|round| round[size]).collect())).collect()
}

/// The greatest factor from one size to the next. Each is the median of the factors of the rounds: a
/// host that becomes slower or faster from one round to the next does not change what stands side by
/// side in one.
fn worst_step(rounds: &[Round]) -> f64 {
    let steps = 1..FACTORS.len();
    let factors = steps
        .map(|step| median(rounds.iter().map(|round| round[step] / round[step - 1]).collect()));
    factors.fold(0.0, f64::max)
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Both axes are logarithmic: a straight line is a power, and the dashed one is the limit.
fn svg(case: &str, curves: &[(&str, &str, Vec<f64>)]) -> String {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"20\">{case}: CPU time by size, 1 is the smallest</text>\n"
    );
    for factor in FACTORS {
        let (x, y) = place(factor as f64, 1.0);
        text(&mut out, (x - 4.0, y + 18.0), "black", &format!("{factor} x"));
    }
    for cost in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0] {
        let ((left, y), (right, _)) = (place(1.0, cost), place(8.0, cost));
        line(&mut out, &[(left, y), (right, y)], "#dddddd", "none");
        text(&mut out, (left - 30.0, y + 4.0), "black", &format!("{cost}"));
    }
    let limit: Vec<(f64, f64)> = FACTORS
        .iter()
        .map(|&factor| place(factor as f64, LIMIT.powf((factor as f64).log2())))
        .collect();
    line(&mut out, &limit, "#888888", "4 4");
    for (index, (what, color, millis)) in curves.iter().enumerate() {
        let smallest = millis.first().copied().unwrap_or(1.0);
        let points = FACTORS.iter().zip(millis);
        let points: Vec<(f64, f64)> =
            points.map(|(&factor, millis)| place(factor as f64, millis / smallest)).collect();
        line(&mut out, &points, color, "none");
        let label = format!("{what}, from {smallest:.1} ms");
        text(&mut out, (MARGIN + 10.0, 45.0 + 16.0 * index as f64), color, &label);
    }
    out + "</svg>\n"
}

fn place(factor: f64, cost: f64) -> (f64, f64) {
    let along = factor.log2() / 3.0;
    let up = (cost.max(0.5).log2() / TOP.log2()).min(1.0);
    let (width, height) = (WIDTH - 2.0 * MARGIN, HEIGHT - 2.0 * MARGIN);
    (MARGIN + along * width, HEIGHT - MARGIN - up * height)
}

fn line(out: &mut String, points: &[(f64, f64)], color: &str, dashes: &str) {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let points = points.join(" ");
    let _ = writeln!(
        out,
        "<polyline points=\"{points}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\" \
         stroke-dasharray=\"{dashes}\"/>"
    );
}

fn text(out: &mut String, (x, y): (f64, f64), color: &str, text: &str) {
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{color}\">{text}</text>");
}
