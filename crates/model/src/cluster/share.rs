//! Copies of a cluster share the members that can be large. Specification: answers.md 10 (ANS-64).

use crate::cluster::Cluster;
use crate::copy_on_write::{CopyOnWriteMember, copy_on_write_members};

// Large members are shared. Indexes, logs and what is copied as a whole come before tables. Small
// members are copied:
// - settings, revisions, counters and the objects that came last have a fixed size;
// - dimensions, PriorityClasses, names of other schedulers and unused queues are few;
// - saved usage is behind one pointer;
// - the order of the nodes is one list of numbers, which takes microseconds for 10,000 nodes.
copy_on_write_members! { Cluster:
    shared domains, node_changes, object_changes, job_changes, node_by_name, job_by_key, job_order,
        queue_by_name, task_by_uid, task_by_key, cooling, ungrouped, numa_topologies,
        device_reports, namespaces, selectors, shards, volumes, devices, budgets, quotas, images,
        hyper_nodes, nodes, jobs, queues, classes, tasks;
    copied settings, node_set_revision, version, queue_version, status_version, last_job,
        last_condition, last_shape, last_minimum, last_labels, last_annotations, last_taints,
        dims, total, priority_classes, other_schedulers, unused_queues, saved_usages, node_order;
}

impl Cluster {
    /// Lets copies made from now on share all large members, until either side writes to them. A
    /// copy then costs little. The first write to a part of a table copies this part, and the first
    /// write to another member copies this member.
    pub fn share(&mut self) {
        CopyOnWriteMember::share(self);
    }

    /// Takes large members of its own: what another cluster has, too, is copied. The other one then
    /// writes without copying, as nobody else has its rows any more. Members that are copied as a
    /// whole come first: the other one copies them whole if it writes to them before.
    pub fn unshare(&mut self) {
        CopyOnWriteMember::unshare(self);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::event::ClusterEvent;
    use crate::fixture;
    use crate::record::NodeRecord;

    const OBJECTS: &str = "node n1 cpu=8 zone=a\n queue q weight=2
        job j queue=q\n task a cpu=1 pvc=c label.app=x\n pod alone cpu=1
        class s provisioner=d delayed\n pv v 2Gi class=s\n pvc c 1Gi class=s\n csinode n1 d=2
        capacity k 5Gi class=s at.zone=a\n attachment t d node=n1 volume=v
        claim device class=gpu.com count=1\n numa n1 policy=restricted cpus=8 nodes=2
        budget b app=x allowed=1 healthy=1\n quota r hard.cpu=20\n hypernode rack tier=1 node=n1";

    /// Returns a node with an image.
    fn node_with(image: &str) -> ClusterEvent {
        let images = vec![(image.into(), 7)];
        let node = NodeRecord { name: "n2".into(), images, ..NodeRecord::default() };
        ClusterEvent::NodeApplied(Box::new(node))
    }

    fn cluster() -> Cluster {
        let mut cluster = fixture::cluster(OBJECTS);
        cluster.apply(node_with("a:1"));
        cluster
    }

    /// Returns the members of objects that are not in tables, with the addresses of their values.
    fn members(cluster: &mut Cluster) -> [(&'static str, Vec<usize>); 5] {
        [
            ("volumes", cluster.volumes.addresses()),
            ("devices", cluster.devices.addresses()),
            ("budgets", cluster.budgets.addresses()),
            ("quotas", cluster.quotas.addresses()),
            ("images", cluster.images.addresses()),
        ]
    }

    /// Returns the names of the members in which two clusters differ, and the number of values that
    /// they do not share.
    fn unshared(one: &mut Cluster, other: &mut Cluster) -> Vec<(&'static str, usize)> {
        let pairs = members(one).into_iter().zip(members(other));
        let differing = pairs.map(|((name, one), (_, other))| {
            (name, one.iter().zip(&other).filter(|(one, other)| one != other).count())
        });
        differing.filter(|(_, n_values)| *n_values != 0).collect()
    }

    #[test]
    fn ans_64_a_copy_of_a_cluster_copies_no_large_member() {
        let mut cluster = cluster();
        assert_ne!(cluster.clone().addresses(), cluster.addresses(), "they are its own");
        cluster.share();
        let mut copy = cluster.clone();
        assert_eq!(copy.addresses(), cluster.addresses());
        assert_eq!((unshared(&mut copy, &mut cluster), copy.check()), (vec![], Ok(())));
    }

    #[test]
    fn ans_64_a_write_copies_what_it_changes_and_is_not_seen_by_the_other_side() {
        let by_text = [
            // The volume, not the claim or an index.
            ("pv v 2Gi class=s label.x=y", ("volumes", 1)),
            // The volume, and the volumes by class.
            ("pv v 3Gi class=s", ("volumes", 2)),
            ("pvc c 2Gi class=s", ("volumes", 1)),
            ("claim device class=gpu.com count=2", ("devices", 1)),
            ("budget b app=y allowed=0 healthy=1", ("budgets", 1)),
            ("quota r hard.cpu=10", ("quotas", 1)),
        ];
        let by_text = by_text.map(|(text, copied)| (fixture::events_of(text).remove(0), copied));
        // The names, and the part of the table with the rows.
        let image = (node_with("b:1"), ("images", 2));
        for (event, copied) in by_text.into_iter().chain([image]) {
            let mut cluster = cluster();
            cluster.share();
            let (mut writer, mut reader) = (cluster.clone(), cluster.clone());
            let before = [&cluster, &reader].map(|side| format!("{side:?}"));
            writer.apply(event.clone());
            assert!(format!("{cluster:?}") == before[0], "it sees {event:?}");
            assert_eq!(unshared(&mut writer, &mut cluster), [copied], "{event:?}");
            cluster.apply(event.clone());
            assert!(format!("{reader:?}") == before[1], "a copy sees {event:?}");
            assert_eq!(unshared(&mut reader, &mut cluster), [copied], "{event:?}");
            for side in [&cluster, &writer, &reader] {
                assert_eq!(side.check(), Ok(()), "{event:?}");
            }
        }
    }

    #[test]
    fn ans_59_a_copy_takes_every_large_member_for_its_own() {
        let mut cluster = cluster();
        cluster.share();
        let before = cluster.addresses();
        let mut copy = cluster.clone();
        copy.unshare();
        let own: BTreeSet<usize> = copy.addresses().into_iter().collect();
        assert_eq!(cluster.addresses(), before);
        assert!(before.iter().all(|address| !own.contains(address)));
        assert_eq!(copy.check(), Ok(()));
    }
}
