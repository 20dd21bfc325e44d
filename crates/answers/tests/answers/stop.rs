//! Questions that are stopped. Specification: answers.md 20, case 61.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use vc_answers::{
    Change, KnownBaselines, QuestionStopped, StopCondition, WhatIf, WhatIfState, what_if,
};
use vc_model::ObjectKey;

use crate::support::{Asked, conf};

/// A job that waits for a toleration or for the end of another one, and one before it.
const TEXT: &str = "node a cpu=4 taint=x:NoSchedule\nnode b cpu=4
    job run running\n task a cpu=4 @b running started=0 annotation.reservation.volcano.sh/runtime=2h
    job first priority=9\n task a cpu=4 annotation.reservation.volcano.sh/runtime=1h
    job j\n task a cpu=4";

/// Asks until an answer comes: each question is stopped where it reads the condition, the next one `step` reads later.
/// Asserts that at least five are stopped, and that the answer is the expected one.
fn assert_stops<T: PartialEq + Debug>(
    step: usize,
    expected: &T,
    mut ask: impl FnMut(StopCondition) -> T,
) {
    for n_stopped in 0.. {
        let n_read = AtomicUsize::new(0);
        let stops_at = step * n_stopped;
        let is_due = Arc::new(move || stops_at == n_read.fetch_add(1, Ordering::Relaxed));
        match catch_unwind(AssertUnwindSafe(|| ask(is_due))) {
            Ok(answer) => {
                assert_eq!(answer, *expected);
                assert!(4 < n_stopped, "{n_stopped}");
                return;
            }
            Err(cause) => assert!(cause.is::<QuestionStopped>(), "after {n_stopped}"),
        }
    }
}

/// A question is stopped wherever the signal is read, and is answered as ever by a new copy of the state.
#[test]
fn ans_61_a_stopped_question_has_no_answer_and_the_next_one_has_its_own() {
    let it = Asked::new(&conf("enqueue, allocate", "priority gang predicates nodeorder"), TEXT);
    assert_stops(3, &it.why_with_start("j"), |is_due| {
        let mut state = it.state();
        state.stop_if(is_due);
        it.why_with_start_in(&mut state, "j")
    });
}

/// The same for a what-if, which leaves nothing behind in what it shares with others.
#[test]
fn ans_61_a_stopped_what_if_has_no_answer_and_the_next_one_has_its_own() {
    let it = Asked::new(&conf("enqueue, allocate", "priority gang predicates nodeorder"), TEXT);
    let finish = Change::Finish(vec![ObjectKey::new("default", "run")]);
    let changes = vec![finish, Change::Advance(60_000_000)];
    let question = WhatIf { changes, ..WhatIf::default() };
    let known = KnownBaselines::default();
    assert_stops(1, &what_if(&it.engine, &it.ends, &question), |is_due| {
        let mut state = WhatIfState::new(&it.engine, &it.ends);
        state.share_baselines(known.clone());
        state.stop_if(is_due);
        state.ask(&question)
    });
}
