//! The cache dumper: SIGUSR1 writes the snapshot as JSON into a file, SIGUSR2 as text into the log.
//! The copy shares its tables with the engine until the engine writes to them. Specification: core.md
//! 1.6, 1.7, answers.md 10 (ANS-68).

mod hyper_nodes;
mod rows;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use tempfile::NamedTempFile;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use vc_daemon::DumpRequests;
use vc_engine::AccountUse;
use vc_kube::{EngineMessage, EngineVisit};
use vc_model::{Cluster, JobId, NodeId};
use vc_text::JsonEscaper;

use crate::meter::Meter;

/// The two user signals. They are caught from the start on, or they would end the process.
pub struct Dumper {
    file: Signal,
    log: Signal,
}

impl Dumper {
    /// Catches the signals.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub fn install() -> io::Result<Self> {
        let (file, log) = (SignalKind::user_defined1(), SignalKind::user_defined2());
        Ok(Self { file: signal(file)?, log: signal(log)? })
    }
}

impl DumpRequests for Dumper {
    /// While nothing is known, a signal is answered by a word in the log. Never returns.
    async fn idle(&mut self) {
        loop {
            tokio::select! {
                Some(()) = self.file.recv() => {}
                Some(()) = self.log.recv() => {}
                else => std::future::pending().await,
            }
            tracing::info!("nothing to dump: this process does not schedule");
        }
    }

    /// Dumps what the engine knows whenever it is asked for. `None`: `--cache-dumper=false`, the
    /// signals are ignored.
    async fn run(
        mut self,
        folder: Option<PathBuf>,
        inbox: mpsc::Sender<EngineMessage>,
        meter: Arc<Meter>,
    ) {
        loop {
            let to_file = tokio::select! {
                Some(()) = self.file.recv() => true,
                Some(()) = self.log.recv() => false,
                else => return,
            };
            let Some(folder) = &folder else { continue };
            let Some(snapshot) = copy(&inbox).await else { return };
            let file = to_file.then(|| folder.join(name()));
            let meter = meter.clone();
            let dump =
                tokio::task::spawn_blocking(move || dump(&snapshot, file.as_deref(), &meter));
            if dump.await.is_err() {
                tracing::error!("the dump has failed inside");
            }
        }
    }
}

/// What is dumped.
struct Snapshot {
    cluster: Cluster,
    /// What accounts have used, by queue and account. Empty without the plugin fairshare.
    usages: Vec<AccountUse>,
}

/// The state as it is between two cycles; `None`: the engine is gone.
async fn copy(inbox: &mpsc::Sender<EngineMessage>) -> Option<Snapshot> {
    let (sender, receiver) = oneshot::channel();
    let visit = EngineVisit::copy(move |engine| {
        let usages = engine.account_use();
        drop(sender.send(Snapshot { cluster: engine.cluster().clone(), usages }));
    });
    inbox.send(EngineMessage::Visit(visit)).await.ok()?;
    receiver.await.ok()
}

fn name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("snapshot-{}.json", now.as_secs())
}

/// Also a good moment to check that every sum is what it should be.
fn dump(snapshot: &Snapshot, file: Option<&Path>, meter: &Meter) {
    vc_kube::check(&snapshot.cluster, meter);
    let Some(file) = file else { return to_log(snapshot) };
    match to_file(snapshot, file) {
        Ok(()) => tracing::info!("the cache is in {}", file.display()),
        Err(error) => {
            tracing::error!("no dump: {}: {error}", file.display());
            // Counted only: a full disk is no failed assertion.
            meter.metrics.internal_error("dump");
        }
    }
}

/// Writes a new file that only its owner may read, under a name that nobody can guess, and gives it
/// its own name when it is whole. The folder may be anybody's (`/tmp`): no link is followed, and a
/// link or file of that name is replaced. What could not be written takes no room.
fn to_file(snapshot: &Snapshot, file: &Path) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let part = NamedTempFile::with_prefix_in(".snapshot-", folder)?;
    write(snapshot, part.as_file())?;
    part.persist(file)?;
    Ok(())
}

fn write(snapshot: &Snapshot, file: impl Write) -> io::Result<()> {
    let mut out = JsonEscaper(BufWriter::new(file));
    documents(snapshot, &mut out)?;
    out.flush()
}

/// Six JSON documents, one a line; a seventh with usage, if there is any.
fn documents(snapshot: &Snapshot, out: &mut impl Write) -> io::Result<()> {
    let cluster = &snapshot.cluster;
    let nodes = nodes(cluster).map(|id| rows::node(cluster, id));
    object(out, nodes)?;
    let tree = cluster.built_hyper_node_tree();
    object(out, hyper_nodes::by_tier(&tree).into_iter())?;
    object(out, hyper_nodes::tiers(cluster))?;
    object(out, hyper_nodes::nodes(cluster, &tree))?;
    object(out, hyper_nodes::records(&tree))?;
    object(out, jobs(cluster).map(|id| rows::job(cluster, &tree, id)))?;
    if snapshot.usages.is_empty() {
        return Ok(());
    }
    object(out, snapshot.usages.iter().map(rows::usage))
}

/// One row at a time, so that the whole is never in memory.
fn object(out: &mut impl Write, rows: impl Iterator<Item = (String, Value)>) -> io::Result<()> {
    let mut before = "{";
    for (key, row) in rows {
        out.write_all(before.as_bytes())?;
        before = ",";
        serde_json::to_writer(&mut *out, &key)?;
        out.write_all(b":")?;
        serde_json::to_writer(&mut *out, &row)?;
    }
    let end: &[u8] = if before == "{" { b"{}\n" } else { b"}\n" };
    out.write_all(end)
}

/// Those of a snapshot (core.md 4.8).
fn nodes(cluster: &Cluster) -> impl Iterator<Item = NodeId> {
    cluster.nodes_by_name().iter().copied().filter(|&node| cluster.nodes[node].present)
}

fn jobs(cluster: &Cluster) -> impl Iterator<Item = JobId> {
    cluster.jobs_by_key().filter(|&job| {
        let row = &cluster.jobs[job];
        row.pod_group.is_some() && cluster.queues[row.queue].present
    })
}

fn to_log(Snapshot { cluster, usages }: &Snapshot) {
    tracing::info!("Dump of nodes info in scheduler cache");
    nodes(cluster).for_each(|node| line(rows::node(cluster, node)));
    tracing::info!("Dump of jobs info in scheduler cache");
    let tree = cluster.built_hyper_node_tree();
    jobs(cluster).for_each(|job| line(rows::job(cluster, &tree, job)));
    if !usages.is_empty() {
        tracing::info!("Dump of usage of accounts");
        usages.iter().for_each(|usage| line(rows::usage(usage)));
    }
    let memory = fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in memory.lines().filter(|line| line.starts_with("Vm") || line.starts_with("Rss")) {
        tracing::info!("{}", line.replace('\t', " "));
    }
}

fn line((key, row): (String, Value)) {
    tracing::info!("{key}: {row}");
}

/// A set as Go writes it: an object whose keys count.
fn set<'a>(names: impl Iterator<Item = &'a str>) -> Value {
    names.map(|name| (name.to_owned(), json!({}))).collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use vc_wire::Kind;

    use super::*;

    fn of(cluster: Cluster) -> Snapshot {
        Snapshot { cluster, usages: Vec::new() }
    }

    #[test]
    fn usage_is_a_seventh_object() {
        let usage = AccountUse {
            queue: "q".into(),
            account: "ann".into(),
            charged: "cpu".to_owned(),
            running: 2.0,
            used_hours: 8.0,
            projected_hours: 8.5,
            weight: 1.0,
            level: Some(0.5),
            n_waiting_jobs: 3,
        };
        let snapshot = Snapshot { cluster: Cluster::default(), usages: vec![usage] };
        let mut text = Vec::new();
        documents(&snapshot, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let last: Value = serde_json::from_str(text.lines().nth(6).unwrap()).unwrap();
        let expected = json!({"q/ann": {"Charged": "cpu", "Running": 2.0, "UsedHours": 8.0,
            "ProjectedHours": 8.5, "Weight": 1.0, "Level": 0.5, "WaitingJobs": 3}});
        assert_eq!(last, expected);
    }

    #[test]
    fn core_15_an_empty_cluster_is_six_empty_objects() {
        let mut text = Vec::new();
        documents(&of(Cluster::default()), &mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "{}\n".repeat(6));
    }

    fn apply(cluster: &mut Cluster, kind: Kind, object: Value) {
        cluster.apply(vc_wire::decode(kind, &object).unwrap().event);
    }

    fn outside_brackets(text: &str) -> String {
        let mut depth = 0;
        let outside = |letter: &char| {
            depth += i32::from("({".contains(*letter));
            let outside = depth == 0;
            depth -= i32::from(")}".contains(*letter));
            outside
        };
        text.chars().filter(outside).collect()
    }

    #[test]
    fn core_15_records_have_the_fields_that_the_specification_names() {
        let mut cluster = Cluster::default();
        apply(
            &mut cluster,
            Kind::Node,
            json!({"metadata": {"name": "n"},
            "status": {"images": [{"names": ["busybox:1"], "sizeBytes": 7}]}}),
        );
        let annotations = json!({"volcano.sh/jdb-max-unavailable": "10%"});
        apply(
            &mut cluster,
            Kind::PodGroup,
            json!({"metadata": {"name": "j", "namespace": "ns",
            "uid": "g", "annotations": annotations}, "spec": {"queue": "q"}}),
        );
        let annotations = json!({"scheduling.k8s.io/group-name": "j"});
        apply(
            &mut cluster,
            Kind::Pod,
            json!({"metadata": {"name": "p", "namespace": "ns",
            "uid": "u", "annotations": annotations}, "spec": {"nodeName": "n"}}),
        );
        let node = rows::node(&cluster, nodes(&cluster).next().unwrap()).1;
        let tree = cluster.built_hyper_node_tree();
        let job = rows::job(&cluster, &tree, cluster.jobs_by_key().next().unwrap()).1;
        assert_eq!(node["ImageStates"], json!({"busybox:1": {"Size": 7, "NumNodes": 1}}));
        assert_eq!(job["Budget"], json!({"MaxUnavailable": "10%"}));
        let text = include_str!("../docs/spec/core.md");
        let text = text.split("Keep at least these: ").nth(1).unwrap();
        let text = outside_brackets(text.split("Extra fields").next().unwrap());
        for (head, row) in [("node", &node), ("job", &job), ("task", &job["Tasks"]["u"])] {
            let part = text.split("; ").find(|part| part.starts_with(head)).unwrap();
            let names: Vec<&str> = part.split('`').skip(1).step_by(2).collect();
            assert!(3 < names.len(), "{part}");
            names.iter().for_each(|name| assert!(row.get(name).is_some(), "{head}: {name}"));
        }
    }

    #[test]
    fn core_15_hyper_nodes_and_where_a_job_is() {
        let mut cluster = Cluster::default();
        for name in ["n1", "n2"] {
            apply(&mut cluster, Kind::Node, json!({"metadata": {"name": name}}));
        }
        let member = |kind: &str, name: &str| json!({"type": kind, "selector": {"exactMatch": {"name": name}}});
        for (name, tier, member) in
            [("rack", 1, member("Node", "n1")), ("zone", 2, member("HyperNode", "rack"))]
        {
            let spec = json!({"tier": tier, "tierName": format!("t{tier}"), "members": [member]});
            apply(&mut cluster, Kind::HyperNode, json!({"metadata": {"name": name}, "spec": spec}));
        }
        apply(&mut cluster, Kind::Queue, json!({"metadata": {"name": "q"}, "spec": {"weight": 1}}));
        let topology = json!({"mode": "hard", "highestTierAllowed": 1});
        apply(
            &mut cluster,
            Kind::PodGroup,
            json!({"metadata": {"name": "j", "namespace": "ns", "uid": "g"},
                "spec": {"queue": "q", "networkTopology": topology}}),
        );
        let annotations = json!({"scheduling.k8s.io/group-name": "j"});
        apply(
            &mut cluster,
            Kind::Pod,
            json!({"metadata": {"name": "p", "namespace": "ns", "uid": "u",
                "annotations": annotations}, "spec": {"nodeName": "n1"},
                "status": {"phase": "Running"}}),
        );
        let mut text = Vec::new();
        documents(&of(cluster), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[1], json!({"1": {"rack": {}}, "2": {"zone": {}}}));
        assert_eq!(lines[2], json!({"t1": 1, "t2": 2}));
        assert_eq!(lines[3], json!({"rack": {"n1": {}}, "zone": {"n1": {}}}));
        assert_eq!(
            lines[4]["rack"],
            json!({"Name": "rack", "Tier": 1, "Parent": "zone", "Children": {}})
        );
        assert_eq!(lines[4]["zone"]["Children"], json!({"rack": {}}));
        assert_eq!(lines[5]["ns/j"]["AllocatedHyperNode"], "rack");
    }

    #[test]
    fn a_full_disk_is_told_and_counted() {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = write(&of(Cluster::default()), full).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let meter = Meter::default();
        dump(&of(Cluster::default()), Some(Path::new("/does/not/exist/a.json")), &meter);
        let text = meter.metrics.encode();
        assert!(text.contains("volcano_internal_errors_total{kind=\"dump\"} 1"), "{text}");
    }

    #[test]
    fn a_dump_is_whole_or_not_there() {
        let folder = std::env::temp_dir().join(format!("vc-dump-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("snapshot-1.json");
        to_file(&of(Cluster::default()), &file).unwrap();
        to_file(&of(Cluster::default()), &file).unwrap();
        let names: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["snapshot-1.json"]);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        // A link of that name is replaced, and what it points to is not touched.
        let target = folder.join("target");
        fs::write(&target, "kept").unwrap();
        fs::remove_file(&file).unwrap();
        symlink(&target, &file).unwrap();
        to_file(&of(Cluster::default()), &file).unwrap();
        assert!(fs::symlink_metadata(&file).unwrap().is_file());
        assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
        fs::remove_file(&target).unwrap();
        // The name is taken by a folder: nothing stays behind.
        fs::remove_file(&file).unwrap();
        fs::create_dir_all(file.join("x")).unwrap();
        assert!(to_file(&of(Cluster::default()), &file).is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
