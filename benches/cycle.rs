//! Time, allocations and memory of one engine cycle over clusters of several sizes, without JSON
//! and without network. `cargo bench --bench cycle -- [PREFIX] [--evaluator both] [--json]`

#[path = "cycle/answers.rs"]
mod answers;
#[path = "cycle/cases.rs"]
mod cases;
#[path = "cycle/claims.rs"]
mod claims;
#[path = "cycle/cohorts.rs"]
mod cohorts;
#[path = "cycle/compare.rs"]
mod compare;
#[path = "cycle/curves.rs"]
mod curves;
#[path = "cycle/denied.rs"]
mod denied;
#[path = "cycle/evictions.rs"]
mod evictions;
#[path = "cycle/leftovers.rs"]
mod leftovers;
#[path = "cycle/load.rs"]
mod load;
#[path = "cycle/meter.rs"]
mod meter;
#[path = "cycle/objects.rs"]
mod objects;
#[path = "cycle/output.rs"]
mod output;
#[path = "cycle/plugins.rs"]
mod plugins;
#[path = "cycle/queues.rs"]
mod queues;
#[path = "cycle/run.rs"]
mod run;
#[path = "cycle/stress.rs"]
mod stress;
#[path = "cycle/tiers.rs"]
mod tiers;
#[path = "cycle/topology.rs"]
mod topology;
#[path = "cycle/wants.rs"]
mod wants;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Parser, ValueEnum};
use vc_engine::Evaluator;

use crate::cases::{CASES, Case, Times};
use crate::output::{Output, Row};

#[global_allocator]
static ALLOCATOR: meter::Counting = meter::Counting;

/// Measures cycles of the engine.
#[derive(Parser)]
#[command(name = "cycle")]
struct Arguments {
    /// Only the cases whose name starts with this
    #[arg(default_value = "")]
    prefix: String,
    /// How nodes are found for a task
    #[arg(long, value_enum, default_value_t = Evaluators::Both)]
    evaluator: Evaluators,
    /// Further plugins in the last tier, as in `sla,pdb`
    #[arg(long, value_delimiter = ',')]
    plugins: Vec<String>,
    /// One JSON object per line instead of a table
    #[arg(long)]
    json: bool,
    /// In place of that: the rows of the comparison with Volcano in docs/performance.md
    #[arg(long)]
    compare: bool,
    /// In place of that: how the cost grows with nodes and pods, as SVG files in this directory
    #[arg(long)]
    curves: Option<PathBuf>,
    /// With curves: at most so many fresh starts of each size, to see that they work
    #[arg(long)]
    rounds: Option<usize>,
    /// Given by cargo bench, absent under cargo test
    #[arg(long, hide = true)]
    bench: bool,
    /// One fresh start of this case; its samples go to standard output
    #[arg(long, hide = true)]
    sample: Option<String>,
    /// So many times the nodes of the case
    #[arg(long, hide = true, default_value_t = 1)]
    nodes_times: u64,
    /// So many times the pods of the case that wait
    #[arg(long, hide = true, default_value_t = 1)]
    pending_times: u64,
    /// So many times those that run
    #[arg(long, hide = true, default_value_t = 1)]
    running_times: u64,
    /// So many times the HyperNodes of the case, if it has a number of them
    #[arg(long, hide = true, default_value_t = 1)]
    hyper_nodes_times: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Evaluators {
    /// Every node for every task: what the other one is compared with
    Plain,
    /// Equivalence classes and remembered results
    Fast,
    /// One after the other
    Both,
}

impl Evaluators {
    fn each(self) -> &'static [Evaluator] {
        match self {
            Self::Plain => &[Evaluator::Plain],
            Self::Fast => &[Evaluator::Fast],
            Self::Both => &[Evaluator::Plain, Evaluator::Fast],
        }
    }
}

fn main() -> ExitCode {
    match measure(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    if let Some(name) = &arguments.sample {
        if answers::sample(name)? {
            return Ok(());
        }
        let case = cases::named(name).with_context(|| format!("unknown case: {name}"))?;
        let evaluators = arguments.evaluator.each();
        let times = Times {
            nodes: arguments.nodes_times,
            pending: arguments.pending_times,
            running: arguments.running_times,
            hyper_nodes: arguments.hyper_nodes_times,
        };
        return evaluators.iter().try_for_each(|&evaluator| {
            run::sample(&case.with(evaluator).times(times), evaluator, &arguments.plugins)
        });
    }
    if !arguments.bench {
        // `cargo test --benches`: there is nothing to check.
        eprintln!("nothing measured\nhint: run cargo bench --bench cycle");
        return Ok(());
    }
    if arguments.compare {
        return compare::print(&arguments.prefix);
    }
    if let Some(directory) = &arguments.curves {
        return curves::draw_all(directory, &arguments.prefix, arguments.rounds);
    }
    let is_wanted = |case: &&Case| case.name.starts_with(&arguments.prefix);
    let cases: Vec<&Case> = CASES.iter().filter(is_wanted).collect();
    if answers::print(&arguments.prefix)? {
        return Ok(());
    }
    if cases.is_empty() {
        let of_answers = answers::CASES.iter().map(|case| case.name);
        let names: Vec<&str> = CASES.iter().map(|case| case.name).chain(of_answers).collect();
        let (prefix, names) = (&arguments.prefix, names.join(", "));
        bail!("no case of this prefix: {prefix}\nhint: there are {names}");
    }
    let mut output = Output::new(arguments.json);
    for case in cases {
        for &evaluator in arguments.evaluator.each() {
            for (cycle, samples) in run::samples_by_cycle(case.name, evaluator, &arguments.plugins)?
            {
                output.print(&Row::medians((case.name, evaluator), cycle, &samples))?;
            }
        }
    }
    Ok(())
}
