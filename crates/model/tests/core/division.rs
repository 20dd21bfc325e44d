//! Division of work between several schedulers: what each of them keeps.

use vc_model::{Cluster, Division, ObjectKey, OtherScheduler, PodGroupRecord, PodRecord, Settings};

use crate::support::*;

/// The clusters of `s-0` and `s-1`.
fn clusters() -> [Cluster; 2] {
    ["s-0", "s-1"].map(|name| {
        let division = Some(Division::new(name, 2));
        Cluster::new(Settings { division, ..Settings::default() })
    })
}

/// The only one of the two for which this holds.
fn only(clusters: &[Cluster; 2], holds: impl Fn(&Cluster) -> bool) -> usize {
    let which: Vec<usize> = (0..2).filter(|&index| holds(&clusters[index])).collect();
    assert_eq!(which.len(), 1);
    which[0]
}

#[test]
fn core_63_each_pod_pod_group_and_node_is_tracked_by_exactly_one() {
    let mut clusters = clusters();
    for index in 0..40 {
        let owner_name = (index % 2 == 0).then(|| format!("owner-{index}").into());
        let name = format!("x-{index}");
        for cluster in &mut clusters {
            let owner_name = owner_name.clone();
            apply_pod(
                cluster,
                PodRecord { owner_name: owner_name.clone(), ..member(&name, &name) },
            );
            apply_group(cluster, PodGroupRecord { owner_name, ..group(&name, 1) });
            apply_node(cluster, node(&name, "cpu=1"));
        }
        let pod = only(&clusters, |cluster| cluster.task(&name).is_some());
        let pod_group = only(&clusters, |cluster| {
            let job = cluster.job(&ObjectKey::new("ns", &name));
            job.is_some_and(|job| cluster.jobs[job].pod_group.is_some())
        });
        assert_eq!(pod, pod_group, "{name}: one key, one owner");
        let named = only(&clusters, |cluster| cluster.node(&name).is_some());
        if owner_name.is_none() {
            assert_eq!(named, pod, "{name}: a pod without owner goes by its own name");
        }
    }
    let n_nodes = clusters.each_ref().map(|cluster| cluster.nodes_by_name().len());
    assert!(n_nodes.iter().all(|&count| 0 < count), "{n_nodes:?}");
}

#[test]
fn core_63_a_placed_pod_is_tracked_where_its_node_is() {
    let [ours, theirs] = &mut clusters();
    let division = Division::new("s-0", 2);
    let mut names = (0..).map(|index: u32| format!("x-{index}"));
    let (mine, other) = {
        let mut find = |wanted| names.find(|name| division.owns(name) == wanted).unwrap();
        (find(true), find(false))
    };
    // The pod is theirs by its name, its node is ours.
    let runs = running(requesting(pod(&other), "cpu=1"), &mine);
    for cluster in [&mut *ours, &mut *theirs] {
        apply_node(cluster, node(&mine, "cpu=4"));
        apply_pod(cluster, runs.clone());
        assert!(cluster.task(&other).is_some());
    }
    assert_eq!(ours.nodes[ours.node(&mine).unwrap()].tasks.len(), 1);
    assert_eq!(theirs.nodes_by_name(), []);
    let deciding = |cluster: &Cluster| cluster.other_scheduler(id(cluster, &other)).cloned();
    assert_eq!(deciding(ours), Some(OtherScheduler::ByDivision("s-1".into())));
    assert_eq!(deciding(theirs), None);
    let foreign = PodRecord { scheduler_name: "default-scheduler".into(), ..runs };
    apply_pod(ours, foreign.clone());
    apply_pod(theirs, foreign);
    assert!(ours.task(&other).is_some() && theirs.task(&other).is_none());
    assert_eq!(deciding(ours), Some(OtherScheduler::ByName("default-scheduler".into())));
}

#[test]
fn a_pod_group_that_comes_to_another_owner_leaves() {
    let [mut ours, _] = clusters();
    let division = Division::new("s-0", 2);
    let owner = |wanted| {
        let mut names = (0..).map(|index: u32| format!("owner-{index}"));
        Some(names.find(|name| division.owns(name) == wanted).unwrap().into())
    };
    apply_group(&mut ours, PodGroupRecord { owner_name: owner(true), ..group("j", 1) });
    assert!(ours.job(&ObjectKey::new("ns", "j")).is_some());
    let resource_version = "2".into();
    let moved = PodGroupRecord { owner_name: owner(false), resource_version, ..group("j", 1) };
    apply_group(&mut ours, moved);
    assert_eq!(ours.job(&ObjectKey::new("ns", "j")), None);
}
