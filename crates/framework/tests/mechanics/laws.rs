//! The undo law: whatever is tried and rolled back, discarded, kept to the end or replayed
//! half-way, all amounts, counters, views and the integers of a plugin are what they were, bit for
//! bit. Specification: core.md 6, actions.md 2.4.

use proptest::collection::vec;
use proptest::prelude::*;
use vc_framework::{EvictReason, Mark, Plan, Room, Session, SessionState, Statement};
use vc_model::{Counts, JobId, Node, NodeId, Task, TaskId, TaskStatus, fixture};
use vc_resource::Resource;

use super::support::{counter, in_session_of};

const BED: &str = "node n1 cpu=4 memory=8
     node n2 cpu=2 gpu=2
     node n3 pods=2
     pod alone cpu=1 @n1 running
     job running min=2
       task a cpu=1 gpu=1 @n1 running role=x
       task b cpu=1 memory=3 @n1 bound
       task c @n2 running
       task d gpu=2 @n2 releasing
       task e cpu=1 @n3 unknown role=x
       task f cpu=1 @n3 succeeded
     job waiting min=3 role.x=1
       policy p keys=idx
       task a cpu=1 label.idx=0 role=x
       task b gpu=1 label.idx=0
       task c label.idx=1
       task d cpu=9 memory=9 x/y=1
       task e releasing
       task f cpu=1 gate=x";

/// One thing done with a statement. Numbers are taken modulo what there is.
#[derive(Clone, Copy, Debug)]
enum RandomOperation {
    Allocate(usize, usize),
    Pipeline(usize, usize, Room),
    Evict(usize),
    /// Back to the mark of this number.
    RollBack(usize),
    /// Rolls everything back and applies it again.
    Replay,
    /// The same after another placement, so that it may fail half-way.
    ReplayAfter(usize, usize),
    /// An attempt inside, thrown away.
    Inner(usize, usize, usize),
}

fn acts() -> impl Strategy<Value = RandomOperation> {
    let (task, node) = (0..14usize, 0..4usize);
    prop_oneof![
        4 => (task.clone(), node.clone()).prop_map(|(t, n)| RandomOperation::Allocate(t, n)),
        3 => (task.clone(), node.clone(), any::<bool>()).prop_map(|(t, n, evicted)| {
            RandomOperation::Pipeline(t, n, if evicted { Room::Evicted } else { Room::Releasing })
        }),
        4 => task.clone().prop_map(RandomOperation::Evict),
        1 => (0..20usize).prop_map(RandomOperation::RollBack),
        1 => Just(RandomOperation::Replay),
        1 => (task.clone(), node.clone()).prop_map(|(t, n)| RandomOperation::ReplayAfter(t, n)),
        1 => (task.clone(), node, task).prop_map(|(t, n, v)| RandomOperation::Inner(t, n, v)),
    ]
}

/// Everything that an operation changes.
#[derive(Clone, Debug, PartialEq)]
struct RandomState {
    nodes: Vec<Node>,
    jobs: Vec<(Vec<Counts>, [Resource; 4])>,
    tasks: Vec<(TaskStatus, Option<NodeId>, bool, bool)>,
    counter: (f64, f64),
}

impl RandomState {
    fn of(session: &SessionState<'_>) -> Self {
        let job = |id: JobId| {
            let job = &session.jobs[id];
            let subs = job.sub_jobs.iter().map(|sub| sub.counts.clone());
            let roles = job.roles.iter().map(|(_, counts)| counts.clone());
            let counts = std::iter::once(job.counts.clone()).chain(subs).chain(roles).collect();
            let total = job.total_request();
            let sums = [&job.allocated, &job.pending_request, &total, &job.gated];
            (counts, sums.map(Clone::clone))
        };
        let task = |task: &Task| (task.status, task.node, task.hidden, task.evicting);
        Self {
            nodes: session.nodes.iter().map(|(_, node)| node.clone()).collect(),
            jobs: session.jobs.ids().map(job).collect(),
            tasks: session.tasks.iter().map(|(_, row)| task(row)).collect(),
            counter: counter(session),
        }
    }
}

fn task(session: &SessionState<'_>, number: usize) -> TaskId {
    session.tasks.ids().nth(number % session.tasks.len()).expect("a task")
}

fn node(session: &SessionState<'_>, number: usize) -> NodeId {
    session.nodes.ids().nth(number % session.nodes.len()).expect("a node")
}

/// Refusals are part of the game: they must change nothing either.
fn act(
    statement: &mut Statement<'_, '_>,
    marks: &mut Vec<(Mark, RandomState)>,
    act: RandomOperation,
) {
    let before = RandomState::of(statement);
    let refused = match act {
        RandomOperation::Allocate(t, n) => {
            let (task, node) = (task(statement, t), node(statement, n));
            statement.allocate(task, node).is_err()
        }
        RandomOperation::Pipeline(t, n, room) => {
            let (task, node) = (task(statement, t), node(statement, n));
            statement.pipeline(task, node, room).is_err()
        }
        RandomOperation::Evict(t) => {
            let victim = task(statement, t);
            statement.evict(victim, EvictReason::Preempt, None).is_err()
        }
        RandomOperation::RollBack(n) => {
            let place = n % marks.len();
            statement.roll_back(marks[place].0);
            assert_eq!(RandomState::of(statement), marks[place].1);
            marks.truncate(place + 1);
            return;
        }
        RandomOperation::Replay => {
            let plan = take_back(statement, marks);
            assert_eq!(statement.replay(&plan), Ok(()));
            assert_eq!(RandomState::of(statement), before);
            assert_eq!(statement.plan(marks[0].0), plan);
            return;
        }
        RandomOperation::ReplayAfter(t, n) => {
            let plan = take_back(statement, marks);
            let (task, node) = (task(statement, t), node(statement, n));
            let _ = statement.allocate(task, node);
            let between = RandomState::of(statement);
            if statement.replay(&plan).is_err() {
                assert_eq!(RandomState::of(statement), between);
            }
            marks.truncate(1);
            return;
        }
        RandomOperation::Inner(t, n, v) => {
            let (task_id, node_id, victim) =
                (task(statement, t), node(statement, n), task(statement, v));
            let savepoint = statement.mark();
            let _ = statement.allocate(task_id, node_id);
            let _ = statement.evict(victim, EvictReason::Reclaim, Some(task_id));
            statement.roll_back(savepoint);
            true
        }
    };
    if refused {
        assert_eq!(RandomState::of(statement), before);
    }
    marks.push((statement.mark(), RandomState::of(statement)));
}

fn take_back(statement: &mut Statement<'_, '_>, marks: &[(Mark, RandomState)]) -> Plan {
    let plan = statement.plan(marks[0].0);
    statement.roll_back(marks[0].0);
    assert_eq!(RandomState::of(statement), marks[0].1);
    plan
}

fn run(session: &mut Session<'_>, sequence: &[RandomOperation]) {
    let mut statement = session.statement();
    let mut marks = vec![(statement.mark(), RandomState::of(&statement))];
    for &step in sequence {
        act(&mut statement, &mut marks, step);
        assert_eq!(statement.check(), Ok(()), "after {step:?}");
    }
    statement.keep();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_discarded_never_happened(
        kept in vec(acts(), 0..8),
        discarded in vec(acts(), 1..25),
    ) {
        let mut cluster = fixture::cluster(BED);
        let mut at_open = None;
        in_session_of(&mut cluster, "a counter=x", |session| {
            at_open = Some(RandomState::of(session));
            run(session, &kept);
            let before = RandomState::of(session);
            let mut statement = session.statement();
            let mut marks = vec![(statement.mark(), before.clone())];
            for &step in &discarded {
                act(&mut statement, &mut marks, step);
            }
            drop(statement);
            assert_eq!(RandomState::of(session), before);
        });
        // What was kept is undone when the session ends; the counter went with its session.
        in_session_of(&mut cluster, "a counter=x", |session| {
            assert_eq!(Some(RandomState::of(session)), at_open);
        });
    }

    #[test]
    fn committed_evictions_and_binds_leave_all_sums_right(
        sequence in vec(acts(), 1..25),
        later in vec(acts(), 0..10),
    ) {
        let mut cluster = fixture::cluster(BED);
        in_session_of(&mut cluster, "a counter=x", |session| {
            let mut statement = session.statement();
            let mut marks = vec![(statement.mark(), RandomState::of(&statement))];
            for &step in &sequence {
                act(&mut statement, &mut marks, step);
            }
            statement.commit();
            assert_eq!(session.check(), Ok(()));
            let before = RandomState::of(session);
            let mut statement = session.statement();
            let mut marks = vec![(statement.mark(), before.clone())];
            for &step in &later {
                act(&mut statement, &mut marks, step);
            }
            statement.discard();
            assert_eq!(RandomState::of(session), before);
        });
    }
}
