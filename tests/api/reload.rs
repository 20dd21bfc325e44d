//! A mounted ConfigMap changes while the scheduler runs. Specification: core.md 2.6, C-10.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cluster::{Cluster, folder, gang, no_fault, poll};

pub(crate) const FILE: &str = "volcano-scheduler.conf";

/// A folder as the kubelet makes it: the file is a link through `..data`, which is swapped.
pub(crate) struct Mounted(pub(crate) PathBuf);

impl Mounted {
    pub(crate) fn new(text: &str) -> Self {
        let mounted = Self(folder("configmap"));
        symlink(Path::new("..data").join(FILE), mounted.0.join(FILE)).unwrap();
        mounted.write("..v1", text);
        mounted
    }

    pub(crate) fn write(&self, version: &str, text: &str) {
        fs::create_dir(self.0.join(version)).unwrap();
        fs::write(self.0.join(version).join(FILE), text).unwrap();
        symlink(version, self.0.join("..data_tmp")).unwrap();
        fs::rename(self.0.join("..data_tmp"), self.0.join("..data")).unwrap();
    }
}

fn conf(actions: &str) -> String {
    format!(
        "actions: \"{actions}\"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n  \
         - name: proportion\n"
    )
}

/// Members that request nothing are placed by backfill.
fn idle(name: &str) -> Vec<Value> {
    let mut objects = gang(name, 1, "1");
    objects[1]["spec"]["containers"][0]["resources"] = Value::Null;
    objects
}

fn failures(cluster: &Cluster) -> Option<u64> {
    let text = cluster.replica.meter.metrics.encode();
    let value = { text.lines() }
        .find_map(|line| line.strip_prefix("volcano_config_reload_failures_total "));
    value?.parse().ok()
}

async fn failed(cluster: &Cluster, n_failures: u64) {
    let counted = async || (failures(cluster) == Some(n_failures)).then_some(());
    poll("the failure is counted", counted).await;
}

#[tokio::test]
async fn core_11_the_last_good_configuration_stays() {
    let mounted = Mounted::new(&conf("enqueue, backfill"));
    let path = mounted.0.join(FILE);
    let path = format!("--scheduler-conf={}", path.display());
    let objects = [gang("train", 1, "1"), idle("first")].concat();
    let cluster = Cluster::start(objects, &[&path], no_fault).await;
    cluster.bound("first-0").await;
    assert_eq!(failures(&cluster), Some(0));
    mounted.write("..v2", "actions: \"enqueue, allocate,\"\n");
    failed(&cluster, 1).await;
    // As before: what requests nothing is placed, and nothing else.
    cluster.create(idle("second")).await;
    cluster.bound("second-0").await;
    let binding = "POST /api/v1/namespaces/default/pods/train-0/binding";
    assert_eq!(crate::cluster::count(&cluster.replica.log, binding), 0);
    mounted.write("..v3", &conf("enqueue, allocate, backfill"));
    cluster.bound("train-0").await;
    assert_eq!(failures(&cluster), Some(1));
    cluster.stop().await;
}
