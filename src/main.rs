//! `vc-scheduler`: a batch scheduler for Kubernetes. Exit codes: core.md 1.1, 1.5, 1.6.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use vc_kube::Clients;
use vc_scheduler::flags::Flags;
use vc_scheduler::{check, log, run};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
        return code(std::io::stdout().write_all(version().as_bytes()).map_err(Into::into));
    }
    if let Err(problem) = flags.check() {
        eprintln!("{problem}");
        return ExitCode::FAILURE;
    }
    log::start(flags.verbosity);
    flags.log();
    code(scheduler(&flags))
}

#[tokio::main]
async fn scheduler(flags: &Flags) -> anyhow::Result<()> {
    let config = run::configuration(flags)?;
    let clients = Clients::connect(&flags.access).await?;
    run::run(flags, &config, clients, run::signals()?).await
}

fn code(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    tracing::error!("{error}");
    match error.is::<run::BadConfiguration>() {
        true => ExitCode::from(255),
        false => ExitCode::FAILURE,
    }
}

/// Four lines as Volcano's, then the toolchain and the target (core.md 1.8).
fn version() -> String {
    format!(
        "API Version: v1alpha1\nVersion: {}\nGit SHA: {}\nBuilt At: {}\n\
         Rust Version: {}\nOS/Arch: {}/{}\n",
        env!("CARGO_PKG_VERSION"),
        option_env!("VC_GIT_SHA").unwrap_or("unknown"),
        option_env!("VC_BUILT_AT").unwrap_or("unknown"),
        env!("CARGO_PKG_RUST_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
}
