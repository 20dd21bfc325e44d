//! Usage against exact sums and integrals. Specification: fair-share.md 17, 18.

use super::*;

const HOUR: i64 = 3_600_000_000;

/// FS-13: usage is the sum of charge times growth of the weight, however time is cut.
#[test]
fn fs_exact_any_cut() {
    let decay = Decay { half_life: 4 * HOUR, origin: 0 };
    let (start, end) = (decay.weight(HOUR), decay.weight(9 * HOUR));
    for n_cuts in [1, 10, 10_000] {
        let mut usage = Usage::default();
        for cut in 0..n_cuts {
            let time = |cut: i64| HOUR + 8 * HOUR * cut / n_cuts;
            usage.change(3, decay.weight(time(cut)));
            usage.change(-3, decay.weight(time(cut + 1)));
        }
        assert_eq!(usage, Usage { closed: 3 * (end - start), rate: 0 }, "{n_cuts} cuts");
    }
}

/// FS-14: over 40 half-lives the order of accounts stays that of exact usage, except for
/// differences below the last unit.
#[test]
fn fs_rebase() {
    let mut ledger = Ledger::new(HOUR, 0);
    let exact = Decay { half_life: HOUR, origin: 0 };
    let name = |at: i64| Arc::from(format!("a{at:04}"));
    // Account `at` uses one unit for a while in its hour.
    let ends = |at: i64| (at % 40 * HOUR, at % 40 * HOUR + 1_000_000 + at * 1_777);
    let mut accounts: Vec<i64> = (0..1_000).collect();
    accounts.sort_by_key(|&at| ends(at).0);
    for &at in &accounts {
        let (start, end) = ends(at);
        let place = ledger.place(&"q".into(), &name(at));
        ledger.account_mut(place).n_jobs = 1;
        ledger.advance(start);
        ledger.change(place, 1_000);
        ledger.now_weight = ledger.decay.weight(end);
        ledger.change(place, -1_000);
    }
    ledger.advance(41 * HOUR);
    let expected = |at: i64| 1_000 * (exact.weight(ends(at).1) - exact.weight(ends(at).0));
    let shift = 8 * (ledger.decay.origin / (8 * HOUR));
    assert!(0 < shift);
    for at in 0..1_000 {
        let place = ledger.place(&"q".into(), &name(at));
        let found = ledger.account_mut(place).usage.closed;
        let exact = expected(at) >> shift;
        assert!((found - exact).abs() <= 1, "{at}: {found} for {exact}");
    }
}

/// Numbers that look random (splitmix64).
fn next(state: &mut u64, below: i64) -> i64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 1;
    i64::try_from(mixed).unwrap() % below
}

/// FS-12: what a story of pods leaves as usage is the integral of what they held, faded: sums of
/// positive differences, so that floating point has 12 digits.
#[test]
fn fs_usage_is_the_integral() {
    let mut state = 7;
    for half_lives in [1, 5, 60] {
        for _ in 0..100 {
            let half_life = HOUR + next(&mut state, 9 * HOUR);
            let end = half_lives * half_life;
            let mut changes: Vec<(i64, i128)> = Vec::new();
            let mut integral = 0.0;
            let faded = |time: i64| ((time - end) as f64 / half_life as f64).exp2();
            for _ in 0..50 {
                let start = next(&mut state, end);
                let stop = start + next(&mut state, end - start);
                let charge = 1 + next(&mut state, 1 << 20);
                changes.extend([(start, i128::from(charge)), (stop, -i128::from(charge))]);
                integral += charge as f64 * (faded(stop) - faded(start));
            }
            changes.sort_unstable();
            let mut ledger = Ledger::new(half_life, 0);
            let place = ledger.place(&"q".into(), &"a".into());
            ledger.account_mut(place).n_jobs = 1;
            for (time, charge) in changes {
                ledger.advance(time);
                ledger.change(place, charge);
            }
            ledger.advance(end);
            let weight = ledger.now_weight;
            let usage = ledger.account_mut(place).usage.at(weight);
            let found = ledger.decay.decayed_micros(usage, end) as f64;
            let expected = integral * half_life as f64 / std::f64::consts::LN_2;
            assert!((found / expected - 1.0).abs() < 1e-7, "{found} for {expected}");
        }
    }
}
