//! `vcsim fuzz`: fixed seeds hold, a seed gives the same story again, and what is refused.

use crate::common::*;

#[test]
fn stories_of_fixed_seeds_violate_nothing() {
    let Called { code, stdout: out, .. } = vcsim(&["fuzz", "--seeds", "1..8", "--minutes", "2"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.starts_with("8 stories from seed 1, 0 with a violation: "), "{out}");
}

/// Seeds whose stories violated something once, with the default length, and what it was.
const KEPT: [(u64, &str); 18] = [
    (6, "I2: the room of a refused member of a broken gang went to others"),
    (7, "I9: a pod kept its place on a node that was gone"),
    (42, "I1: a bind of the leader before came late"),
    (52, "I6: a read for the nomination undid a bind"),
    (66, "I10: a status of a PodGroup that failed undid one that was stored"),
    (78, "I6: a read after a bind undid an eviction"),
    (162, "I5: usage that could not be read for a while was written over"),
    (540, "I6: a pod was decided again while it was read after a refused bind, and bound twice"),
    (640, "I6: two kinds told of one restore, and a list that was older than a bind came late"),
    (650, "I11: the same, with a second restore"),
    (775, "I11: an eviction that a restore had undone was taken for one that goes on"),
    (976, "I7: the simulation had the Lease stolen without a time of renewal"),
    (1520, "I6: the simulation showed newer objects in later pages of a list"),
    (1960, "I6: a list after a restore that began again forgot binds that were done since"),
    (2680, "I6: a read after a refused bind undid one that was decided since"),
    (3592, "I12: a kept place left the row of a node that was gone"),
    (4069, "I6: an older status of a PodGroup counted after a newer one was seen"),
    (13753, "I2: the pause of a refused member was over before the pod could be read again"),
];

#[test]
fn stories_that_violated_something_once_violate_nothing() {
    let seeds: Vec<String> = KEPT.iter().map(|(seed, _)| seed.to_string()).collect();
    let Called { code, stdout: out, .. } = vcsim(&["fuzz", "--seeds", &seeds.join(",")]);
    assert_eq!(code, 0, "{out}\nthese once violated: {KEPT:?}");
    assert!(out.starts_with("18 stories from seed 6, 0 with a violation: "), "{out}");
}

/// The same with stories of one minute.
const KEPT_MINUTES: [(u64, &str); 11] = [
    (366, "I5: the same as 162"),
    (5836, "I11: a condition that had paused replaced a newer one"),
    (6795, "I2: the simulation took a pod that was about to be evicted for one that stays"),
    (633065, "I6: no watch showed a restore, and pods were known that did not exist"),
    (655897, "I2: the simulation left a pod on a node that was gone before its bind came"),
    (660853, "I11: the simulation let a process live on that crashed while it ended"),
    (668881, "I10: the simulation took a clock that was set back for rest"),
    (669674, "I2: the simulation wanted a gang complete whose kept place was on a node that went"),
    (691249, "I2: the same, while nothing could be written to pods"),
    (699123, "I10: the same as 668881"),
    (910182, "I11: nobody made the default queue again that a restore took while nobody led"),
];

#[test]
fn stories_of_a_minute_that_violated_something_once_violate_nothing() {
    let seeds: Vec<String> = KEPT_MINUTES.iter().map(|(seed, _)| seed.to_string()).collect();
    let called = vcsim(&["fuzz", "--minutes", "1", "--seeds", &seeds.join(",")]);
    let Called { code, stdout: out, .. } = called;
    assert_eq!(code, 0, "{out}\nthese once violated: {KEPT_MINUTES:?}");
    assert!(out.starts_with("11 stories from seed 366, 0 with a violation: "), "{out}");
}

/// I8: byte by byte, whatever else runs beside it.
#[test]
fn i8_a_seed_gives_the_same_story_again() {
    let digest = || {
        let Called { code, stdout: out, .. } =
            vcsim(&["fuzz", "--seeds", "5", "--minutes", "2", "--timeline"]);
        assert_eq!(code, 0, "{out}");
        let lines: Vec<&str> = out.lines().collect();
        lines[..lines.len() - 1].join("\n")
    };
    let first = digest();
    assert!(first.starts_with("seed 5, digest "), "{first}");
    assert!(first.contains(" leads\n") && first.contains("/binding to n"), "{first}");
    assert_eq!(first, digest());
}

#[test]
fn unknown_faults_and_seeds_are_refused() {
    let Called { code, stderr: err, .. } = vcsim(&["fuzz", "--fault", "flood"]);
    assert_eq!(code, 2);
    assert!(err.starts_with("error: no kind of fault is called \"flood\"\nhint: one of "), "{err}");
    for (seeds, text) in [("x", "\"x\" is not a number"), ("9..1", "the range is empty")] {
        let Called { code, stderr: err, .. } = vcsim(&["fuzz", "--seeds", seeds]);
        assert_eq!(code, 2);
        assert!(err.contains(text), "{err}");
    }
}
