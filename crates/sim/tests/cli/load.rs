//! `vcsim load` against the embedded API server over real HTTP: what it creates, what it sees bound,
//! and how it bears 429 and lost connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use vc_sim::load::{
    Client, LoadAccess, LoadError, LoadObject, LoadOptions, RequestRate, Workload, create, run,
};
use vc_sim::serve::{NODES, POD_GROUPS, PODS, QUEUES, ServeOptions, ServedKind, Server, start};

use crate::common::{file, folder, vcsim};

async fn server() -> Server {
    let listen = "127.0.0.1:0".parse().unwrap();
    start(ServeOptions { listen, ..ServeOptions::default() }).await.unwrap()
}

fn options(server: &Server, workload: Workload) -> LoadOptions {
    LoadOptions {
        access: LoadAccess::plain(&server.url()).unwrap(),
        workload,
        pressure: RequestRate::full(4),
        timeout: Duration::from_secs(180),
        bind: true,
        scheduler: None,
        metrics: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_load_is_created_and_bound() {
    let server = server().await;
    let workload = Workload { nodes: 3, gangs: 4, size: 5, ..Workload::default() };
    let report = run(&options(&server, workload)).await.unwrap();
    assert_eq!((report.creation().n_pods, report.binding().n_pods), (20, 20));
    assert!(report.lag().is_some() && report.waited().is_some());
    let count = |kind| server.store.list(kind, None).objects.len();
    assert_eq!((count(&NODES), count(&POD_GROUPS), count(&PODS)), (3, 4, 20));
    assert!(server.store.get(&QUEUES, "", "load").is_some());
    let pod = server.store.get(&PODS, "load", "gang-3-worker-4").unwrap();
    assert_eq!(pod.value["spec"]["nodeName"], "node-00001");
    assert_eq!(pod.value["metadata"]["ownerReferences"][0]["name"], "gang-3");
    let again = Workload { nodes: 0, gangs: 1, size: 2, prefix: "more".into(), ..<_>::default() };
    let waiting = LoadOptions { bind: false, timeout: Duration::ZERO, ..options(&server, again) };
    let report = run(&waiting).await.unwrap();
    assert_eq!((report.creation().n_pods, report.binding().n_pods, report.lag()), (2, 0, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_in_hyper_nodes() {
    let server = server().await;
    let workload = Workload { nodes: 4, hyper_nodes: 2, gangs: 1, size: 2, ..Workload::default() };
    let report = run(&options(&server, workload)).await.unwrap();
    assert_eq!(report.binding().n_pods, 2);
    let kind = ServedKind::find("topology.volcano.sh", "v1alpha1", "hypernodes").unwrap();
    let racks = server.store.list(kind, None).objects;
    assert_eq!(racks.len(), 2);
    let group = server.store.get(&POD_GROUPS, "load", "gang-0").unwrap();
    assert_eq!(group.value["spec"]["networkTopology"]["highestTierAllowed"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_refuses_ends_it_with_its_reason() {
    let server = server().await;
    let workload = Workload { prefix: "Not_A_Name".into(), ..Workload::default() };
    let error = run(&options(&server, workload)).await.err().unwrap().to_string();
    assert!(error.starts_with("refused: /api"), "{error}");
    assert!(error.contains("Not_A_Name"), "{error}");
}

/// The first answer is a 429, the second connection is cut, the rest is fine.
#[tokio::test(flavor = "multi_thread")]
async fn a_429_is_waited_out_and_a_lost_answer_asked_for_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let authority = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let asked = counted.clone();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                while stream.read(&mut request).await.is_ok_and(|length| 0 < length) {
                    let answer = match asked.fetch_add(1, Ordering::SeqCst) {
                        0 => "429 Too Many Requests\r\nRetry-After: 0",
                        1 => return,
                        _ => "201 Created",
                    };
                    let text = format!("HTTP/1.1 {answer}\r\nContent-Length: 2\r\n\r\n{{}}");
                    stream.write_all(text.as_bytes()).await.unwrap();
                }
            });
        }
    });
    let client = Client::new(LoadAccess::plain(&format!("http://{authority}")).unwrap());
    let make = |_| LoadObject { path: "/api/v1/nodes".into(), body: serde_json::json!({}) };
    let times = create(&client, 3, RequestRate::full(1), make).await.unwrap();
    assert_eq!((times.len(), client.waits(), asked.load(Ordering::SeqCst)), (3, 1, 5));
}

#[tokio::test]
async fn nobody_there_is_said() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let client = Client::new(LoadAccess::plain(&url).unwrap());
    let error = client.connection().get("/api").await.err().unwrap();
    assert!(matches!(error, LoadError::Connect { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_prints_a_table_and_draws_the_curves() {
    let server = server().await;
    let plot = folder("load_command").join("load.svg");
    let text = format!(
        "current-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
         clusters: [{{name: k, cluster: {{server: '{}'}}}}]\nusers: [{{name: u, user: {{}}}}]\n",
        server.url()
    );
    let kubeconfig = file("load_kubeconfig", "kubeconfig", &text);
    let path = plot.to_str().unwrap().to_owned();
    let called = tokio::task::spawn_blocking(move || {
        let size = ["--nodes", "2", "--gangs", "2", "--size", "3", "--rate", "1000"];
        let rest = ["--kubeconfig", &kubeconfig, "--bind", "--plot", &path, "--in-flight", "2"];
        vcsim(&[&["load"][..], &size, &rest].concat())
    });
    let called = called.await.unwrap();
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    assert!(called.stdout.starts_with("workload            2 gangs of 3 pods, 2 nodes created\n"));
    assert!(called.stdout.contains("/s of 6\n"), "{}", called.stdout);
    let drawn = std::fs::read_to_string(plot).unwrap();
    assert!(drawn.starts_with("<svg ") && drawn.contains(">bound</text>"));
}
