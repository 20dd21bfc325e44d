//! The tiered intersection and the protective filters before it: core.md 5.5, actions.md 2.3,
//! plugins-jobs-queues.md D1, D2. A5: an empty
//! intersection leaves its tier undecided.

use vc_framework::GangEviction;

use super::support::{in_session, job, pods, task, tasks};

const VICTIMS: &str = "node n cpu=8
     job j
       task v1 cpu=1 @n running
       task v2 cpu=1 @n running
       task v3 cpu=1 @n running
     job p
       task x cpu=1";

/// Who may be preempted, of v1, v2, v3.
fn preemptable(tiers: &str) -> Vec<String> {
    in_session(VICTIMS, tiers, |session| {
        let candidates = tasks(session, &["j/v1", "j/v2", "j/v3"]);
        let preemptor = task(session, "p/x");
        let victims = session.plugins().preemptable(session.view(), preemptor, &candidates);
        pods(session, &victims)
    })
}

const NONE: [&str; 0] = [];

#[test]
fn tier__empty_then_lower() {
    assert_eq!(preemptable("a preemptable=- / b preemptable=j-v1,j-v2"), ["j-v1", "j-v2"]);
}

#[test]
fn tier__abstain() {
    assert_eq!(preemptable("a preemptable=abstain; b preemptable=j-v1"), ["j-v1"]);
    assert_eq!(preemptable("a reclaimable=j-v1"), NONE, "no plugin with the hook");
    assert_eq!(preemptable("a preemptable=abstain"), NONE);
}

#[test]
fn tier__empty_blocks_tier() {
    let tiers = "a preemptable=j-v1; b preemptable=- / c preemptable=j-v2";
    assert_eq!(preemptable(tiers), ["j-v2"]);
}

#[test]
fn tier__empty_intersection() {
    // A5: a tier whose intersection is empty decides nothing, and the next tier is asked.
    let tiers = "a preemptable=j-v1; b preemptable=j-v2; c preemptable=j-v1,j-v2";
    assert_eq!(preemptable(tiers), NONE);
    assert_eq!(preemptable(&format!("{tiers} / d preemptable=j-v3")), ["j-v3"]);
}

#[test]
fn core_68_tiered_intersection() {
    assert_eq!(preemptable("a preemptable=j-v1,j-v2; b preemptable=j-v2,j-v3"), ["j-v2"]);
    assert_eq!(preemptable("a preemptable=abstain; b preemptable=j-v1"), ["j-v1"]);
    let third = "a preemptable=-; b preemptable=j-v1 / c preemptable=j-v1";
    assert_eq!(preemptable(third), ["j-v1"]);
    assert_eq!(preemptable(""), NONE);
}

#[test]
fn victims_keep_the_order_of_the_first_answer_and_later_tiers_are_not_asked() {
    let tiers = "a preemptable=j-v3,j-v1; b preemptable=j-v1,j-v3 / c preemptable=j-v2";
    assert_eq!(preemptable(tiers), ["j-v1", "j-v3"], "the order of the candidates");
}

#[test]
fn a_switch_takes_a_plugin_out_of_its_tier() {
    let tiers = "a preemptable=j-v1 -enablePreemptable; b preemptable=j-v2";
    assert_eq!(preemptable(tiers), ["j-v2"]);
}

#[test]
fn filters_speak_before_the_tiers_and_do_not_vote() {
    // D1 (i): a filter that accepts nearly everything does not settle its tier.
    assert_eq!(preemptable("a protects=j-v3 / b preemptable=j-v1,j-v3"), ["j-v1"]);
    // D1 (ii): it is not bypassed when its tier ends with nothing.
    let tiers = "a preemptable=-; b protects=j-v1 / c preemptable=j-v1,j-v2";
    assert_eq!(preemptable(tiers), ["j-v2"]);
    assert_eq!(preemptable("a protects=j-v1 / b preemptable=j-v1"), NONE);
}

#[test]
fn what_filters_leave_is_the_result_when_nobody_votes() {
    assert_eq!(preemptable("a protects=j-v2"), ["j-v1", "j-v3"]);
    assert_eq!(preemptable("a protects=j-v2; b preemptable=abstain"), ["j-v1", "j-v3"]);
    assert_eq!(preemptable("a protects=j-v2; b preemptable=-"), NONE, "this is a vote");
    assert_eq!(preemptable("a protects=j-v2 -enablePreemptable"), NONE);
}

#[test]
fn reclaim_and_gang_eviction_have_votes_of_their_own() {
    let tiers = "a preemptable=j-v1; b reclaimable=j-v2; c unified_evictable=j-v3";
    in_session(VICTIMS, tiers, |session| {
        let candidates = tasks(session, &["j/v1", "j/v2", "j/v3"]);
        let (plugins, view) = (session.plugins(), session.view());
        let reclaimed = plugins.reclaimable(view, task(session, "p/x"), &candidates);
        assert_eq!(pods(session, &reclaimed), ["j-v2"]);
        let kind = GangEviction::Reclaim;
        let bundled = plugins.unified_evictable(view, job(session, "p"), kind, &candidates);
        assert_eq!(pods(session, &bundled), ["j-v3"]);
    });
}

#[test]
fn shares_are_protected_from_gang_eviction_across_tiers() {
    let bundled = |tiers: &str| {
        in_session(VICTIMS, tiers, |session| {
            let candidates = tasks(session, &["j/v1", "j/v2", "j/v3"]);
            let (plugins, view) = (session.plugins(), session.view());
            let kind = GangEviction::Reclaim;
            pods(session, &plugins.unified_evictable(view, job(session, "p"), kind, &candidates))
        })
    };
    let share = "share_filter=yes unified_evictable=j-v3,j-v1";
    // D3: an earlier tier that permits all does not settle it.
    assert_eq!(bundled(&format!("a unified_evictable=j-v1,j-v2 / f {share}")), ["j-v1"]);
    // It has no vote: a later tier decides what is left.
    assert_eq!(bundled(&format!("f {share} / a unified_evictable=j-v1,j-v2")), ["j-v1"]);
    assert_eq!(bundled(&format!("a unified_evictable=j-v2 / f {share}")), NONE);
    assert_eq!(bundled(&format!("f {share}")), ["j-v1", "j-v3"]);
    // Other questions are put to the vote.
    let tiers = "a preemptable=j-v1,j-v2 / f share_filter=yes preemptable=j-v1";
    assert_eq!(preemptable(tiers), ["j-v1", "j-v2"]);
}

fn victim_tasks(tiers: &str) -> Vec<String> {
    in_session(VICTIMS, tiers, |session| {
        let running = tasks(session, &["j/v1", "j/v2", "j/v3"]);
        let victims = session.plugins().victim_tasks(session.view(), &running);
        pods(session, &victims)
    })
}

#[test]
fn victim_tasks_are_united_in_the_first_tier_that_has_any() {
    let tiers =
        "a victim_tasks=- / b victim_tasks=j-v2; c victim_tasks=j-v2,j-v1 / d victim_tasks=j-v3";
    assert_eq!(victim_tasks(tiers), ["j-v2", "j-v1"]);
    // D2: a filter restricts what others select, and selects nothing itself.
    assert_eq!(victim_tasks("a victim_tasks=j-v1,j-v2; b protects=j-v1"), ["j-v2"]);
    assert_eq!(victim_tasks("b protects=j-v1"), NONE);
}
