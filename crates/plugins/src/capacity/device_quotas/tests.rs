//! Tests of the ledger of device quotas.

use vc_model::{Cluster, Settings, fixture};

use super::demand::DeviceAmounts;
use super::ledger::DeviceLedger;

const MAX: i128 = i64::MAX as i128;

fn cluster() -> Cluster {
    let mut cluster = Cluster::new(Settings::default());
    fixture::apply(&mut cluster, "queue q cap.deviceclass/gpu=8 cap.memory.deviceclass/gpu=8");
    cluster
}

fn ledger(cluster: &Cluster) -> DeviceLedger {
    let queue = &cluster.queues[fixture::queue(cluster, "q")];
    DeviceLedger::of_queue(queue, &cluster.dims).expect("it has a quota")
}

#[test]
fn jobs_73_sums_do_not_overflow() {
    let cluster = cluster();
    let mut ledger = ledger(&cluster);
    let most = DeviceAmounts::of_class("gpu", MAX, Some(MAX));
    ledger.inqueue.add(&most, 1);
    let shortages = ledger.shortages(&most, true);
    let amounts: Vec<_> = shortages.iter().map(|it| it.amount()).collect();
    assert_eq!(amounts.len(), 2);
    assert!(amounts.iter().all(|it| (it.used, it.asked) == (i64::MAX, i64::MAX)));
    ledger.inqueue.add(&most, i128::MAX);
    assert_eq!(ledger.shortages(&most, true).len(), 2);
    ledger.clear();
    assert_eq!(ledger.shortages(&DeviceAmounts::of_class("gpu", 4, Some(8000)), true), []);
}

#[test]
fn a_claim_is_given_back_with_what_it_has_charged() {
    let cluster = cluster();
    let mut ledger = ledger(&cluster);
    let claim = vc_model::ObjectKey::new("default", "c");
    let fresh = ledger.clone();
    ledger.charge(&claim, &DeviceAmounts::of_class("gpu", 8, Some(8000)));
    // The claim has changed since: what it has charged stays.
    ledger.charge(&claim, &DeviceAmounts::of_class("gpu", 3, None));
    let one = DeviceAmounts::of_class("gpu", 1, None);
    ledger.release(&claim);
    assert_eq!(ledger.shortages(&one, false).len(), 1);
    ledger.release(&claim);
    assert_eq!(ledger, fresh);
    // A claim that was never charged gives nothing back.
    ledger.release(&claim);
    assert_eq!(ledger, fresh);
}
