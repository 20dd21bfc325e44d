//! A cluster as text, one cycle of the engine, and questions about the state after it.

use proptest::prelude::ProptestConfig;
use vc_answers::{
    AnswerState, Change, Depth, ExpectedEnds, Explanation, Subject, SubjectKind, SubjectQuery,
    WhatIf, WhatIfResult, add_cycle_remedies, add_start, add_start_alone, explain, explain_waiting,
    find_subject, what_if,
};
use vc_conf::Config;
use vc_engine::{CycleTime, Effect, Engine, EngineOptions, Evaluator, KNOWN, Report};
use vc_model::ClusterEvent;
use vc_model::fixture::{START_MICROS, events_of};

/// Seconds between the creation of the objects and the cycle.
const WAITED_SECONDS: i64 = 5_400;

/// Plugins of the worked examples.
pub(crate) const EXAMPLE: &str = "gang priority predicates proportion nodeorder";

/// Returns a configuration with these actions and plugins. `|` ends a tier, `name{key=value}` has
/// an argument.
pub(crate) fn conf(actions: &str, tiers: &str) -> Config {
    let mut text = format!("actions: \"{actions}\"\ntiers:\n");
    for tier in tiers.split('|') {
        text.push_str("- plugins:\n");
        for entry in tier.split_whitespace() {
            let (name, argument) = entry.split_once('{').unwrap_or((entry, ""));
            text.push_str(&format!("  - name: {name}\n"));
            if let Some((key, value)) = argument.trim_end_matches('}').split_once('=') {
                text.push_str(&format!("    arguments:\n      {key}: {value}\n"));
            }
        }
    }
    vc_conf::parse("test.conf", &text, &KNOWN).unwrap().config
}

/// An engine after its last cycle.
pub(crate) struct Asked {
    pub(crate) engine: Engine,
    /// That of the last cycle.
    pub(crate) report: Report,
    /// What the last cycle wanted.
    pub(crate) effects: Vec<Effect>,
    n_cycles: i64,
    /// What tells when pods end.
    pub(crate) ends: ExpectedEnds,
}

impl Asked {
    /// Runs one cycle over the objects of the text.
    pub(crate) fn new(config: &Config, text: &str) -> Self {
        Self::evaluated(Evaluator::default(), config, text)
    }

    /// Runs one cycle over the objects of the text with this evaluator.
    pub(crate) fn evaluated(evaluator: Evaluator, config: &Config, text: &str) -> Self {
        let options = EngineOptions { evaluator, ..EngineOptions::default() };
        Self::with_options(options, config, text)
    }

    /// Runs one cycle over the objects of the text with these options.
    pub(crate) fn with_options(options: EngineOptions, config: &Config, text: &str) -> Self {
        let (mut engine, _warnings) = Engine::new(options, config);
        engine.explain(true);
        let mut asked = Self {
            engine,
            report: Report::default(),
            effects: Vec::new(),
            n_cycles: 0,
            ends: ExpectedEnds::default(),
        };
        asked.cycle(events_of(&format!("queue default\n{text}")));
        asked
    }

    /// Runs a further cycle.
    pub(crate) fn cycle(&mut self, events: Vec<ClusterEvent>) {
        let seconds = WAITED_SECONDS + self.n_cycles;
        self.cycle_at(events, START_MICROS + seconds * 1_000_000);
        self.n_cycles += 1;
    }

    /// Runs a cycle at a time in microseconds since 1970.
    pub(crate) fn cycle_at(&mut self, events: Vec<ClusterEvent>, unix_micros: i64) {
        (self.effects, self.report) = self.engine.cycle(events, CycleTime { unix_micros });
    }

    /// Applies events without a cycle.
    pub(crate) fn apply(&mut self, text: &str) {
        self.engine.apply(events_of(text));
    }

    pub(crate) fn state(&self) -> AnswerState {
        AnswerState::new(&self.engine, &self.report)
    }

    /// Explains the job or pod `namespace/name`, or `name` in the namespace default.
    pub(crate) fn why(&self, name: &str) -> Explanation {
        self.why_in(&mut self.state(), name)
    }

    /// Explains it in a state that may have been asked before.
    pub(crate) fn why_in(&self, state: &mut AnswerState, name: &str) -> Explanation {
        self.why_to(state, name, Depth::Full)
    }

    /// Returns the remedies, one text each: `you: tolerate x:NoSchedule: n1 n2`.
    pub(crate) fn remedies(&self, name: &str) -> Vec<String> {
        let remedy = |it: &vc_answers::Remedy| {
            format!("{}: {}: {}", it.who.as_str(), it.text, it.nodes.join(" "))
        };
        let texts = self.why(name).unblock.iter().map(remedy).collect::<Vec<String>>();
        texts.iter().map(|text| text.trim_end_matches([':', ' ']).to_owned()).collect()
    }

    /// Explains a job with the remedies that whole cycles verify, in a state that may have been asked before.
    pub(crate) fn full_in(&self, state: &mut AnswerState, name: &str) -> Explanation {
        let subject = self.subject(state, name);
        let mut explanation = explain(state, subject, Depth::Full);
        add_cycle_remedies(&self.engine, state, subject, &mut explanation);
        explanation
    }

    /// Explains a job with its start.
    pub(crate) fn why_with_start(&self, name: &str) -> Explanation {
        self.why_with_start_in(&mut self.state(), name)
    }

    /// Explains it with its start in a state that may have been asked before.
    pub(crate) fn why_with_start_in(&self, state: &mut AnswerState, name: &str) -> Explanation {
        let subject = self.subject(state, name);
        let mut explanation = explain(state, subject, Depth::Full);
        add_start(&self.engine, (state, &self.ends), subject, &mut explanation);
        explanation
    }

    /// Explains it with its start, with this many units of work for the trials.
    pub(crate) fn why_with_start_within(&self, name: &str, units: u64) -> Explanation {
        let mut state = self.state();
        let mut explanation = self.why_to(&mut state, name, Depth::Within(units));
        let subject = self.subject(&state, name);
        add_start(&self.engine, (&mut state, &self.ends), subject, &mut explanation);
        explanation
    }

    /// Explains it with its start, as whoever wants the start alone asks, in a state that may have been asked before.
    pub(crate) fn why_with_start_alone_in(
        &self,
        state: &mut AnswerState,
        name: &str,
    ) -> Explanation {
        let subject = self.subject(state, name);
        let mut explanation = explain(state, subject, Depth::Sets);
        add_start_alone(&self.engine, (state, &self.ends), subject, &mut explanation);
        without_sets(explanation)
    }

    /// Explains it to this depth in a state that may have been asked before.
    pub(crate) fn why_to(&self, state: &mut AnswerState, name: &str, depth: Depth) -> Explanation {
        let subject = self.subject(state, name);
        explain(state, subject, depth)
    }

    /// Explains it with this many units of work for the trials.
    pub(crate) fn why_within(&self, name: &str, units: u64) -> Explanation {
        self.why_to(&mut self.state(), name, Depth::Within(units))
    }

    fn subject(&self, state: &AnswerState, name: &str) -> Subject {
        let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
        let kind = SubjectKind::Any;
        let query = SubjectQuery { namespace, name, controller_uid: None, kind };
        find_subject(state.cluster(), query).unwrap()
    }

    /// Returns what differs with these changes.
    pub(crate) fn what_if(&self, changes: Vec<Change>) -> WhatIfResult {
        let question = WhatIf { changes, ..WhatIf::default() };
        what_if(&self.engine, &self.ends, &question).unwrap()
    }

    /// Returns the blocking sets, one text each: `taint/x:NoSchedule + room/cpu`.
    pub(crate) fn sets(&self, name: &str) -> Vec<String> {
        sets(&self.why(name))
    }

    pub(crate) fn all(&self) -> Vec<Explanation> {
        explain_waiting(&mut self.state()).to_vec()
    }

    /// Returns `Code: text`, and `also` codes behind it.
    pub(crate) fn verdict(&self, name: &str) -> String {
        text_of(&self.why(name))
    }
}

/// Leaves out blocking sets, remedies, and why nobody was evicted.
pub(crate) fn without_sets(it: Explanation) -> Explanation {
    Explanation { blocking: None, unblock: Vec::new(), evict: None, ..it }
}

/// Returns `Code: text`, and `also` codes behind it.
pub(crate) fn text_of(explanation: &Explanation) -> String {
    let verdict = &explanation.verdict;
    let also: Vec<&str> = verdict.also.iter().map(|code| code.as_str()).collect();
    let also = if also.is_empty() { String::new() } else { format!(" also {}", also.join(" ")) };
    format!("{}: {}{also}", verdict.code.as_str(), verdict.text)
}

/// Returns the groups of nodes, one text each: `6 lacks/nvidia.com/gpu c1 c2`.
pub(crate) fn groups(explanation: &Explanation) -> Vec<String> {
    let nodes = explanation.nodes.as_ref().unwrap();
    let group = |group: &vc_answers::RefusedNodes| {
        format!("{} {} {}", group.count, group.atoms.join("+"), group.names.join(" "))
    };
    nodes.groups.iter().map(group).collect()
}

/// Returns the blocking sets, one text each.
pub(crate) fn sets(explanation: &Explanation) -> Vec<String> {
    let set = |set: &vc_answers::BlockingSet| {
        let atoms: Vec<&str> = set.atoms.iter().map(|atom| atom.atom.as_str()).collect();
        atoms.join(" + ")
    };
    explanation.blocking.iter().flat_map(|found| found.sets.iter().map(set)).collect()
}

/// Returns the configuration of a property test with this many random cases, or as many as `FUZZ_ANSWERS` says.
pub(crate) fn random_cases(cases: u32) -> ProptestConfig {
    let asked = std::env::var("FUZZ_ANSWERS").ok().and_then(|number| number.parse().ok());
    let cases = asked.unwrap_or(cases);
    // Some clusters have too many atoms for all subsets.
    let max_global_rejects = cases.max(1_024);
    let default = ProptestConfig::default();
    ProptestConfig { failure_persistence: None, cases, max_global_rejects, ..default }
}
