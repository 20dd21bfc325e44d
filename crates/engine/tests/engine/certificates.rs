//! The proof that goes with every transaction that evicts (actions.md 2.4, A28, A38): who goes and
//! by which rule, for whom, where the room is used, and that nobody goes in vain.

use vc_engine::{Certificate, Relation, Unit};

use crate::support::*;

const PREEMPT: &str = "conformance gang{preemptable jobPipelined jobStarving} \
    priority{taskOrder jobOrder preemptable jobPipelined jobStarving} | \
    drf{preemptable} predicates";

fn certificates(config: &vc_conf::Config, text: &str) -> Vec<Certificate> {
    World::new(config, text).cycle().report.certificates
}

/// Victims of one member are spared where those of another make them needless.
fn whole(config: vc_conf::Config, action: &str) -> vc_conf::Config {
    with_arguments(config, action, "{trimStatement: true}")
}

fn one(config: &vc_conf::Config, text: &str) -> Certificate {
    let mut all = certificates(config, text);
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

const TWO_MEMBERS: &str = "node n1 cpu=5
    job low1 priority=1 min=0
      task a cpu=1 @n1 running
    job low2 priority=2 min=0
      task b cpu=4 @n1 running
    job high priority=100 min=2
      task x cpu=1 priority=9
      task y cpu=3 priority=1";

#[test]
fn a_certificate_names_victims_rules_and_placements() {
    let certificate = one(&whole(conf("preempt", PREEMPT), "preempt"), TWO_MEMBERS);
    assert_eq!(certificate.action.as_str(), "preempt");
    assert_eq!(certificate.pod_group, Some(key("high")));
    let [victim] = &certificate.victims[..] else { panic!("{certificate:#?}") };
    assert_eq!((&victim.pod, &victim.pod_group), (&key("low2-b"), &key("low2")));
    assert_eq!((&*victim.node, victim.relation), ("n1", Relation::SameQueue));
    let rule = victim.rule.as_ref().expect("it was asked for");
    assert_eq!(rule.to_string(), "tier 1: gang priority; not protected by conformance");
    let placed: Vec<String> = certificate.placements.iter().map(ToString::to_string).collect();
    assert_eq!(placed, ["default/high-x on n1", "default/high-y on n1"]);
    assert_eq!(certificate.minimal, Some(Unit::Pod));
}

#[test]
fn each_victim_is_needed_when_it_goes() {
    // x has a evicted; what y needs is larger and leaves room for x, too.
    let config = conf("preempt", PREEMPT);
    let certificate = one(&config, TWO_MEMBERS);
    let victims = certificate.victims.iter().map(|it| (it.pod.name.to_string(), it.before));
    assert_eq!(victims.collect::<Vec<_>>(), [("low1-a".into(), 0), ("low2-b".into(), 1)]);
    assert_eq!(certificate.minimal, Some(Unit::Pod));
    let off = with_arguments(config, "preempt", "{trimVictims: false, trimStatement: true}");
    let certificate = one(&off, TWO_MEMBERS);
    assert_eq!((certificate.victims.len(), certificate.minimal), (2, None));
}

#[test]
fn a_statement_can_be_minimal_as_a_whole() {
    let config = whole(conf("preempt", PREEMPT), "preempt");
    let decided = "evict low2-b preempt\npipeline high-x n1\npipeline high-y n1";
    assert_eq!(decide(&config, TWO_MEMBERS), decided);
}

/// Of each pair of members one has a pod evicted that the victim of the other makes needless.
#[test]
fn many_victims_are_spared_together() {
    let mut text = String::from("job high priority=100 min=240\n");
    for pair in 0..120 {
        text.push_str(&format!(
            "task x{pair} cpu=1 priority=9 example.com/r{pair}=1
             task y{pair} cpu=3 priority=1 example.com/r{pair}=1\n"
        ));
    }
    for pair in 0..120 {
        text.push_str(&format!(
            "node n{pair} cpu=5 example.com/r{pair}=2
             job a{pair} priority=1 min=0\n task a cpu=1 @n{pair} running
             job b{pair} priority=2 min=0\n task b cpu=4 @n{pair} running\n"
        ));
    }
    let certificate = one(&whole(conf("preempt", PREEMPT), "preempt"), &text);
    let spared = |victim: &vc_engine::CertifiedVictim| victim.pod.name.starts_with('b');
    assert!(certificate.victims.iter().all(spared), "{certificate:#?}");
    assert_eq!((certificate.victims.len(), certificate.minimal), (120, Some(Unit::Pod)));
}

/// Nodes have room, the queue has not: that all of many victims are needed is known without a trial
/// of each, for which the operations would not last.
#[test]
fn that_a_queue_needs_every_victim_is_seen_without_trials() {
    let n_pods = 300;
    let text = format!(
        "node n1 cpu=700 pods=1000\nqueue default cap.cpu={n_pods}
         job low priority=1 min=0\n task a cpu=1 x{n_pods} @n1 running
         job high priority=100 min={n_pods}\n task x cpu=1 x{n_pods}"
    );
    let tiers = format!("{PREEMPT} | proportion");
    let certificate = one(&whole(conf("preempt", &tiers), "preempt"), &text);
    assert_eq!((certificate.victims.len(), certificate.minimal), (n_pods, Some(Unit::Pod)));
}

#[test]
fn a_reclaim_can_be_minimal_as_a_whole() {
    let text = TWO_MEMBERS.replace("job high", "queue q2\njob high queue=q2");
    let tiers =
        "gang{reclaimable jobPipelined jobStarving} priority{taskOrder jobOrder} predicates";
    let certificate = one(&whole(conf("reclaim", tiers), "reclaim"), &text);
    assert_eq!(certificate.action.as_str(), "reclaim");
    let [victim] = &certificate.victims[..] else { panic!("{certificate:#?}") };
    assert_eq!((&victim.pod, victim.relation), (&key("low2-b"), Relation::OtherQueue));
}

#[test]
fn a_member_that_replaces_another_has_a_certificate_of_its_own() {
    let text = "node n1 cpu=2
        job j min=1
          task low cpu=1 x2 @n1 running priority=10
          task high cpu=1 priority=100";
    let tiers =
        "gang{preemptable jobPipelined} priority{taskOrder jobOrder preemptable jobStarving}";
    let certificate = one(&conf("preempt", tiers), text);
    assert_eq!(certificate.victims[0].relation, Relation::OwnJob);
    assert_eq!(certificate.pod_group, Some(key("j")));
}

#[test]
fn nobody_is_evicted_without_a_certificate() {
    let text = "node n1 cpu=1
        job high priority=100
          task p cpu=1";
    assert_eq!(certificates(&conf("preempt, allocate", PREEMPT), text), []);
}

#[test]
fn a_certificate_is_one_line_of_the_log() {
    let mut world = World::new(&conf("preempt", PREEMPT), TWO_MEMBERS);
    let lines = log_of(|| {
        world.cycle();
    });
    let reported = lines.iter().filter(|line| line.ends_with("pods are evicted"));
    assert_eq!(reported.count(), 1, "{lines:#?}");
}
