//! The plugin fairshare in cycles of both evaluators, which `World` compares. Specification:
//! fair-share.md, whose cases the tests are named after.

use vc_conf::Config;
use vc_engine::{Effect, Sample};
use vc_model::PodPhase;

use crate::support::*;

pub(crate) fn configuration(arguments: &str) -> Config {
    let plugins = format!("gang fairshare{{* {arguments}}} | predicates");
    conf("enqueue, allocate", &plugins)
}

pub(crate) fn world(arguments: &str, text: &str) -> World {
    World::new(&configuration(arguments), text)
}

/// The jobs of a namespace, one pod of one GPU each.
pub(crate) fn jobs(namespace: &str, count: usize) -> String {
    let job = |at| format!("job {namespace}/j{at:02}\n  task t gpu=1 cpu=0\n");
    (0..count).map(job).collect()
}

/// Number of binds by namespace.
fn binds(cycle: &Cycle, namespace: &str) -> usize {
    let prefix = format!("bind {namespace}/");
    cycle.lines.iter().filter(|line| line.starts_with(&prefix)).count()
}

/// The names of the bound pods, in order.
pub(crate) fn bound(cycle: &Cycle) -> Vec<&str> {
    let lines = cycle.lines.iter().filter_map(|line| line.strip_prefix("bind "));
    lines.filter_map(|rest| rest.split(' ').next()).collect()
}

/// The charge of a namespace that the cycle reports, if it has changed.
fn rate(cycle: &Cycle, namespace: &str) -> Option<f64> {
    let of = |sample: &Sample| match sample {
        Sample::FairshareUsage(usage) if &*usage.account == namespace => Some(usage.rate),
        _ => None,
    };
    cycle.report.samples.iter().rev().find_map(of)
}

/// The pods of these jobs run for a while and end: each namespace has used one GPU so long.
pub(crate) fn use_gpus(world: &mut World, seconds: &[(&str, i64)]) {
    for (namespace, _) in seconds {
        world.add(&format!("job {namespace}/past\n  task t gpu=1"));
    }
    world.cycle();
    let mut passed = 0;
    for &(namespace, until) in seconds {
        world.tick(until - passed);
        passed = until;
        world.edit(&format!("{namespace}/past-t"), |pod| pod.phase = PodPhase::Succeeded);
        world.cycle();
    }
}

fn burst(arguments: &str) -> (usize, usize) {
    let mut world = world(arguments, "node n gpu=16 cpu=64 pods=99");
    use_gpus(&mut world, &[("a", 100), ("b", 101)]);
    world.add(&(jobs("a", 16) + &jobs("b", 16)));
    let cycle = world.cycle();
    (binds(&cycle, "a"), binds(&cycle, "b"))
}

/// Example B: running pods are charged ahead, so that one cycle serves both in turn.
#[test]
fn fs_one_cycle_burst() {
    assert_eq!(burst(""), (8, 8));
}

/// Example B with Volcano's order, which stands still within a cycle.
#[test]
fn fs_one_cycle_volcano() {
    assert_eq!(burst("fairshare.entryHorizon=0s"), (16, 0));
}

/// FS-1: other queues are served by age.
#[test]
fn fs_1_only_target_queues_are_ordered() {
    for (targets, expected) in [("q,other", (8, 8)), ("other", (16, 0))] {
        let arguments = format!("fairshare.targetQueues={targets}");
        let text = "queue q\n queue other\n node n gpu=16 cpu=64 pods=99";
        let mut world = world(&arguments, text);
        let of_queue = |text: String| text.replace("\n  task", " queue=q\n  task");
        world.add(&of_queue(jobs("a", 16) + &jobs("b", 16)));
        let cycle = world.cycle();
        assert_eq!((binds(&cycle, "a"), binds(&cycle, "b")), expected, "{targets}");
    }
}

/// Example C: who has weight 2 may use twice as much.
#[test]
fn fs_weights() {
    let text = "config
- plugins: [{name: gang}, {name: fairshare, arguments: {fairshare.weights: {a: 2}}}]
- plugins: [{name: predicates}]";
    let config = text.strip_prefix("config\n").map(|tiers| {
        let text = format!("actions: allocate\ntiers:\n{tiers}\n");
        vc_conf::parse("test.conf", &text, &known()).expect("a configuration").config
    });
    let config = config.expect("the text begins so");
    let mut world = World::new(&config, "node n gpu=12 cpu=64 pods=99");
    world.add(&(jobs("a", 12) + &jobs("b", 12)));
    let cycle = world.cycle();
    assert_eq!((binds(&cycle, "a"), binds(&cycle, "b")), (8, 4));
}

/// FS-71: of two pods of a queue that a quota search may take, the one goes whose namespace has used
/// more. Without fairshare it is the one that was placed later.
#[test]
fn fs_cohort_inside() {
    let evicted = |fairshare: &str| {
        let tiers = format!("priority gang conformance | {fairshare} cohort predicates");
        let config = conf("enqueue, allocate, preempt", &tiers);
        let text = "node n cpu=99 pods=99
            queue q deserved.cpu=2 annotation.withinClusterQueue=LowerPriority";
        let mut world = World::new(&config, text);
        let add = |world: &mut World, name: &str, priority: i32| {
            world.add(&format!("job {name} queue=q priority={priority}\n  task t cpu=1"));
            let cycle = world.cycle();
            world.kubelets_and_controllers();
            world.tick(1_000);
            cycle
        };
        add(&mut world, "more/first", -1);
        add(&mut world, "less/second", -1);
        add(&mut world, "third/high", 1).only(&["evict"])
    };
    assert!(evicted("").starts_with("evict less/second-t"), "{}", evicted(""));
    let with = evicted("fairshare{* fairshare.resourceKey=cpu}");
    assert!(with.starts_with("evict more/first-t"), "{with}");
}

/// FS-52: two queues have more than they deserve; the one that has used more gives first. Without
/// fairshare the victim is in the other queue, whose name comes last.
#[test]
fn fs_capacity_victims() {
    let evicted = |fairshare: &str| {
        let tiers = format!("gang | {fairshare} capacity predicates");
        let config = conf("enqueue, allocate, reclaim", &tiers);
        let text = "node n cpu=4 pods=99
            queue a-more deserved.cpu=1
            queue b-less deserved.cpu=1
            queue new deserved.cpu=2";
        let mut world = World::new(&config, text);
        for (queue, seconds) in [("a-more", 2_000), ("b-less", 10)] {
            world.add(&format!("job {queue} queue={queue} min=0\n  task t cpu=1 x2"));
            world.cycle();
            world.kubelets_and_controllers();
            world.tick(seconds);
        }
        world.add("job new queue=new\n  task t cpu=1");
        world.cycle().only(&["evict"])
    };
    let with = evicted("fairshare{* fairshare.resourceKey=cpu fairshare.queueOrder=true}");
    assert!(with.starts_with("evict a-more-t"), "{with}");
    let without = evicted("");
    assert!(without.starts_with("evict b-less-t"), "{without}");
}

/// The largest weight of two ResourceQuotas counts, and a change is seen.
#[test]
fn fs_weight_from_quota() {
    let text = "node n gpu=12 cpu=64 pods=99
        quota a/one hard.volcano.sh/namespace.weight=1
        quota a/two hard.volcano.sh/namespace.weight=2";
    let mut world = world("", text);
    world.add(&(jobs("a", 12) + &jobs("b", 12)));
    let cycle = world.cycle();
    assert_eq!((binds(&cycle, "a"), binds(&cycle, "b")), (8, 4));
    world.add("node m gpu=12 cpu=64 pods=99\n quota a/two hard.volcano.sh/namespace.weight=1");
    let cycle = world.cycle();
    assert_eq!((binds(&cycle, "a"), binds(&cycle, "b")), (4, 8));
}

/// FS-22: jobs of users share a namespace; jobs without the text are one account.
#[test]
fn fs_account_of_a_text() {
    for text in ["label", "annotation"] {
        for users in [["ann", "bob"], ["", "bob"]] {
            accounts_of_a_text(text, users);
        }
    }
}

fn accounts_of_a_text(text: &str, users: [&str; 2]) {
    let jobs = |user: &str| -> String {
        let word = if user.is_empty() { String::new() } else { format!(" {text}.user={user}") };
        (0..12).map(|at| format!("job j{user}{at:02}{word}\n  task t gpu=1 cpu=0\n")).collect()
    };
    let mut world =
        world(&format!("fairshare.account={text}:user"), "node n gpu=12 cpu=64 pods=99");
    world.add(&(jobs(users[0]) + &jobs(users[1])));
    let cycle = world.cycle();
    let n_binds = |user: &str| {
        let is_of = |name: &&&str| match user {
            "" => !name.starts_with("jbob"),
            user => name.starts_with(&format!("j{user}")),
        };
        bound(&cycle).iter().filter(is_of).count()
    };
    assert_eq!(users.map(n_binds), [6, 6], "{text} {users:?}");
    let account = if users[0].is_empty() { "_unknown" } else { "ann" };
    assert_eq!(rate(&cycle, account), None);
    assert_eq!(rate(&world.cycle(), account), Some(6_000.0));
    // The next owner of a job is charged from now on.
    let job = if users[0].is_empty() { "j00" } else { "jann00" };
    world.edit_group(job, |group| {
        let texts = match text {
            "label" => &mut group.labels,
            _ => &mut group.annotations,
        };
        texts.insert("user".into(), "eve".into());
    });
    assert_eq!(rate(&world.cycle(), "eve"), Some(1_000.0));
}

/// The message of a pod names the accounts that come before it because they have used less.
#[test]
fn fs_accounts_ahead() {
    let plugins = "priority gang fairshare{* fairshare.entryHorizon=0s} | predicates";
    let config = conf("enqueue, allocate", plugins);
    let mut world = World::new(&config, "node n gpu=1 cpu=64 pods=99");
    let used = [("a", 100), ("b", 200), ("c", 300), ("d", 400), ("e", 500)];
    for (account, seconds) in used {
        use_gpus(&mut world, &[(account, seconds)]);
    }
    let mut text = jobs("a", 2);
    ["b", "c", "d", "e"].iter().for_each(|account| text.push_str(&jobs(account, 1)));
    // Pods with a gate wait for somebody else.
    text.push_str("job 0/gated\n  task t gpu=1 gate=example.com/later\n");
    // What has a higher priority is not behind, whoever has used less.
    text.push_str("job c/first priority=9\n  task t gpu=1\n");
    world.add(&text);
    let cycle = world.cycle();
    assert_eq!(bound(&cycle), ["c/first-t"]);
    let told = |pod: &str| {
        let messages = cycle.effects.iter().filter_map(|effect| match effect {
            Effect::PodCondition { pod, condition, .. } => {
                Some((pod.to_string(), &condition.message))
            }
            _ => None,
        });
        let mut of_pod = messages.filter(|(name, _)| name == pod);
        let (_, message) = of_pod.next().expect("the pod waits");
        let from = message.find("Behind")?;
        message[from..].split_once('.').map(|(sentence, _)| sentence.to_owned())
    };
    for (pod, accounts) in [
        ("a/j00-t", None),
        ("b/j00-t", Some("account a of queue default, which has")),
        ("c/j00-t", Some("accounts a and b of queue default, which have")),
        ("d/j00-t", Some("accounts a, b and c of queue default, which have")),
        ("e/j00-t", Some("accounts a, b, c and others of queue default, which have")),
    ] {
        let expected = accounts.map(|accounts| format!("Behind {accounts} used less"));
        assert_eq!(told(pod), expected, "{:?}", cycle.lines);
    }
}

/// Another account starts usage anew.
#[test]
fn fs_reload_other_account() {
    let mut world = world("", "node n gpu=4 cpu=64 pods=99");
    use_gpus(&mut world, &[("b", 100), ("a", 1_000)]);
    world.configure(&configuration("fairshare.account=label:user"));
    let warnings = world.cycle().report.warnings;
    let text = "plugin fairshare: what is charged has changed, so usage starts anew";
    assert_eq!(warnings, [text]);
}

/// FS-10: a pod is charged from its placement until it is evicted or ends.
#[test]
fn fs_releasing_not_charged() {
    let mut world = world("", "node n gpu=4 cpu=64 pods=99");
    world.add("job a/j min=1\n  task t gpu=1 x2");
    assert_eq!(binds(&world.cycle(), "a"), 2);
    assert_eq!(rate(&world.cycle(), "a"), Some(2_000.0));
    world.edit("a/j-t-0", |pod| pod.deleting = true);
    assert_eq!(rate(&world.cycle(), "a"), Some(1_000.0));
    world.edit("a/j-t-1", |pod| pod.phase = PodPhase::Failed);
    assert_eq!(rate(&world.cycle(), "a"), Some(0.0));
}

/// FS-10: a pod that waits for the room of a terminating one costs nothing yet.
#[test]
fn fs_pipelined_not_charged() {
    let text = "node n gpu=1 cpu=64 pods=99
        job a/old running
          task t gpu=1 @n running terminating
        job b/new
          task t gpu=1";
    let mut world = world("", &text.replace(" terminating", ""));
    world.edit("a/old-t", |pod| pod.deleting = true);
    let cycle = world.cycle();
    assert!(cycle.decisions().contains("pipeline"), "{}", cycle.all());
    assert_eq!(rate(&world.cycle(), "b"), None);
}

/// Example D: queues below x have used more than those below y.
fn first_queue(switches: &str) -> Vec<String> {
    let text = "queue root\n queue x parent=root\n queue y parent=root\n queue x1 parent=x
        queue x2 parent=x\n queue y1 parent=y\n node n gpu=30 cpu=64 pods=99";
    let arguments = format!("{switches} fairshare.queueOrder=true");
    let mut world = world(&arguments, text);
    world.add("job a/x1 queue=x1 min=10\n  task t gpu=1 x10");
    world.add("job a/y1 queue=y1 min=4\n  task t gpu=1 x4");
    world.cycle();
    world.tick(100);
    for queue in ["x1", "x2", "y1"] {
        world.add(&format!("job a/new-{queue} queue={queue}\n  task t gpu=1"));
    }
    let cycle = world.cycle();
    bound(&cycle).into_iter().map(str::to_owned).collect()
}

#[test]
fn fs_queue_tree() {
    assert_eq!(first_queue("hierarchy"), ["a/new-y1-t", "a/new-x2-t", "a/new-x1-t"]);
}

#[test]
fn fs_queue_flat() {
    assert_eq!(first_queue(""), ["a/new-x2-t", "a/new-y1-t", "a/new-x1-t"]);
}

/// FS-41, FS-43: a higher priority goes first whatever was used; a queue without weight is last.
#[test]
fn fs_queue_priority_first() {
    let text = "queue high priority=5\n queue low\n queue none weight=0
        node n gpu=30 cpu=64 pods=99";
    let mut world = world("fairshare.queueOrder=true", text);
    world.add("job a/old queue=high min=10\n  task t gpu=1 x10");
    world.cycle();
    world.tick(100);
    for queue in ["none", "low", "high"] {
        world.add(&format!("job a/{queue} queue={queue}\n  task t gpu=1"));
    }
    let cycle = world.cycle();
    assert_eq!(bound(&cycle), ["a/high-t", "a/low-t", "a/none-t"]);
}

/// FS-60: who holds its part of the queue is rejected, others are admitted.
#[test]
fn fs_gate() {
    let text = "node n gpu=8 cpu=64 pods=99
        job a/old running
          task t gpu=1 x4 @n running
        job a/new pending minres.gpu=1
        job a/free pending minres.cpu=1
        job b/new pending minres.gpu=6";
    let mut world = world("fairshare.enableEnqueueGate=true", text);
    let cycle = world.cycle();
    let text = cycle.all();
    let share =
        "Normal Unschedulable \"namespace a has its share of queue default (4 of 4 nvidia.com/gpu)";
    assert_eq!(text.matches(share).count(), 1, "{text}");
    let parts: Vec<(&str, f64)> = cycle
        .report
        .samples
        .iter()
        .filter_map(|sample| match sample {
            Sample::FairshareShare { account, share, .. } => Some((&**account, *share)),
            _ => None,
        })
        .collect();
    assert_eq!(parts, [("a", 4_000.0), ("b", 4_000.0)]);
}

/// FS-66: the first job of the queue changes when the running pod has used more than its
/// namespace was behind, and no cycle before it has anything to do.
#[test]
fn fs_clock_next_change() {
    let text = "node n gpu=1 cpu=64 pods=99\n queue default";
    let mut world = world("fairshare.entryHorizon=0s", text);
    use_gpus(&mut world, &[("a", 100)]);
    world.add("job b/long\n  task t gpu=1");
    assert_eq!(binds(&world.cycle(), "b"), 1);
    world.add(&(jobs("a", 1) + &jobs("b", 1)));
    world.cycle();
    // b has used less for about 100 s; both evaluators agree at each second.
    for _ in 0..40 {
        world.tick(5);
        assert_eq!(world.cycle().decisions(), "");
    }
    world.edit("b/long-t", |pod| pod.phase = PodPhase::Succeeded);
    assert_eq!(bound(&world.cycle()), ["a/j00-t"]);
}

/// Fading alone gives the plugin nothing to do: cycles without a change are skipped.
#[test]
fn fs_idle_quiet() {
    let mut world = world("", "node n gpu=4 cpu=64 pods=99").alone();
    world.add("job a/j\n  task t gpu=1");
    world.cycle();
    world.kubelets();
    (0..3).for_each(|_| drop(world.cycle()));
    world.engine.explain(false);
    world.cycle();
    let paths = |world: &World| format!("{:?}", world.engine.cache_stats());
    let before = paths(&world);
    for _ in 0..60 {
        world.tick(60);
        let cycle = world.cycle();
        assert_eq!((cycle.effects.len(), cycle.report.samples.len()), (0, 0));
    }
    assert_eq!(paths(&world), before);
}

/// FS-15: a clock that is set back changes no usage.
#[test]
fn fs_clock_back() {
    let mut world = world("", "node n gpu=2 cpu=64 pods=99");
    use_gpus(&mut world, &[("a", 100), ("b", 200)]);
    world.tick(-50);
    world.add(&(jobs("b", 1) + &jobs("a", 1)));
    assert_eq!(bound(&world.cycle()), ["a/j00-t", "b/j00-t"]);
}

/// FS-2: usage is kept through a reload with another half-life, and starts anew if something else
/// is charged.
#[test]
fn fs_reload_keeps() {
    for (arguments, first, warns) in [
        ("fairshare.halfLifeMinutes=10", "b/j00-t", false),
        ("fairshare.resourceKey=cpu", "a/j00-t", true),
    ] {
        let mut world = world("", "node n gpu=4 cpu=64 pods=99");
        use_gpus(&mut world, &[("b", 100), ("a", 1_000)]);
        world.configure(&configuration(arguments));
        world.add(&(jobs("a", 1) + &jobs("b", 1)));
        let cycle = world.cycle();
        assert_eq!(bound(&cycle)[0], first, "{arguments}");
        let text = "plugin fairshare: what is charged has changed, so usage starts anew";
        let is_reported = cycle.report.warnings.iter().any(|warning| warning == text);
        assert_eq!(is_reported, warns, "{arguments}");
    }
}

/// FS-84: a new process charges running pods from their start.
#[test]
fn fs_84_running_pods_are_charged_from_their_start() {
    let text = "node n gpu=8 cpu=64 pods=99
        job a/old running
          task t gpu=1 @n running
        job b/old running
          task t gpu=1 @n running";
    let mut world = world("", text);
    let now = world.now_micros();
    world.edit("a/old-t", |pod| pod.started_micros = Some(now - 100_000_000));
    world.edit("b/old-t", |pod| pod.started_micros = Some(now - 50_000_000));
    world.add(&(jobs("a", 1) + &jobs("b", 1)));
    assert_eq!(bound(&world.cycle()), ["b/j00-t", "a/j00-t"]);
}

/// An unknown queue is named once.
#[test]
fn fs_bad_target_queue() {
    let mut world = world("fairshare.targetQueues=gone", "node n gpu=8");
    let text = "plugin fairshare: fairshare.targetQueues: queue gone does not exist. Create the \
                queue, or remove its name";
    assert_eq!(world.cycle().report.warnings, [text]);
    assert_eq!(world.cycle().report.warnings, [""; 0]);
}
