//! `vcsim fuzz`.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Instant, UNIX_EPOCH};

use clap::Args;
use rayon::prelude::*;
use vc_sim::fuzz::{FaultKind, Script, StoryEnd, StoryOptions, Strikes, play, shrink};

use super::{fail, print};

/// Stories that are played before anything is printed.
const GROUP: usize = 100;

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
    /// Seeds to play: one, a range such as 1..100, several of both such as 3,7..9, or forever: ever new
    /// ones until one fails.
    #[arg(long, value_name = "A..B", default_value = "1..20")]
    seeds: Seeds,
    /// Minutes of a story in which things happen; then it comes to rest.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    minutes: u64,
    /// Nodes at the begin; absent: 2 to 6, as the seed says.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    nodes: Option<u16>,
    /// Kinds of faults, or none; absent: all.
    #[arg(long, value_name = "KIND,...", value_delimiter = ',')]
    fault: Vec<String>,
    /// Print what happened in each story.
    #[arg(long)]
    timeline: bool,
    /// End at the first story that violates something, with one line about it that is not shortened.
    #[arg(long)]
    first: bool,
}

/// The seeds to play, in ranges.
#[derive(Clone, Debug)]
struct Seeds(Vec<RangeInclusive<u64>>);

impl FromStr for Seeds {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "forever" {
            let since = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
            return Ok(Self(vec![since..=u64::MAX]));
        }
        text.split(',').map(range).collect::<Result<_, _>>().map(Self)
    }
}

fn range(text: &str) -> Result<RangeInclusive<u64>, String> {
    let number = |text: &str| {
        text.parse::<u64>().map_err(|_| format!("{text:?} is not a number; write 7 or 1..100"))
    };
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let range = number(first)?..=number(last)?;
    match range.is_empty() {
        true => Err("the range is empty".to_owned()),
        false => Ok(range),
    }
}

impl Seeds {
    /// The seeds in groups, each of which is reported when it has been played.
    fn groups(&self, size: usize) -> impl Iterator<Item = Vec<u64>> {
        let mut seeds = self.0.iter().cloned().flatten();
        std::iter::from_fn(move || {
            let group: Vec<u64> = seeds.by_ref().take(size).collect();
            (!group.is_empty()).then_some(group)
        })
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
        if self.first {
            return self.search(&options).unwrap_or_else(|error| fail(&error));
        }
        for seeds in self.seeds.groups(GROUP) {
            let start = Instant::now();
            let played = match self.play_all(&seeds, &options) {
                Ok(played) => played,
                Err(error) => return fail(&error),
            };
            if self.timeline {
                played.iter().for_each(|it| print(&it.text()));
            }
            print(&summary(&played, start.elapsed().as_secs_f64()));
            if let Some(failed) = played.iter().find(|it| !it.end.violations.is_empty()) {
                return self.explain(failed.seed, &options);
            }
        }
        ExitCode::SUCCESS
    }

    fn options(&self) -> Result<StoryOptions, String> {
        let words = || self.fault.iter().map(|word| word.trim()).filter(|word| *word != "none");
        let faults: BTreeSet<FaultKind> = match self.fault.is_empty() {
            true => FaultKind::ALL.into_iter().collect(),
            false => words().map(str::parse).collect::<Result<_, _>>().map_err(text)?,
        };
        Ok(StoryOptions { faults })
    }

    fn play_all(&self, seeds: &[u64], options: &StoryOptions) -> std::io::Result<Vec<Played>> {
        seeds.par_iter().map(|&seed| self.play(seed, options)).collect()
    }

    /// Plays as many stories at once as there are threads, until one violates something.
    fn search(&self, options: &StoryOptions) -> std::io::Result<ExitCode> {
        let (mut n_cycles, mut n_stories) = (0, 0);
        for seeds in self.seeds.groups(rayon::current_num_threads()) {
            for played in self.play_all(&seeds, options)? {
                n_cycles += played.end.n_cycles;
                n_stories += 1;
                if let Some(violation) = played.end.violations.first() {
                    let seed = played.seed;
                    print(&format!("seed {seed}, {n_cycles} cycles: {violation}\n"));
                    return Ok(ExitCode::from(1));
                }
            }
        }
        print(&format!("{n_stories} stories, {n_cycles} cycles: nothing is violated\n"));
        Ok(ExitCode::SUCCESS)
    }

    fn script(&self, seed: u64, options: &StoryOptions) -> Script {
        let script = Script::of(seed, self.minutes, &options.faults);
        match self.nodes {
            Some(n_nodes) => script.with_nodes(seed, n_nodes.into()),
            None => script,
        }
    }

    fn play(&self, seed: u64, options: &StoryOptions) -> std::io::Result<Played> {
        let script = self.script(seed, options);
        Ok(Played { seed, end: play(&script, options)? })
    }

    /// Prints the shortest story that violates the same.
    fn explain(&self, seed: u64, options: &StoryOptions) -> ExitCode {
        let script = self.script(seed, options);
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
                if let Some(scenario) = end.scenario {
                    print(&format!("\nthe cluster then, for `vcsim test`:\n\n{scenario}"));
                }
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
    let first = played.first().map_or(0, |it| it.seed);
    let mut strikes = Strikes::default();
    played.iter().for_each(|it| strikes.merge(&it.end.strikes));
    format!(
        "{} stories from seed {first}, {n_failed} with a violation: {hours:.1} hours, {} cycles, {} writes, in {seconds:.1} s\n\
         faults that struck: {strikes}\n",
        played.len(),
        sum(|end| end.n_cycles),
        sum(|end| end.n_writes),
    )
}
