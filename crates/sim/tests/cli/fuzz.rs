//! `vcsim fuzz`: fixed seeds hold, a seed gives the same story again, and what is refused.

use crate::common::*;

#[test]
fn stories_of_fixed_seeds_violate_nothing() {
    let Called { code, stdout: out, .. } = vcsim(&["fuzz", "--seeds", "1..8", "--minutes", "2"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.starts_with("8 stories from seed 1, 0 with a violation: "), "{out}");
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
    assert!(first.contains(" leads\n") && first.contains("/binding: 201\n"), "{first}");
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
