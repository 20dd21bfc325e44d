//! A mounted ConfigMap changes while the scheduler runs. Specification: core.md 2.6.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::api::until;
use crate::cluster::Cluster;
use crate::process::{Scheduler, shipped_conf};

/// A mounted ConfigMap: files are links through `..data`, which is swapped as a whole.
struct Mount {
    dir: PathBuf,
    n_swaps: u32,
}

const FILE: &str = "volcano-scheduler.conf";

impl Mount {
    fn new(dir: PathBuf, text: &str) -> Self {
        fs::create_dir(&dir).unwrap();
        symlink(Path::new("..data").join(FILE), dir.join(FILE)).unwrap();
        let mut mount = Self { dir, n_swaps: 0 };
        mount.swap(text);
        mount
    }

    fn swap(&mut self, text: &str) {
        self.n_swaps += 1;
        let version = format!("..version_{}", self.n_swaps);
        fs::create_dir(self.dir.join(&version)).unwrap();
        fs::write(self.dir.join(&version).join(FILE), text).unwrap();
        let new = self.dir.join("..data_tmp");
        symlink(version, &new).unwrap();
        fs::rename(new, self.dir.join("..data")).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn core_11_a_changed_config_map_is_in_force_and_a_bad_one_is_not() {
    let cluster = Cluster::take("reload", 1).await;
    let without = shipped_conf().replace("enqueue, allocate, backfill", "enqueue");
    let mut mount = Mount::new(cluster.dir().join("conf-reload"), &without);
    let conf = format!("--scheduler-conf={}", mount.dir.join(FILE).display());
    let args = ["--leader-elect=false", "--schedule-period=100ms", conf.as_str()];
    let _scheduler = Scheduler::start_with(&cluster, &args).await;
    cluster.submit("first", 1, "1").await;
    cluster.in_phase("first", "Inqueue").await;
    assert!(cluster.audit.binds().is_empty());
    mount.swap(&shipped_conf());
    cluster.running("first", 1).await;

    mount.swap("actions: \"elect\"\n");
    let log = cluster.scheduler_log();
    let refused = async || {
        let text = fs::read_to_string(&log).unwrap();
        text.contains("the last good configuration stays in force").then_some(())
    };
    until("the bad configuration is refused", refused).await;
    cluster.submit("second", 1, "1").await;
    cluster.running("second", 1).await;
}
