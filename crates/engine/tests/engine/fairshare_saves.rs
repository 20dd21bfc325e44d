//! Usage that fairshare keeps over a restart, in cycles of both evaluators. Specification:
//! fair-share.md 11, whose cases the tests are named after.

use std::sync::Arc;

use vc_engine::{CycleTime, Effect};
use vc_model::{ClusterEvent, PodPhase, SavedAccount, SavedUsage};

use crate::fairshare::{bound, configuration, jobs, use_gpus, world};
use crate::support::*;

const SAVES: &str = "fairshare.persistState=true";
/// Only the first cycle saves, and the end of the process.
const SAVES_LATE: &str = "fairshare.persistState=true fairshare.flushIntervalSeconds=999999";
const NODE: &str = "node n gpu=200 cpu=999 pods=999";

/// What a cycle saves.
fn saved(cycle: &Cycle) -> Option<Arc<SavedUsage>> {
    cycle.effects.iter().find_map(saved_by)
}

fn saved_by(effect: &Effect) -> Option<Arc<SavedUsage>> {
    match effect {
        Effect::SaveUsage { config_map, usage } => {
            assert_eq!(config_map.to_string(), "volcano-system/fairshare-usage-state");
            Some(usage.clone())
        }
        _ => None,
    }
}

/// What is saved at the end of the process.
fn last_save(world: &mut World) -> Option<Arc<SavedUsage>> {
    let now = CycleTime { unix_micros: world.now_micros() };
    world.engine.last_writes(now).iter().find_map(saved_by)
}

/// A new process that has read this.
fn restart(world: &mut World, arguments: &str, usage: Option<Arc<SavedUsage>>) {
    world.restart(&configuration(arguments));
    world.send(ClusterEvent::UsageRead(usage));
}

fn amounts(usage: &SavedUsage, account: &str) -> (i128, i128) {
    let found = usage.accounts.iter().find(|it| &*it.account == account);
    found.map(|it| (it.closed, it.rate)).unwrap_or_default()
}

/// FS-80: the next process serves first who has used least before.
#[test]
fn fs_state_roundtrip() {
    for (arguments, first) in [(SAVES_LATE, "b/j00-t"), ("", "a/j00-t")] {
        let mut world = world(arguments, NODE);
        use_gpus(&mut world, &[("b", 100), ("a", 1_000)]);
        let usage = last_save(&mut world);
        assert_eq!(usage.is_some(), arguments == SAVES_LATE);
        world.tick(600);
        restart(&mut world, arguments, usage);
        world.add(&(jobs("a", 1) + &jobs("b", 1)));
        assert_eq!(bound(&world.cycle())[0], first, "{arguments}");
    }
}

/// A gang that is placed and given up in each cycle leaves usage as it was, so nothing is saved.
#[test]
fn fs_state_ignores_trials() {
    let mut world = world(SAVES, NODE);
    world.add("job a/j min=2\n  task t gpu=150 x2");
    assert!(saved(&world.cycle()).is_some(), "the first cycle saves");
    for seconds in [60, 60] {
        world.tick(seconds);
        // Something else changes, so that the gang is tried again.
        world.add("node other cpu=1 pods=1");
        assert_eq!(saved(&world.cycle()), None);
    }
}

/// FS-80: usage that Volcano has written, in charge times seconds.
#[test]
fn fs_state_from_volcano() {
    let account = |account: &str, seconds: i128| SavedAccount {
        queue: "default".into(),
        account: account.into(),
        decayed_micros: seconds * 1_000_000,
        ..SavedAccount::default()
    };
    let mut world = world(SAVES, NODE);
    let time_micros = world.now_micros();
    let accounts = vec![account("a", 80_000), account("b", 20_000)];
    let usage = SavedUsage { time_micros, accounts, ..SavedUsage::default() };
    restart(&mut world, SAVES, Some(Arc::new(usage)));
    world.add(&(jobs("a", 1) + &jobs("b", 1)));
    assert_eq!(bound(&world.cycle()), ["b/j00-t", "a/j00-t"]);
    // After a half-life Volcano finds half of it, and what the new pods have used.
    world.tick(4 * 3_600);
    let usage = last_save(&mut world).expect("it has changed");
    let new = 1_000.0 * 4.0 * 3_600.0 / std::f64::consts::LN_2 / 2.0;
    for (account, half) in usage.accounts.iter().zip([40_000.0, 10_000.0]) {
        let seconds = account.decayed_micros as f64 / 1e6;
        assert!((seconds / (half + new) - 1.0).abs() < 1e-6, "{account:?}");
    }
}

/// FS-81: what runs changes nothing that is saved.
#[test]
fn fs_state_steady() {
    let mut world = world(SAVES, NODE).alone();
    world.add(&jobs("a", 100));
    assert!(saved(&world.cycle()).is_some());
    world.kubelets();
    for _ in 0..60 {
        world.tick(60);
        assert_eq!(saved(&world.cycle()), None);
    }
    assert_eq!(last_save(&mut world), None);
}

/// FS-81: at most one write in the interval, and the last change is written after it.
#[test]
fn fs_state_rate() {
    for (arguments, interval) in [("", 30), (" fairshare.flushIntervalSeconds=7", 7)] {
        let mut world = world(&format!("{SAVES}{arguments}"), NODE);
        let mut times = Vec::new();
        for second in 0..100 {
            if second < 65 {
                world.add(&format!("job a/j{second:03}\n  task t gpu=1"));
            }
            times.extend(saved(&world.cycle()).map(|_| second));
            world.tick(1);
        }
        let expected: Vec<i32> = (0..=65 / interval + 1).map(|at| at * interval).collect();
        assert_eq!(times, expected[..times.len()]);
        assert!((64..64 + interval).contains(&times[times.len() - 1]), "{times:?}");
    }
}

/// FS-81: a save that failed is repeated after the interval.
#[test]
fn fs_state_not_saved() {
    let mut world = world(SAVES, NODE);
    world.add(&jobs("a", 1));
    assert!(saved(&world.cycle()).is_some());
    world.tick(1);
    world.send(ClusterEvent::UsageNotSaved);
    assert_eq!(saved(&world.cycle()), None);
    world.tick(28);
    assert_eq!(saved(&world.cycle()), None);
    world.tick(1);
    assert!(saved(&world.cycle()).is_some());
}

/// Example G: a pod that runs on is charged as if there had been no restart. A pod that ended
/// meanwhile is charged until the save.
#[test]
fn fs_restart_charges() {
    let run = |restarts: bool| {
        let mut world = world(SAVES, NODE);
        world.add(&(jobs("a", 1) + &jobs("b", 1)));
        world.cycle();
        world.kubelets();
        world.tick(3_600);
        world.add(&jobs("c", 1));
        let usage = saved(&world.cycle()).expect("a pod has begun");
        world.tick(10);
        world.edit("b/j00-t", |pod| pod.phase = PodPhase::Succeeded);
        if !restarts {
            world.cycle();
        }
        world.tick(40);
        if restarts {
            restart(&mut world, SAVES, Some(usage.clone()));
        }
        world.add("job d/j\n  task t gpu=1");
        (usage, saved(&world.cycle()).expect("d has begun"))
    };
    let ((_, without), (before, after)) = (run(false), run(true));
    assert_eq!(after.scale, without.scale);
    for account in ["a", "c"] {
        assert_eq!(amounts(&after, account), amounts(&without, account), "{account}");
    }
    let (at_save, at_end) = (amounts(&before, "b"), amounts(&without, "b"));
    let after = amounts(&after, "b");
    assert_eq!((at_save.1, at_end.1, after.1), (1_000, 0, 0));
    // It is charged until the save, in place of 10 s longer.
    let hour = after.0 as f64 / at_end.0 as f64;
    assert!((hour - 3_600.0 / 3_610.0).abs() < 1e-3, "{hour}");
}

/// FS-16, FS-2: usage that was charged for something else is not read, and not kept either.
#[test]
fn fs_state_other_charge() {
    let mut world = world(SAVES_LATE, NODE);
    use_gpus(&mut world, &[("a", 100), ("b", 200)]);
    let usage = last_save(&mut world).expect("it has changed");
    let other = format!("{SAVES_LATE} fairshare.resourceKey=cpu");
    restart(&mut world, &other, Some(usage));
    world.add("job a/j\n  task t gpu=1 cpu=1");
    let cycle = world.cycle();
    let [warning] = &cycle.report.warnings[..] else { panic!("{:?}", cycle.report.warnings) };
    let prefix = "plugin fairshare: usage of 20";
    assert!(warning.starts_with(prefix), "{warning}");
    let suffix = "Z was charged for nvidia.com/gpu, now for cpu: not read";
    assert!(warning.ends_with(suffix), "{warning}");
    let usage = saved(&cycle).expect("the old text is replaced");
    let names: Vec<&str> = usage.accounts.iter().map(|account| &*account.account).collect();
    assert_eq!(names, ["a"]);
}

/// FS-2: saving begins with the configuration that asks for it.
#[test]
fn fs_state_switched_on() {
    let mut world = world("", NODE);
    use_gpus(&mut world, &[("a", 100)]);
    assert_eq!(last_save(&mut world), None);
    world.configure(&configuration(SAVES));
    let usage = saved(&world.cycle()).expect("nothing was saved yet");
    assert_eq!(usage.accounts.len(), 1);
    world.configure(&configuration(&format!("{SAVES} fairshare.halfLifeMinutes=60")));
    assert_eq!(saved(&world.cycle()), None, "nothing has changed");
}

/// The clock of an earlier leader was ahead: its time counts as now.
#[test]
fn fs_state_of_the_future() {
    let mut world = world(SAVES_LATE, NODE);
    use_gpus(&mut world, &[("a", 100), ("b", 200)]);
    world.tick(86_400);
    let usage = last_save(&mut world).expect("it has changed");
    world.tick(-86_400);
    restart(&mut world, SAVES_LATE, Some(usage));
    world.add(&(jobs("b", 1) + &jobs("a", 1)));
    assert_eq!(bound(&world.cycle()), ["a/j00-t", "b/j00-t"]);
    world.tick(14_400);
    let usage = last_save(&mut world).expect("it has changed");
    assert_eq!(usage.time_micros, world.now_micros());
}

/// FS-15: a step back of the clock counts as no time, and time goes on from there.
#[test]
fn fs_15_a_step_back_counts_as_no_time() {
    let used = |steps: &[i64]| {
        let mut world = world(SAVES_LATE, NODE);
        world.add(&jobs("a", 1));
        world.cycle();
        for &step in steps {
            world.tick(step);
            world.add(&format!("job b/j{step}\n  task t cpu=1"));
            world.cycle();
        }
        world.edit("a/j00-t", |pod| pod.phase = PodPhase::Succeeded);
        world.cycle();
        let usage = last_save(&mut world).expect("a pod has ended");
        usage.accounts[0].decayed_micros
    };
    let seconds = [used(&[100, 50]), used(&[100, -90, 50])].map(|used| used / 1_000_000_000);
    assert_eq!(seconds, [149, 149]);
}

/// FS-82: usage that is read only after this process has begun counts as if it had been read before, and what runs is
/// charged from the time of the text.
#[test]
fn fs_state_read_late() {
    let run = |is_late: bool| {
        let mut world = world(SAVES_LATE, NODE);
        world.add(&(jobs("a", 2) + &jobs("b", 1)));
        world.cycle();
        world.kubelets();
        world.tick(600);
        world.add(&jobs("c", 1));
        world.cycle();
        let usage = last_save(&mut world).expect("it has changed");
        world.tick(10);
        match is_late {
            true => {
                world.restart(&configuration(SAVES_LATE));
                world.send(ClusterEvent::UsageUnread);
                assert_eq!((saved(&world.cycle()), last_save(&mut world)), (None, None));
            }
            false => restart(&mut world, SAVES_LATE, Some(usage.clone())),
        }
        world.tick(20);
        if is_late {
            world.send(ClusterEvent::UsageRead(Some(usage)));
        }
        world.add("job d/j\n  task t gpu=1");
        world.cycle();
        last_save(&mut world).expect("d has begun")
    };
    let (late, in_time) = (run(true), run(false));
    assert_eq!(late.scale, in_time.scale);
    assert_eq!(late.accounts, in_time.accounts);
    assert_eq!(late.accounts.len(), 4);
}

/// FS-82: what a new configuration reads does not replace the usage that is there.
#[test]
fn fs_state_of_another_config_map() {
    let mut world = world(SAVES, NODE);
    use_gpus(&mut world, &[("a", 100)]);
    world.send(ClusterEvent::UsageRead(Some(Arc::new(SavedUsage::default()))));
    world.configure(&configuration(&format!("{SAVES} fairshare.stateConfigMap=other")));
    world.cycle();
    let used = world.engine.account_use();
    assert!(used.iter().any(|account| 0.0 < account.used_hours), "{used:?}");
}
