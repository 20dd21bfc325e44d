//! Starts that were told, compared with the starts. Specification: answers.md 20, cases 41, 44.

use vc_answers::{PredictionOutcome, RunQuantile, StartAnswer, Timeline, TimelineStep};
use vc_engine::Effect;
use vc_model::fixture::{START_MICROS, events_of, task};
use vc_model::{ClusterEvent, ObjectKey};

use crate::support::{Asked, conf};

/// Starts that are predicted.
const N_STARTS: usize = 1_000;
/// Outcomes that are counted as the last ones.
const N_LAST: usize = 50;
const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;

/// Jobs of one template that run on the only node, one after the other. The next one always waits.
struct JobChain {
    it: Asked,
    timeline: Timeline,
    /// Number of the job that runs.
    number: usize,
    /// Seconds after `START_MICROS`.
    now: i64,
}

impl JobChain {
    fn new() -> Self {
        let it =
            Asked::new(&conf("allocate", "priority gang predicates nodeorder"), "node n1 cpu=4");
        let mut chain = Self { it, timeline: Timeline::default(), number: 0, now: 5_401 };
        chain.arrive();
        chain
    }

    fn now_micros(&self) -> i64 {
        START_MICROS + self.now * SECOND
    }

    fn name(number: usize) -> String {
        format!("j{number}")
    }

    /// Returns a job as text. `words` are those of its pod.
    fn text(number: usize, words: &str) -> String {
        format!("job {} owner=etl-{number}\n task a cpu=4 {words}\n", Self::name(number))
    }

    /// Lets the job run that has got the node, and the next one arrive. The one before is deleted.
    fn arrive(&mut self) {
        let (number, now) = (self.number, self.now);
        let running = Self::text(number, &format!("@n1 running started={now}"));
        let mut events = events_of(&(running + &Self::text(number + 1, "")));
        if let Some(before) = number.checked_sub(1) {
            let pod = format!("{}-a", Self::name(before));
            let uid = format!("default-{pod}").as_str().into();
            events.push(ClusterEvent::PodDeleted { key: ObjectKey::new("default", &pod), uid });
            let key = ObjectKey::new("default", &Self::name(before));
            events.push(ClusterEvent::PodGroupDeleted { key });
        }
        self.it.cycle_at(events, self.now_micros());
    }

    /// Returns when the next job starts, as the runs of earlier ones tell. Returns `None` if they are
    /// too few.
    fn told(&self) -> Option<StartAnswer> {
        let cluster = self.it.engine.cluster();
        let running = task(cluster, &format!("{}/a", Self::name(self.number)));
        let end = |quantile: RunQuantile| {
            let ends = self.timeline.ends().at(quantile);
            Some(ends.end_of(cluster, running, self.now_micros())?.at_micros)
        };
        let expected_micros = end(RunQuantile::Median);
        expected_micros.map(|_| StartAnswer {
            earliest_micros: end(RunQuantile::Short),
            expected_micros,
            latest_micros: end(RunQuantile::Long),
            ..StartAnswer::default()
        })
    }

    /// Compares a start with that of an answer.
    fn compare(&mut self, told: &StartAnswer) {
        self.it.ends = self.timeline.ends();
        let answer = self.it.why_with_start(&Self::name(self.number + 1)).start.unwrap();
        let times = |it: &StartAnswer| [it.earliest_micros, it.expected_micros, it.latest_micros];
        assert_eq!(times(&answer), times(told), "{answer:?}");
    }

    /// Ends the job that runs after so many seconds, so that the next one starts.
    fn end_after(&mut self, seconds: i64) {
        let started = self.now;
        self.now += seconds;
        let now_micros = self.now_micros();
        let words = format!("@n1 succeeded started={started}");
        let events = events_of(&Self::text(self.number, &words));
        self.timeline.learn(self.it.engine.cluster(), &events, now_micros);
        self.it.cycle_at(events, now_micros);
        self.number += 1;
        let binds = self.it.effects.iter().filter(|it| matches!(it, Effect::Bind { .. }));
        assert_eq!(binds.count(), 1);
        self.timeline.record(&TimelineStep {
            cluster: self.it.engine.cluster(),
            effects: &self.it.effects,
            report: Some(&self.it.report),
            cycle: self.it.engine.n_cycles(),
            now_micros,
            took_micros: 1,
            n_events: 1,
        });
    }
}

/// Returns the outcome of a prediction by own arithmetic.
fn outcome(told: &StartAnswer, asked: i64, start: i64) -> PredictionOutcome {
    let times = [told.earliest_micros, told.expected_micros, told.latest_micros];
    let [earliest, expected, latest] = times.map(Option::unwrap);
    PredictionOutcome {
        is_covered: earliest - MINUTE <= start && start <= latest + MINUTE,
        error_ratio: Some((start - expected) as f64 / (expected - asked) as f64),
    }
}

/// Tells starts of a job, in seconds after the time at which each is asked for, and starts it.
fn outcomes(told: &[(i64, i64)], start: i64) -> Vec<PredictionOutcome> {
    let (mut timeline, key) = (Timeline::default(), ObjectKey::new("default", "j"));
    for &(asked, at) in told {
        let at_micros = Some(at * SECOND);
        let answer = StartAnswer {
            earliest_micros: at_micros,
            expected_micros: at_micros,
            latest_micros: at_micros,
            ..StartAnswer::default()
        };
        timeline.told(&key, &answer, asked * SECOND);
    }
    let mut it =
        Asked::new(&conf("allocate", "priority gang predicates nodeorder"), "node n1 cpu=4");
    it.cycle_at(events_of("job j\n task a cpu=4"), start * SECOND);
    timeline.record(&TimelineStep {
        cluster: it.engine.cluster(),
        effects: &it.effects,
        report: Some(&it.report),
        cycle: it.engine.n_cycles(),
        now_micros: start * SECOND,
        took_micros: 1,
        n_events: 1,
    });
    timeline.take_outcomes()
}

#[test]
fn ans_41_the_first_one_and_the_last_one_in_time_are_compared() {
    let outcome = |is_covered: bool, error: i64, told_wait: i64| PredictionOutcome {
        is_covered,
        error_ratio: Some(error as f64 / told_wait as f64),
    };
    let first = outcome(false, 10_000, 9_000);
    // An hour before its start, it was told that it starts half a minute later.
    let told = [(1_000, 10_000), (5_000, 12_000), (16_300, 20_030), (16_700, 99_000)];
    assert_eq!(outcomes(&told, 20_000), [first, outcome(true, -30, 3_730)]);
    // The job waits for less than two hours, so a prediction counts until half of the wait is over.
    let told = [(1_000, 1_100), (1_400, 2_300), (2_000, 2_200)];
    assert_eq!(outcomes(&told, 2_200), [outcome(false, 1_100, 100), outcome(false, -100, 900)]);
    // The second one was told too late, and the third one too soon after it.
    let told = [(1_000, 2_200), (2_000, 9_000), (2_100, 2_200)];
    assert_eq!(outcomes(&told, 2_200), [outcome(true, 0, 1_200)]);
}

/// Returns a number that looks random (splitmix64).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33
}

/// Run times are drawn from one distribution: 10 to 110 minutes, each as likely as the others.
#[test]
fn ans_44_starts_that_held_are_those_within_a_minute_of_what_was_told() {
    let (mut chain, mut state, mut expected) = (JobChain::new(), 44, Vec::new());
    while expected.len() < N_STARTS {
        let (told, asked) = (chain.told(), chain.now_micros());
        if let Some(told) = &told {
            let job = ObjectKey::new("default", &JobChain::name(chain.number + 1));
            chain.timeline.told(&job, told, asked);
            if expected.len() % 100 == 0 {
                chain.compare(told);
            }
        }
        let seconds = 600 + i64::try_from(next(&mut state) % 6_000).unwrap();
        chain.end_after(seconds);
        expected.extend(told.map(|told| outcome(&told, asked, chain.now_micros())));
        chain.arrive();
    }
    assert_eq!(chain.timeline.take_outcomes(), expected);
    let n_held = |outcomes: &[PredictionOutcome]| {
        outcomes.iter().filter(|outcome| outcome.is_covered).count()
    };
    let last = n_held(&expected[N_STARTS - N_LAST..]);
    assert_eq!(chain.timeline.held(), Some((last, N_LAST)));
    let n_held = n_held(&expected);
    assert!((600..1_000).contains(&n_held), "{n_held} of {N_STARTS}");
}
