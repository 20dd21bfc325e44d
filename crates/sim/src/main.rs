//! `vcsim`: the scheduler over files, scenarios and an embedded API server. Each subcommand has a
//! file of its own under `cli/`.

mod cli;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: vc_sim::CountingAllocator = vc_sim::CountingAllocator;

/// The scheduler without a cluster.
#[derive(Parser)]
#[command(name = "vcsim", version)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(cli::run::RunArgs),
    Why(cli::why::WhyArgs),
    WhatIf(cli::what_if::WhatIfArgs),
    Report(cli::report::ReportArgs),
    Replay(cli::replay::ReplayArgs),
    Test(cli::test::TestArgs),
    Serve(cli::serve::ServeArgs),
    Demo(vc_sim::demo::DemoArgs),
    Load(cli::load::LoadArgs),
    Fuzz(cli::fuzz::FuzzArgs),
    Soak(cli::soak::SoakArgs),
}

fn main() -> ExitCode {
    match CommandLine::parse().command {
        Command::Run(run) => run.execute(),
        Command::Why(why) => why.execute(),
        Command::WhatIf(what_if) => what_if.execute(),
        Command::Report(report) => report.execute(),
        Command::Replay(replay) => replay.execute(),
        Command::Test(test) => test.execute(),
        Command::Serve(serve) => serve.execute(),
        Command::Demo(demo) => demo.run(),
        Command::Load(load) => load.execute(),
        Command::Fuzz(fuzz) => fuzz.execute(),
        Command::Soak(soak) => soak.execute(),
    }
}
