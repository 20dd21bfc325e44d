//! A story that violates something, made as short as it goes: kinds of faults, steps, nodes and
//! pods of jobs are left out, as long as the same invariant is violated.

use std::io;

use super::fault::FaultKind;
use super::outside_event::OutsideEvent;
use super::script::Script;
use super::story::{StoryEnd, StoryOptions, play};

/// Runs at most that leave out kinds of faults and steps.
const RUNS: usize = 400;
/// Runs at most that leave out nodes and pods of jobs afterwards.
const SIZE_RUNS: usize = 100;

/// Returns the shortest story found, with the script, the kinds of faults and the end of it.
///
/// # Errors
/// There is no runtime.
pub fn shrink(
    script: Script,
    options: StoryOptions,
    end: StoryEnd,
) -> io::Result<(Script, StoryOptions, StoryEnd)> {
    shrink_by(play, (script, options, end))
}

/// Shortens a story. `play` returns how a story ends.
fn shrink_by<P: Fn(&Script, &StoryOptions) -> io::Result<StoryEnd>>(
    play: P,
    (script, options, end): (Script, StoryOptions, StoryEnd),
) -> io::Result<(Script, StoryOptions, StoryEnd)> {
    let (invariant, runs_left) = (invariant(&end), RUNS);
    let mut shrinking = Shrinking { play, invariant, runs_left, script, options, end };
    for kind in FaultKind::ALL {
        shrinking.without_fault(kind)?;
    }
    shrinking.leave_out(|script| &mut script.steps)?;
    shrinking.runs_left = SIZE_RUNS;
    shrinking.leave_out(|script| &mut script.nodes)?;
    for at in 0..shrinking.script.steps.len() {
        while shrinking.with_smaller_job(at)? {}
    }
    let Shrinking { script, options, end, .. } = shrinking;
    Ok((script, options, end))
}

/// The name of the invariant that was violated first, such as `I1`.
fn invariant(end: &StoryEnd) -> String {
    let first = end.violations.first().map_or("", String::as_str);
    first.split(':').next().unwrap_or_default().to_owned()
}

/// Returns smaller sizes of a job of so many pods, of which so many are needed: the smallest one,
/// the one without pods that are not needed, and the one with a pod less.
fn smaller_sizes(pods: u64, min: u64) -> impl Iterator<Item = (u64, u64)> {
    let less = pods.saturating_sub(1);
    let sizes = [(1, 1), (min, min), (less, min.min(less))];
    sizes.into_iter().filter(move |&(fewer, _)| 0 < fewer && fewer < pods)
}

struct Shrinking<P> {
    play: P,
    invariant: String,
    runs_left: usize,
    script: Script,
    options: StoryOptions,
    end: StoryEnd,
}

impl<P: Fn(&Script, &StoryOptions) -> io::Result<StoryEnd>> Shrinking<P> {
    fn without_fault(&mut self, kind: FaultKind) -> io::Result<()> {
        let mut options = self.options.clone();
        if options.faults.remove(&kind) {
            self.accept(self.script.clone(), options)?;
        }
        Ok(())
    }

    /// Leaves out items of a part of the script: half of them at once, then ever fewer.
    fn leave_out<T>(&mut self, part: fn(&mut Script) -> &mut Vec<T>) -> io::Result<()> {
        let mut chunk = part(&mut self.script).len().div_ceil(2);
        while 0 < chunk {
            let mut at = 0;
            while at < part(&mut self.script).len() && 0 < self.runs_left {
                let mut script = self.script.clone();
                let items = part(&mut script);
                let end = items.len().min(at + chunk);
                items.drain(at..end);
                if !self.accept(script, self.options.clone())? {
                    at += chunk;
                }
            }
            chunk /= 2;
        }
        Ok(())
    }

    /// Makes the job of a step smaller. False: the step has none, or no smaller one violates the
    /// same.
    fn with_smaller_job(&mut self, at: usize) -> io::Result<bool> {
        let OutsideEvent::Job(job) = &self.script.steps[at].event else { return Ok(false) };
        for (pods, min) in smaller_sizes(job.pods, job.min) {
            let mut script = self.script.clone();
            if let OutsideEvent::Job(job) = &mut script.steps[at].event {
                (job.pods, job.min) = (pods, min);
            }
            if self.accept(script, self.options.clone())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes the story over if the same invariant is violated, and a run is left to see that.
    fn accept(&mut self, script: Script, options: StoryOptions) -> io::Result<bool> {
        if self.runs_left == 0 {
            return Ok(false);
        }
        self.runs_left -= 1;
        let end = (self.play)(&script, &options)?;
        let is_same = !end.violations.is_empty() && invariant(&end) == self.invariant;
        if is_same {
            (self.script, self.options, self.end) = (script, options, end);
        }
        Ok(is_same)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;
    use crate::fuzz::fault::Strikes;
    use crate::fuzz::script::{JobSpec, NodeSize, Step};
    use crate::fuzz::trace::Timeline;

    #[test]
    fn only_the_step_that_matters_is_left() {
        let faults = [FaultKind::Crash, FaultKind::LostAnswer].into_iter().collect();
        let options = StoryOptions { faults };
        let mut script = Script::of(3, 1, &options.faults);
        let at = Duration::from_secs(61);
        script.steps.push(Step { at, event: OutsideEvent::Overfill });
        let end = play(&script, &options).unwrap();
        assert!(end.violations[0].starts_with("I1: node n0 has "), "{:?}", end.violations);
        let (script, options, end) = shrink(script, options, end).unwrap();
        assert_eq!((script.len(), options.faults.len()), (1, 0), "{}", end.timeline);
        assert_eq!(script.nodes.len(), 1, "the node that is filled");
        assert!(end.timeline.to_string().contains("- a node is filled beyond its room"));
    }

    /// The end of a story that violates I1 if there are two nodes, a gang of three pods, and
    /// crashes.
    fn artificial_end(script: &Script, options: &StoryOptions) -> StoryEnd {
        let is_gang = |step: &Step| matches!(&step.event, OutsideEvent::Job(job) if 3 <= job.pods);
        let violates = 2 <= script.nodes.len()
            && script.steps.iter().any(is_gang)
            && options.faults.contains(&FaultKind::Crash);
        StoryEnd {
            violations: if violates { vec!["I1: artificial".to_owned()] } else { Vec::new() },
            scenario: None,
            timeline: Timeline::default(),
            lasted: Duration::ZERO,
            n_cycles: 0,
            n_writes: 0,
            strikes: Strikes::default(),
        }
    }

    #[test]
    fn nodes_and_pods_that_do_not_matter_are_left_out() {
        let options = StoryOptions { faults: FaultKind::ALL.into_iter().collect() };
        let mut script = Script::of(3, 10, &options.faults);
        script.nodes = vec![NodeSize { cpus: 4, pods: 10 }; 7];
        let job = JobSpec { pods: 7, min: 5, ..JobSpec::lone("large") };
        script.steps = vec![Step { at: Duration::ZERO, event: OutsideEvent::Job(job) }; 50];
        let n_runs = Cell::new(0);
        let shortest = || {
            n_runs.set(0);
            let play = |script: &Script, options: &StoryOptions| {
                n_runs.set(n_runs.get() + 1);
                Ok(artificial_end(script, options))
            };
            let end = artificial_end(&script, &options);
            shrink_by(play, (script.clone(), options.clone(), end)).unwrap()
        };
        let (found, options_left, end) = shortest();
        assert_eq!(end.violations, ["I1: artificial"]);
        assert_eq!(Vec::from_iter(options_left.faults), [FaultKind::Crash]);
        assert_eq!((found.steps.len(), found.nodes.len()), (1, 2));
        let OutsideEvent::Job(job) = &found.steps[0].event else { panic!("a job is left") };
        assert_eq!((job.pods, job.min), (3, 3));
        assert!(n_runs.get() <= RUNS + SIZE_RUNS, "{} runs", n_runs.get());
        let (again, ..) = shortest();
        assert_eq!(format!("{again:?}"), format!("{found:?}"));
    }

    #[test]
    fn sizes_of_jobs_only_fall() {
        let sizes = |pods, min| smaller_sizes(pods, min).collect::<Vec<_>>();
        assert!(sizes(1, 1).is_empty());
        assert_eq!(sizes(3, 3), [(1, 1), (2, 2)]);
        assert_eq!(sizes(7, 5), [(1, 1), (5, 5), (6, 5)]);
    }
}
