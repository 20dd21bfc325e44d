//! `vc-scheduler`: a batch scheduler for Kubernetes. Exit codes: core.md 1.1, 1.5, 1.6.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use vc_kube::{Clients, Observer};
use vc_scheduler::environment::Environment;
use vc_scheduler::fatal::Fatal;
use vc_scheduler::flags::Flags;
use vc_scheduler::heap::{self, Sampling};
use vc_scheduler::meter::Meter;
use vc_scheduler::run::{self, Process};
use vc_scheduler::{check, conf, log};

#[global_allocator]
static ALLOCATOR: Sampling = Sampling;

fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    // A later `check` is a positional argument, and those are ignored.
    let is_check = args.get(1).is_some_and(|arg| arg == "check");
    if is_check {
        args.remove(1);
    }
    let flags = Flags::parse(args).unwrap_or_else(|error| error.exit());
    if is_check {
        return check::check(&flags.scheduler_conf, &mut std::io::stdout().lock());
    }
    if flags.version {
        let printed = std::io::stdout().write_all(version().as_bytes());
        return if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if let Err(problem) = flags.check() {
        eprintln!("{problem}");
        return ExitCode::FAILURE;
    }
    if flags.profiles {
        heap::start();
    }
    let environment = Environment::of_process();
    let level = log::start(flags.verbosity, flags.log_format);
    flags.log();
    let names = flags.scheduler_names.clone();
    let meter = Arc::new(Meter::new(environment.fatal_assertions, names));
    match schedule(&Process { flags, environment, level, meter }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::from(error.code())
        }
    }
}

fn schedule(process: &Process) -> Result<(), Fatal> {
    if process.flags.strict_conf {
        // A leader reads the file; whoever insists on a good one learns it before that.
        conf::start(&process.flags)?;
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let ended = runtime.block_on(async {
        let stop = run::signals()?;
        let observer: Arc<dyn Observer> = process.meter.clone();
        let clients = Clients::connect(&process.flags.access, &observer).await?;
        run::run(process, clients, stop).await
    });
    // A lost leader must not wait for anything that still runs.
    runtime.shutdown_background();
    ended
}

/// Four lines as Volcano's, then the toolchain and the target (core.md 1.8).
fn version() -> String {
    format!(
        "API Version: v1alpha1\nVersion: {}\nGit SHA: {}\nBuilt At: {}\n\
         Rust Version: {}\nOS/Arch: {}/{}\n",
        env!("CARGO_PKG_VERSION"),
        option_env!("VC_GIT_SHA").unwrap_or("unknown"),
        option_env!("VC_BUILT_AT").unwrap_or("unknown"),
        env!("VC_RUSTC"),
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
}
