//! From Volcano's scheduler to ours and back, while jobs come: nothing is bound twice, nothing is forgotten.

use super::{JOBS, Program, Volcano, account, is_built, job, pods_of, takes_jobs};
use crate::api::{Api, text, until};
use crate::audit::Asked;
use crate::cluster::Cluster;
use crate::leaders::{SHORT, leader_after};
use crate::objects::{name, node_of, phase};
use crate::process::{Scheduler, shipped_conf};

/// What the server logs for a request whose sender is gone.
const GATEWAY_TIMEOUT: u64 = 504;
/// Pods of a job, of one CPU each.
const JOB: u32 = 4;

/// Volcano's scheduler, with the rights of its chart, our shipped configuration, and the same Lease.
fn volcanos(cluster: &mut Cluster) -> Program {
    let kubeconfig = account(cluster, "volcano-scheduler");
    let conf = cluster.dir().join("volcano-scheduler.conf");
    std::fs::write(&conf, shipped_conf()).unwrap();
    let mut args = vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--scheduler-conf={}", conf.display()),
        "--logtostderr".to_owned(),
        "--leader-elect=true".to_owned(),
        "--leader-elect-resource-namespace=volcano-system".to_owned(),
        "--kube-api-qps=2000".to_owned(),
        "--kube-api-burst=2000".to_owned(),
        "--listen-address=127.0.0.1:0".to_owned(),
    ];
    args.extend(SHORT.map(str::to_owned));
    Program::start(cluster, "scheduler", &args)
}

/// Jobs with these numbers.
async fn submit(api: &Api, namespace: &str, numbers: std::ops::Range<u32>) {
    for number in numbers {
        api.create(&job(namespace, &format!("job-{number}"), JOB)).await.unwrap();
    }
}

/// Waits until so many of these jobs run.
async fn run(cluster: &Cluster, numbers: std::ops::Range<u32>, wanted: usize) {
    let all = format!("{JOBS}/namespaces/{}/jobs", cluster.namespace);
    until(&format!("{wanted} of jobs {numbers:?} run"), async || {
        let jobs = cluster.api.list(&all).await;
        let is_meant = |job: &str| numbers.clone().any(|number| job == format!("job-{number}"));
        let run = jobs.iter().filter(|job| {
            is_meant(name(job)) && text(&job["status"]["state"]["phase"]) == "Running"
        });
        (wanted <= run.count()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn volcanos_scheduler_hands_over_to_ours_and_back() {
    if !is_built() {
        return;
    }
    let mut cluster = Cluster::take("hand-over", 24).await;
    let volcano = Volcano::install(&mut cluster).await;
    let (api, namespace) = (cluster.api.clone(), cluster.namespace);
    let first = volcanos(&mut cluster);
    let of_volcano = leader_after(&cluster, "").await;
    takes_jobs(&cluster).await;
    submit(&api, namespace, 0..10).await;
    run(&cluster, 0..10, 2).await;
    // Ours waits for the Lease; what comes meanwhile is whoever's.
    let ours = Scheduler::start_with(&cluster, &SHORT).await;
    submit(&api, namespace, 10..20).await;
    first.terminate().await;
    let of_ours = leader_after(&cluster, &of_volcano).await;
    submit(&api, namespace, 20..30).await;
    run(&cluster, 0..30, 22).await;
    let _second = volcanos(&mut cluster);
    submit(&api, namespace, 30..40).await;
    ours.kill().await;
    leader_after(&cluster, &of_ours).await;
    run(&cluster, 0..40, 40).await;
    let mut names = Vec::new();
    for number in 0..40 {
        let pods = pods_of(&cluster, &format!("job-{number}")).await;
        assert_eq!(pods.len(), JOB as usize);
        assert!(pods.iter().all(|pod| !node_of(pod).is_empty() && phase(pod) == "Running"));
        names.extend(pods.iter().map(|pod| name(pod).to_owned()));
    }
    let bindings = until("a binding of each pod", async || {
        let mut bindings = cluster.audit.all();
        bindings.retain(Asked::is_binding);
        let is_bound = |pod: &String| bindings.iter().any(|asked| asked.name == *pod);
        names.iter().all(is_bound).then_some(bindings)
    })
    .await;
    assert!(cluster.audit.binds().values().all(|&n_binds| n_binds == 1), "{bindings:?}");
    // What a process that was killed had on its way, the server has done or not, and nobody took its answer.
    let is_refused = |asked: &&Asked| !asked.is_done() && asked.code != GATEWAY_TIMEOUT;
    assert_eq!(bindings.iter().find(is_refused).map(|asked| asked.code), None, "{bindings:?}");
    let by_us = bindings.iter().filter(|asked| asked.account == "vc-scheduler").count();
    assert!(0 < by_us && by_us < bindings.len(), "{by_us} of {}", bindings.len());
    volcano.remove(&cluster.api).await;
}
