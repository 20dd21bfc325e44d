//! `vcsim soak`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use vc_sim::soak::{SoakOptions, SoakSample, Verdict, csv, run, svg, table};

use super::{fail, print};

const EXAMPLES: &str = "\
Examples:
  vcsim soak --nodes 50 --hours 2 --pods 20000
  vcsim soak --output soak";

/// Play days of a cluster's life whose load stays the same, and check that nothing grows.
///
/// One scheduler process over a simulated API server without faults: jobs arrive, run, end and are
/// deleted, bursts do not fit at once, and urgent jobs evict others. Exits with 1 when memory, a table
/// or a latency has grown after the first tenth of the time.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SoakArgs {
    /// Nodes of 32 cpu each.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    nodes: u32,
    /// Simulated hours.
    #[arg(long, value_name = "H", default_value_t = 72.0, value_parser = hours)]
    hours: f64,
    /// Pods that arrive in this time. They run for as long as keeps the nodes 80 % full.
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pods: u64,
    /// Seed of the jobs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Samples at even distances, a multiple of ten.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = samples)]
    samples: u32,
    /// Growth of the memory after the first tenth from which on it is too much, in percent. A short soak
    /// needs more.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    memory_limit: f64,
    /// Write the samples to FILE.csv and the curves to FILE.svg.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn hours(text: &str) -> Result<f64, String> {
    let hours: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    let is_good = (0.01..=10_000.0).contains(&hours);
    if is_good { Ok(hours) } else { Err("must be from 0.01 to 10000".to_owned()) }
}

fn samples(text: &str) -> Result<u32, String> {
    let samples: u32 = text.parse().map_err(|_| "not a number".to_owned())?;
    let is_good = (10..=10_000).contains(&samples) && samples.is_multiple_of(10);
    if is_good { Ok(samples) } else { Err("must be a multiple of ten up to 10000".to_owned()) }
}

impl SoakArgs {
    pub(crate) fn execute(self) -> ExitCode {
        let Self { nodes, hours, pods, seed, samples, memory_limit, output } = self;
        let time = Duration::from_secs_f64(hours * 3_600.0);
        let options = SoakOptions { nodes, time, pods, seed, samples };
        let start = Instant::now();
        let samples = match run(&options, &mut progress) {
            Ok(samples) => samples,
            Err(error) => return fail(&error),
        };
        let seconds = start.elapsed().as_secs_f64();
        let verdict = Verdict::of(&samples, memory_limit);
        print(&table(&samples, &verdict));
        let n_lived = samples.last().map_or(0, |it| it.n_lived);
        let rate = n_lived as f64 / seconds;
        print(&format!("{n_lived} pods lived in {seconds:.0} s, {rate:.0} in a second\n"));
        if let Some(path) = output
            && let Err(error) = write(&path, nodes, &samples)
        {
            return fail(&error);
        }
        match verdict.is_clean() {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(1),
        }
    }
}

/// Says on standard error how far a soak is, which may take an hour.
fn progress(sample: &SoakSample) {
    let SoakSample { hour, n_lived, resident_kib, .. } = sample;
    eprintln!("hour {hour:.2}: {n_lived} pods have lived, {} MiB", resident_kib / 1_024);
}

fn write(path: &Path, nodes: u32, samples: &[SoakSample]) -> Result<(), String> {
    let (n_lived, hours) = samples.last().map_or((0, 0.0), |it| (it.n_lived, it.hour));
    let title = format!("{n_lived} pods on {nodes} nodes in {hours:.0} simulated hours");
    for (ending, text) in [("csv", csv(samples)), ("svg", svg(&title, samples))] {
        let mut file = path.as_os_str().to_owned();
        file.push(format!(".{ending}"));
        let file = PathBuf::from(file);
        std::fs::write(&file, text)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    Ok(())
}
