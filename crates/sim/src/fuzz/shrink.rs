//! A story that violates something, made as short as it goes: steps are left out, and kinds of faults,
//! as long as the same invariant is violated.

use super::fault::FaultKind;
use super::script::Script;
use super::story::{StoryEnd, StoryOptions, play};

/// Runs at most.
const RUNS: usize = 400;

/// Returns the shortest story found, with the script, the kinds of faults and the end of it.
///
/// # Errors
/// There is no runtime.
pub fn shrink(
    script: Script,
    options: StoryOptions,
    end: StoryEnd,
) -> std::io::Result<(Script, StoryOptions, StoryEnd)> {
    let mut shrinking = Shrinking { invariant: invariant(&end), n_runs: 0, script, options, end };
    for kind in FaultKind::ALL {
        shrinking.without_fault(kind)?;
    }
    let mut chunk = shrinking.script.steps.len().div_ceil(2);
    while 0 < chunk && shrinking.n_runs < RUNS {
        let mut at = 0;
        while at < shrinking.script.steps.len() && shrinking.n_runs < RUNS {
            if !shrinking.without_steps(at, chunk)? {
                at += chunk;
            }
        }
        chunk /= 2;
    }
    let Shrinking { script, options, end, .. } = shrinking;
    Ok((script, options, end))
}

/// The name of the invariant that was violated first, such as `I1`.
fn invariant(end: &StoryEnd) -> String {
    let first = end.violations.first().map_or("", String::as_str);
    first.split(':').next().unwrap_or_default().to_owned()
}

struct Shrinking {
    invariant: String,
    n_runs: usize,
    script: Script,
    options: StoryOptions,
    end: StoryEnd,
}

impl Shrinking {
    fn without_fault(&mut self, kind: FaultKind) -> std::io::Result<()> {
        let mut options = self.options.clone();
        if options.faults.remove(&kind) {
            self.accept(self.script.clone(), options)?;
        }
        Ok(())
    }

    /// True if the story is shorter now.
    fn without_steps(&mut self, at: usize, count: usize) -> std::io::Result<bool> {
        let mut script = self.script.clone();
        let end = script.steps.len().min(at + count);
        script.steps.drain(at..end);
        self.accept(script, self.options.clone())
    }

    /// Takes the story over if the same invariant is violated.
    fn accept(&mut self, script: Script, options: StoryOptions) -> std::io::Result<bool> {
        self.n_runs += 1;
        let end = play(&script, &options)?;
        let is_same = !end.violations.is_empty() && invariant(&end) == self.invariant;
        if is_same {
            (self.script, self.options, self.end) = (script, options, end);
        }
        Ok(is_same)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fuzz::outside_event::OutsideEvent;
    use crate::fuzz::script::Step;

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
        assert!(end.timeline.to_string().contains("- a node is filled beyond its room"));
    }
}
