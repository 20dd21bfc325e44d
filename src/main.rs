//! `vc-scheduler`: a batch scheduler for Kubernetes. Exit codes: core.md 1.1, 1.5, 1.6.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use vc_kube::{Clients, Observer};
use vc_scheduler::answers::AnswerHandle;
use vc_scheduler::command::RequestedCommand;
use vc_scheduler::environment::Environment;
use vc_scheduler::fatal::Fatal;
use vc_scheduler::flags::Flags;
use vc_scheduler::host::{self, MachineFiles, OwnHost};
use vc_scheduler::meter::Meter;
use vc_scheduler::run::{self, Process};
use vc_scheduler::{check, conf, log};

#[cfg(feature = "heap-profiles")]
#[global_allocator]
static ALLOCATOR: vc_scheduler::heap::Sampling = vc_scheduler::heap::Sampling;

#[cfg(not(feature = "heap-profiles"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let flags = match RequestedCommand::of(std::env::args_os().collect()) {
        Err(error) => error.exit(),
        Ok(RequestedCommand::Check(flags)) => {
            let out = &mut std::io::stdout().lock();
            return check::check(&flags.scheduler_conf, &flags.allow_missing, out);
        }
        Ok(RequestedCommand::Schedule(flags)) => *flags,
    };
    if flags.version {
        let printed = std::io::stdout().write_all(version().as_bytes());
        return if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if let Err(problem) = flags.check() {
        eprintln!("{problem}");
        return ExitCode::FAILURE;
    }
    #[cfg(feature = "heap-profiles")]
    if flags.profiles {
        vc_scheduler::heap::start();
    }
    let environment = Environment::of_process();
    let level = log::start(flags.verbosity, flags.log_format);
    flags.log();
    let names = flags.scheduler_names.clone();
    let meter = Arc::new(Meter::new(environment.fatal_assertions, names));
    match schedule(flags, environment, level, meter) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::from(error.code())
        }
    }
}

fn schedule(
    flags: Flags,
    environment: Environment,
    level: log::Level,
    meter: Arc<Meter>,
) -> Result<(), Fatal> {
    let good_conf = conf::before_start(&MachineFiles, &flags)?;
    let host = OwnHost { level, answers: AnswerHandle::default() };
    let process = &Process { flags, environment, meter, good_conf };
    let runtime = tokio::runtime::Runtime::new()?;
    let ended = runtime.block_on(async {
        let stop = host::signals()?;
        let observer: Arc<dyn Observer> = process.meter.clone();
        let clients = Clients::connect(&process.flags.access, &observer).await?;
        run::run(&host, process, clients, stop).await
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
