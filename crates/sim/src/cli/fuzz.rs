//! `vcsim fuzz`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use rayon::prelude::*;
use vc_sim::fuzz::{FaultKind, Script, StoryEnd, StoryOptions, play, shrink};

use super::{fail, print};

const EXAMPLES: &str = "\
Examples:
  vcsim fuzz --seeds 1..100
  vcsim fuzz --seeds 7 --minutes 3 --fault crash,lost-answer --timeline";

/// Play an hour of a cluster's life in a fraction of a second, with faults, and check what must always
/// hold.
///
/// Two scheduler processes, an API server, kubelets, users and a network run on a clock of their own;
/// the same seed gives the same story. Exits with 1 when an invariant is violated; the story is then made
/// as short as it goes, and printed.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FuzzArgs {
    /// Seeds to play: one, or a range such as 1..100.
    #[arg(long, value_name = "A..B", default_value = "1..20")]
    seeds: Seeds,
    /// Minutes of a story in which things happen; then it comes to rest.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    minutes: u64,
    /// Kinds of faults, or none; absent: all.
    #[arg(long, value_name = "KIND,...", value_delimiter = ',')]
    fault: Vec<String>,
    /// Print what happened in each story.
    #[arg(long)]
    timeline: bool,
}

#[derive(Clone, Debug)]
struct Seeds(Range<u64>);

impl FromStr for Seeds {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.parse::<u64>().map_err(|_| format!("{text:?} is not a number; write 7 or 1..100"))
        };
        let range = match text.split_once("..") {
            Some((from, to)) => number(from)?..number(to)?.saturating_add(1),
            None => number(text)?..number(text)?.saturating_add(1),
        };
        match range.is_empty() {
            true => Err("the range is empty".to_owned()),
            false => Ok(Self(range)),
        }
    }
}

impl FuzzArgs {
    pub(crate) fn execute(self) -> ExitCode {
        let options = match self.options() {
            Ok(options) => options,
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::from(2);
            }
        };
        let start = Instant::now();
        let seeds: Vec<u64> = self.seeds.0.clone().collect();
        let played: Result<Vec<Played>, std::io::Error> =
            seeds.par_iter().map(|&seed| self.play(seed, &options)).collect();
        let played = match played {
            Ok(played) => played,
            Err(error) => return fail(&error),
        };
        if self.timeline {
            played.iter().for_each(|it| print(&it.text()));
        }
        let failed = played.iter().find(|it| !it.end.violations.is_empty());
        print(&summary(&played, start.elapsed().as_secs_f64()));
        match failed {
            None => ExitCode::SUCCESS,
            Some(failed) => self.explain(failed.seed, &options),
        }
    }

    fn options(&self) -> Result<StoryOptions, String> {
        let words = || self.fault.iter().map(|word| word.trim()).filter(|word| *word != "none");
        let faults: BTreeSet<FaultKind> = match self.fault.is_empty() {
            true => FaultKind::ALL.into_iter().collect(),
            false => words().map(str::parse).collect::<Result<_, _>>().map_err(text)?,
        };
        let config = vc_conf::parse("the default configuration", vc_conf::CHART, &vc_engine::KNOWN);
        let config = Arc::new(config.map_err(text)?.config);
        Ok(StoryOptions { faults, config })
    }

    fn play(&self, seed: u64, options: &StoryOptions) -> std::io::Result<Played> {
        let script = Script::of(seed, self.minutes, &options.faults);
        Ok(Played { seed, end: play(&script, options)? })
    }

    /// Prints the shortest story that violates the same.
    fn explain(&self, seed: u64, options: &StoryOptions) -> ExitCode {
        let script = Script::of(seed, self.minutes, &options.faults);
        let shortest = play(&script, options).and_then(|end| shrink(script, options.clone(), end));
        match shortest {
            Err(error) => fail(&error),
            Ok((script, options, end)) => {
                let faults: Vec<&str> = options.faults.iter().map(|kind| kind.word()).collect();
                print(&format!(
                    "\nseed {seed}: {}\nthe shortest story that was found has {} steps and the faults {}:\n\n{}",
                    end.violations.join("; "),
                    script.len(),
                    if faults.is_empty() { "none".to_owned() } else { faults.join(", ") },
                    end.timeline
                ));
                ExitCode::from(1)
            }
        }
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

struct Played {
    seed: u64,
    end: StoryEnd,
}

impl Played {
    fn text(&self) -> String {
        let digest = self.end.timeline.digest();
        format!("seed {}, digest {digest:016x}\n{}\n", self.seed, self.end.timeline)
    }
}

fn summary(played: &[Played], seconds: f64) -> String {
    let n_failed = played.iter().filter(|it| !it.end.violations.is_empty()).count();
    let sum = |of: fn(&StoryEnd) -> u64| played.iter().map(|it| of(&it.end)).sum::<u64>();
    let hours = played.iter().map(|it| it.end.lasted.as_secs_f64()).sum::<f64>() / 3_600.0;
    format!(
        "{} stories, {n_failed} with a violation: {hours:.1} hours, {} cycles, {} writes, in {seconds:.1} s\n",
        played.len(),
        sum(|end| end.n_cycles),
        sum(|end| end.n_writes),
    )
}
