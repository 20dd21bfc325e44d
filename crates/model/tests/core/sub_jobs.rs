//! Sub-jobs: core.md 3.7, plugins-jobs-queues.md D7. D8: the priority of a sub-job follows its tasks.

use vc_model::{Cluster, Job, fixture};

fn job<'c>(cluster: &'c Cluster, name: &str) -> &'c Job {
    &cluster.jobs[fixture::job(cluster, name)]
}

fn sub_job_of<'c>(cluster: &'c Cluster, path: &str) -> &'c str {
    let task = &cluster.tasks[fixture::task(cluster, path)];
    let job = &cluster.jobs[task.job.expect("a member")];
    &job.sub_jobs[task.sub_job].id
}

#[test]
fn core_46_the_first_policy_that_matches_gives_the_sub_job() {
    let cluster = fixture::cluster(
        "job j min=4
           policy p keys=version,env match.app=test size=2
           policy none
           task a label.app=test label.version=v1 label.env=dev
           task b label.app=test label.version=v1
           task c label.app=test label.version=v1 label.env=
           task d label.app=other label.version=v1 label.env=dev",
    );
    assert_eq!(sub_job_of(&cluster, "j/a"), "default/j/p-v1-dev");
    for path in ["j/b", "j/c", "j/d"] {
        assert_eq!(sub_job_of(&cluster, path), "default/j", "{path}");
    }
    let row = job(&cluster, "j");
    let minimums: Vec<i32> = row.sub_jobs.iter().map(|sub| sub.min_available).collect();
    assert_eq!(minimums, [1, 2], "the default one beside policies, subGroupSize");
    assert_eq!(cluster.check(), Ok(()));
}

#[test]
fn a_selector_without_keys_forms_one_sub_job() {
    // D7: a policy without match keys forms exactly one sub-group.
    let cluster = fixture::cluster(
        "job j
           policy p match.app=test min=1
           task a label.app=test
           task b label.app=test
           task c",
    );
    assert_eq!(sub_job_of(&cluster, "j/a"), "default/j/p-");
    assert_eq!(sub_job_of(&cluster, "j/b"), "default/j/p-");
    assert_eq!(sub_job_of(&cluster, "j/c"), "default/j");
    assert!(job(&cluster, "j").sub_jobs_valid());
}

#[test]
fn priority_of_a_sub_job_is_that_of_its_highest_task() {
    // D8: the priority of a sub-group is the largest of its current tasks.
    let mut cluster = fixture::cluster(
        "job j
           policy p keys=idx
           task a label.idx=0 priority=9
           task b label.idx=0 priority=-5",
    );
    let id = fixture::job(&cluster, "j");
    assert_eq!(cluster.sub_job_priority(id, 1), 9);
    fixture::apply(&mut cluster, "job j\n  policy p keys=idx\n  task a label.idx=1 priority=9");
    assert_eq!(cluster.sub_job_priority(id, 1), -5, "also when negative");
    assert_eq!(cluster.sub_job_priority(id, 0), 0, "no task");
}

#[test]
fn match_index_is_the_first_value_as_a_number() {
    let cluster = fixture::cluster(
        "job j
           policy p keys=idx,x
           task a label.idx=12 label.x=1
           task b label.idx=y label.x=2",
    );
    let indexes: Vec<i64> = job(&cluster, "j").sub_jobs.iter().map(|sub| sub.match_index).collect();
    assert_eq!(indexes, [0, 12, 0]);
}

#[test]
fn minimum_of_sub_groups() {
    let text = |min: u32| {
        format!(
            "node n cpu=8
             job j min=1
               policy p keys=idx size=2 min={min}
               task a label.idx=0 cpu=1 @n running
               task b label.idx=0 cpu=1 @n running
               task c label.idx=1 cpu=1 @n running
               task d label.idx=1 cpu=1"
        )
    };
    let is = |cluster: &Cluster| {
        let job = job(cluster, "j");
        (job.sub_jobs_valid(), job.sub_jobs_ready(), job.sub_jobs_pipelined())
    };
    assert_eq!(is(&fixture::cluster(&text(1))), (true, true, true));
    assert_eq!(is(&fixture::cluster(&text(2))), (true, false, false));
    assert_eq!(is(&fixture::cluster(&text(3))), (false, false, false));
}

#[test]
fn other_policies_regroup_the_tasks() {
    let mut cluster = fixture::cluster(
        "job j min=2
           policy p keys=idx
           task a label.idx=0
           task b label.idx=1",
    );
    assert_eq!(job(&cluster, "j").existing_sub_jobs().count(), 2);
    fixture::apply(&mut cluster, "job j min=2");
    assert_eq!(cluster.check(), Ok(()));
    assert_eq!(job(&cluster, "j").existing_sub_jobs().count(), 1);
    assert_eq!(sub_job_of(&cluster, "j/a"), "default/j");
    assert_eq!(job(&cluster, "j").sub_jobs[0].min_available, 2);
}

#[test]
fn match_labels_that_change_leave_no_sub_jobs_behind() {
    let pods = |a: u32, b: u32| {
        format!(
            "job j
               policy p keys=idx
               task a label.idx={a}
               task b label.idx={b}",
        )
    };
    let mut cluster = fixture::cluster(&pods(0, 1));
    for step in 1..50 {
        fixture::apply(&mut cluster, &pods(step, step + step % 3));
        assert_eq!(cluster.check(), Ok(()));
        assert_eq!(sub_job_of(&cluster, "j/a"), format!("default/j/p-{step}"));
        assert_eq!(sub_job_of(&cluster, "j/b"), format!("default/j/p-{}", step + step % 3));
        let n_existing = if step % 3 == 0 { 1 } else { 2 };
        assert_eq!(job(&cluster, "j").existing_sub_jobs().count(), n_existing);
        // The default one, and as many as there ever were at a time.
        assert!(job(&cluster, "j").sub_jobs.len() <= 4, "{:?}", job(&cluster, "j").sub_jobs);
    }
}

#[test]
fn a_pod_that_is_seen_again_is_no_news_where_sub_jobs_are_free() {
    let text = |z: u32| {
        format!(
            "job j
               policy p keys=idx
               task a label.idx=0
               task b label.idx=1
               task z label.idx={z}",
        )
    };
    let mut cluster = fixture::cluster(&text(2));
    fixture::apply(&mut cluster, &text(1));
    let version = cluster.version();
    fixture::apply(&mut cluster, &text(1));
    assert_eq!(cluster.version(), version);
}

#[test]
fn a_new_minimum_is_that_of_the_default_sub_job() {
    let mut cluster = fixture::cluster("job j min=2\n  task a\n  task b");
    fixture::apply(&mut cluster, "job j min=1");
    assert_eq!(job(&cluster, "j").sub_jobs[0].min_available, 1);
}

#[test]
fn long_match_values_are_replaced_by_their_hash() {
    let value = "v".repeat(65);
    let cluster = fixture::cluster(&format!(
        "job j\n  policy p keys=x,y\n  task a label.x={value} label.y={value}",
    ));
    let id = sub_job_of(&cluster, "j/a");
    let hash = id.strip_prefix("default/j/p-").unwrap();
    assert!((1..=10).contains(&hash.len()), "{hash}");
    assert!(hash.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c)), "{hash}");
}
