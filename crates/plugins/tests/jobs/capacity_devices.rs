//! Cases 68-76 of plugins-jobs-queues.md: quotas of device classes in capacity.

use vc_framework::SessionState;
use vc_model::{Cluster, Settings, fixture};

use crate::support::{
    Cycles, allocatable, allocate, enqueueable, evict, in_session, in_session_of, job, queue, task,
};

const FLAT: &str = "capacity";
const WITH_CAPACITY: &str = "capacity capacity.DRAConsumableCapacityEnable=true";
const TREE: &str = "capacity +enableHierarchy";

/// The names of what the pod's queue, or a queue above it, lacks.
fn lacks(session: &SessionState<'_>, path: &str) -> Vec<String> {
    let lacking = allocatable(session, path).err().unwrap_or_default();
    lacking.into_iter().map(|dim| session.dims.name(dim).to_owned()).collect()
}

/// The sentence about the limit that keeps the pods out of the queue.
fn limit(session: &SessionState<'_>, name: &str, paths: &[&str]) -> String {
    let tasks: Vec<_> = paths.iter().map(|path| task(session, path)).collect();
    let limit = session.plugins().queue_limit(session.view(), queue(session, name), &tasks);
    limit.map_or_else(String::new, |limit| limit.text(&session.dims, tasks.len()))
}

const GPU: &str = "deviceclass/gpu.com";

#[test]
fn jobs_68_a_claim_fits_up_to_the_count() {
    let text = |count: u32, asked: u32| {
        format!(
            "node n cpu=8\n queue q cap.{GPU}={count}
             claim c class=gpu.com count={asked}
             job j queue=q min=1 minres.cpu=1\n task t cpu=1 claim=c"
        )
    };
    in_session(&text(2, 1), FLAT, |session| {
        assert_eq!(lacks(session, "j/t"), [""; 0]);
        assert_eq!(enqueueable(session, "j"), Ok(()));
    });
    in_session(&text(1, 2), FLAT, |session| {
        assert_eq!(lacks(session, "j/t"), [GPU]);
        let refused = "queue resource quota insufficient: insufficient dra-resource-exceeded";
        assert_eq!(enqueueable(session, "j"), Err(Some(refused.to_owned())));
        let sentence =
            "Limit of queue q: 1 deviceclass/gpu.com (spec.capability), used 0, asked 2.";
        assert_eq!(limit(session, "q", &["j/t"]), sentence);
        let limit = session.plugins().admission_limit(session.view(), job(session, "j"));
        assert_eq!(limit.expect("it is refused").text(&session.dims, 1), sentence);
    });
    for off in ["capacity capacity.DynamicResourceAllocationEnable=false", "proportion"] {
        in_session(&text(1, 2), off, |session| {
            assert_eq!(lacks(session, "j/t"), [""; 0]);
            assert_eq!(enqueueable(session, "j"), Ok(()));
        });
    }
    // Without the feature gate pods ask for no devices, whatever the argument says.
    let settings = Settings { dynamic_resources: false, ..Settings::default() };
    let mut cluster = Cluster::new(settings);
    fixture::apply(&mut cluster, &text(1, 2));
    in_session_of(
        cluster,
        "capacity capacity.DynamicResourceAllocationEnable=true",
        0,
        |session| {
            assert_eq!(lacks(session, "j/t"), [""; 0]);
            session.close_plugins();
            assert_eq!(
                session.outcome.out.warnings,
                [format!(
                    "queue q: spec.capability {GPU} limits nobody: the feature gate \
                 DynamicResourceAllocation is off"
                )]
            );
        },
    );
}

#[test]
fn jobs_69_each_class_has_its_own_quota() {
    let text = format!(
        "node n cpu=8\n queue q cap.{GPU}=1 cap.deviceclass/nic.com=1
         claim a class=gpu.com\n claim b class=nic.com\n claim c class=gpu.com
         claim d class=disk.com count=100\n claim e class=gpu.com all
         job j queue=q
           task a cpu=1 claim=a\n task b cpu=1 claim=b\n task c cpu=1 claim=c
           task d cpu=1 claim=d\n task e cpu=1 claim=e"
    );
    in_session(&text, FLAT, |session| {
        for path in ["j/a", "j/b"] {
            assert_eq!(lacks(session, path), [""; 0]);
            let placed = task(session, path);
            allocate(session, placed, "n");
        }
        assert_eq!(lacks(session, "j/c"), [GPU]);
        // No quota for the class; requests for all devices do not count.
        assert_eq!(lacks(session, "j/d"), [""; 0]);
        assert_eq!(lacks(session, "j/e"), [""; 0]);
    });
}

#[test]
fn jobs_70_count_and_capacity_of_a_class_are_one_quota() {
    let text = "node n cpu=8
        queue q cap.deviceclass/gpu.example.com=2 cap.memory.deviceclass/gpu.example.com=120Gi
        queue zero cap.deviceclass/gpu.example.com=0
        claim fits class=gpu.example.com count=2 memory=60Gi
        claim many class=gpu.example.com count=3 memory=1Gi
        claim much class=gpu.example.com memory=121Gi
        claim plain class=gpu.example.com
        job j queue=q
          task fits cpu=1 claim=fits\n task many cpu=1 claim=many
          task much cpu=1 claim=much\n task plain cpu=1 claim=plain
        job z queue=zero\n task many cpu=1 claim=many";
    in_session(text, WITH_CAPACITY, |session| {
        assert_eq!(lacks(session, "j/fits"), [""; 0]);
        assert_eq!(lacks(session, "j/many"), ["deviceclass/gpu.example.com"]);
        assert_eq!(lacks(session, "j/much"), ["memory.deviceclass/gpu.example.com"]);
        assert_eq!(lacks(session, "j/plain"), [""; 0]);
        session.close_plugins();
        let warning = "queue zero: spec.capability deviceclass/gpu.example.com is 0, which limits \
                       nobody; remove it, or give at least 1";
        assert_eq!(session.outcome.out.warnings, [warning]);
    });
    // A count of 0 is no limit, but capacity must be listed.
    in_session(text, FLAT, |session| {
        assert_eq!(lacks(session, "z/many"), [""; 0]);
        assert_eq!(lacks(session, "j/much"), [""; 0]);
    });
    in_session(text, WITH_CAPACITY, |session| {
        assert_eq!(lacks(session, "z/many"), ["deviceclass/gpu.example.com"]);
    });
}

#[test]
fn jobs_71_a_shared_claim_counts_once() {
    let text = format!(
        "node n cpu=8\n queue q cap.{GPU}=1
         claim shared class=gpu.com\n claim other class=gpu.com
         job j queue=q
           task a cpu=1 claim=shared @n running\n task b cpu=1 claim=shared @n running
           task c cpu=1 claim=shared claim=shared\n task d cpu=1 claim=other"
    );
    in_session(&text, FLAT, |session| {
        assert_eq!((lacks(session, "j/c"), lacks(session, "j/d")), (vec![], vec![GPU.to_owned()]));
        for path in ["j/a", "j/b"] {
            assert_eq!(lacks(session, "j/d"), [GPU]);
            let victim = task(session, path);
            evict(session, &[victim]);
        }
        assert_eq!((lacks(session, "j/c"), lacks(session, "j/d")), (vec![], vec![]));
        // Two pods together count what both claim.
        let both = "Limit of queue q: 1 deviceclass/gpu.com (spec.capability), used 0, asked 2 \
                    for 2 members.";
        assert_eq!(limit(session, "q", &["j/c", "j/d"]), both);
        let placed = task(session, "j/d");
        allocate(session, placed, "n");
        assert_eq!(lacks(session, "j/c"), [GPU]);
    });
}

#[test]
fn jobs_72_admitted_jobs_count_at_admission_only() {
    let text = format!(
        "node n cpu=8\n queue q cap.{GPU}=2 cap.memory.{GPU}=16Gi
         claim one class=gpu.com memory=8Gi\n claim two class=gpu.com count=2 memory=8Gi
         job first queue=q min=1 minres.cpu=1 inqueue\n task t cpu=1 claim=one
         job second queue=q min=1 minres.cpu=1\n task t cpu=1 claim=two"
    );
    in_session(&text, WITH_CAPACITY, |session| {
        assert!(enqueueable(session, "second").is_err());
        assert_eq!(lacks(session, "second/t"), [""; 0]);
    });
    // The same when the first is admitted in this session.
    let text = text.replace("inqueue", "");
    in_session(&text, WITH_CAPACITY, |session| {
        assert_eq!(enqueueable(session, "second"), Ok(()));
        let first = job(session, "first");
        session.enqueue(first);
        assert!(enqueueable(session, "second").is_err());
    });
}

#[test]
fn jobs_74_what_a_job_needs_at_least() {
    let queue = |most: u32| format!("node n cpu=8\n queue q cap.{GPU}={most}\n");
    let roles = "claim c class=gpu.com
        job j queue=q min=2 role.worker=2 minres.cpu=1\n task t cpu=1 role=worker claim=c";
    let plain = "claim a class=gpu.com count=2\n claim b class=gpu.com
        claim c class=gpu.com count=4
        job j queue=q min=2 minres.cpu=1
          task a cpu=1 claim=a\n task b cpu=1 claim=b\n task c cpu=1 claim=c";
    let shared = "claim s class=gpu.com count=3
        job j queue=q min=2 minres.cpu=1\n task a cpu=1 claim=s\n task b cpu=1 claim=s";
    let many = "claim c class=gpu.com
        job j queue=q min=1 role.worker=2147483647 minres.cpu=1
          task t cpu=1 role=worker claim=c";
    for (job, least) in [(roles, 2), (plain, 3), (shared, 3), (many, 2_147_483_647)] {
        for (most, expected) in [(least, true), (least - 1, false)] {
            in_session(&(queue(most) + job), FLAT, |session| {
                for _repeated in 0..2 {
                    assert_eq!(enqueueable(session, "j").is_ok(), expected, "{job} {most}");
                }
            });
        }
    }
}

#[test]
fn jobs_75_capacity_counts_for_each_device() {
    for (most, expected) in [("16Gi", vec![]), ("15Gi", vec![format!("memory.{GPU}")])] {
        let text = format!(
            "node n cpu=8\n queue q cap.{GPU}=9 cap.memory.{GPU}={most}
             claim c class=gpu.com count=2 memory=8Gi
             job j queue=q\n task t cpu=1 claim=c"
        );
        in_session(&text, WITH_CAPACITY, |session| assert_eq!(lacks(session, "j/t"), expected));
    }
}

#[test]
fn jobs_76_a_parent_counts_what_its_leaves_hold() {
    let text = format!(
        "node n cpu=8\n queue root\n queue p cap.{GPU}=1\n queue q parent=p\n queue r parent=p
         claim a class=gpu.com\n claim b class=gpu.com
         job old queue=q\n task t cpu=1 claim=a @n running
         job new queue=r\n task t cpu=1 claim=b\n task s cpu=1 claim=a"
    );
    in_session(&text, TREE, |session| {
        assert_eq!(lacks(session, "new/t"), [GPU]);
        let sentence =
            "Limit of queue p: 1 deviceclass/gpu.com (spec.capability), used 1, asked 1.";
        assert_eq!(limit(session, "r", &["new/t"]), sentence);
        // Leaves share a claim too.
        assert_eq!(lacks(session, "new/s"), [""; 0]);
    });
}

/// Charges are kept from one session to the next, and follow pods and claims.
#[test]
fn charges_follow_pods_and_claims_between_sessions() {
    let text = format!(
        "node n cpu=8\n queue q cap.{GPU}=1\n claim a class=gpu.com\n claim b class=gpu.com
         job old queue=q\n task t cpu=1 claim=a @n running
         job new queue=q\n task t cpu=1 claim=b"
    );
    let mut cycles = Cycles::new(&text, FLAT);
    cycles.session(0, |session| assert_eq!(lacks(session, "new/t"), [GPU]));
    // The claim asks for another class now.
    fixture::apply(&mut cycles.cluster, "claim a class=nic.com");
    cycles.session(1, |session| assert_eq!(lacks(session, "new/t"), [""; 0]));
    fixture::apply(&mut cycles.cluster, "claim a class=gpu.com");
    cycles.session(2, |session| assert_eq!(lacks(session, "new/t"), [GPU]));
    fixture::apply(&mut cycles.cluster, "job old queue=q\n task t cpu=1 claim=a @n succeeded");
    cycles.session(3, |session| assert_eq!(lacks(session, "new/t"), [""; 0]));
}
