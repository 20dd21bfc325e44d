//! The scheduler as a process against an API server: binds per second beside a bare bind loop, time
//! from creation to bind, CPU and writes per pod, start and memory with a large cluster.
//! `cargo bench --bench wire -- [PREFIX] [--apiserver]`

#[path = "wire/answers.rs"]
mod answers;
#[path = "wire/cases.rs"]
mod cases;
#[path = "wire/compare.rs"]
mod compare;
#[path = "wire/embedded.rs"]
mod embedded;
#[path = "wire/large.rs"]
mod large;
#[path = "wire/local.rs"]
mod local;
#[path = "wire/real.rs"]
mod real;
#[path = "wire/scheduler.rs"]
mod scheduler;
#[path = "wire/server.rs"]
mod server;
#[path = "wire/soak.rs"]
mod soak;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::cases::{CASES, Case};
use crate::server::Kind;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures the scheduler's process against an API server.
#[derive(Parser)]
#[command(name = "wire")]
struct Arguments {
    /// Only the cases whose name starts with this
    #[arg(default_value = "")]
    prefix: String,
    /// In place of the table: the rows of the comparison with Volcano in docs/performance.md that this
    /// server fills
    #[arg(long)]
    compare: bool,
    /// Against the real kube-apiserver of tests/apiserver instead of the embedded server
    #[arg(long)]
    apiserver: bool,
    /// Another program than the one built with the bench
    #[arg(long, value_name = "PATH", default_value = env!("CARGO_BIN_EXE_vc-scheduler"))]
    scheduler: PathBuf,
    /// Where curves are drawn, one file per case that has them
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Requests of the generator and of the bare bind loop under way at once
    #[arg(long, value_name = "N", default_value_t = 64)]
    in_flight: usize,
    /// Only this part of the gangs of each case, for a quick look: 10 is a tenth of them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    part: u32,
    /// Seconds for which a cluster without changes is watched
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    quiet: u64,
    /// Minutes of the soak, which runs only when it is named
    #[arg(long, value_name = "MINUTES", default_value_t = 30)]
    soak: u64,
    /// Seconds for which a large cluster is served after its case, to be looked at
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    hold: u64,
    /// Given by cargo bench, absent under cargo test
    #[arg(long, hide = true)]
    bench: bool,
}

/// What the cases need to know.
struct Context {
    kind: Kind,
    scheduler: PathBuf,
    plots: Option<PathBuf>,
    in_flight: usize,
    part: u32,
    quiet: Duration,
    soak: Duration,
    hold: Duration,
}

/// One figure of a case.
struct Figure {
    name: &'static str,
    value: String,
    /// What it should be; empty for a figure that explains others.
    target: &'static str,
    /// Absent: there is no target.
    holds: Option<bool>,
}

#[allow(clippy::print_stdout, reason = "a table for the reader")]
fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if !arguments.bench {
        return Ok(());
    }
    let context = Context {
        kind: if arguments.apiserver { Kind::Real } else { Kind::Embedded },
        scheduler: arguments.scheduler,
        plots: arguments.plots,
        in_flight: arguments.in_flight,
        part: arguments.part,
        quiet: Duration::from_secs(arguments.quiet),
        soak: Duration::from_secs(60 * arguments.soak),
        hold: Duration::from_secs(arguments.hold),
    };
    let runtime = tokio::runtime::Runtime::new()?;
    if arguments.compare {
        return runtime.block_on(compare::print(&context, &arguments.prefix));
    }
    println!("| Case | Figure | Value | Target | Holds |\n|---|---|---|---|---|");
    let fits = |case: &&Case| {
        case.name.starts_with(&arguments.prefix)
            && (case.on_real || context.kind != Kind::Real)
            && (case.name != "soak" || arguments.prefix == "soak")
    };
    for case in CASES.iter().filter(fits) {
        for Figure { name, value, target, holds } in runtime.block_on(case.run(&context))? {
            let holds = holds.map_or("", |holds| if holds { "yes" } else { "**no**" });
            println!("| {} | {name} | {value} | {target} | {holds} |", case.name);
        }
    }
    Ok(())
}
