//! The client as it is really built: a refusal is not repeated behind our back (K-01).

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use vc_engine::Effect;
use vc_kube::{Clients, EngineMessage, ServerAccess, inbox, write};
use vc_model::{ClusterEvent, ObjectKey};

use crate::fake::unobserved;

/// Answers 429 to everything, and tells each request's head.
async fn refuses_all() -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, heads) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = vec![0; 4096];
            let n_bytes = stream.read(&mut buffer).await.unwrap();
            let _ = sender.send(String::from_utf8_lossy(&buffer[..n_bytes]).into_owned());
            let body = r#"{"kind":"Status","status":"Failure","code":429,"message":"too many"}"#;
            let head = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 0\r\nconnection: close";
            let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (address, heads)
}

#[tokio::test]
async fn eco_10_too_many_requests_reaches_the_caller_at_once() {
    let (address, mut heads) = refuses_all().await;
    let access =
        ServerAccess { master: address, kubeconfig: String::new(), qps: 100.0, burst: 100 };
    let clients = Clients::connect(&access, &unobserved()).await.unwrap();
    let (sender, mut receiver) = inbox();
    let (effects, batches) = mpsc::channel(1);
    let writer = tokio::spawn(write(clients, "volcano".into(), sender, batches, unobserved()));
    // Of a binding the writer itself waits a 429 out.
    let gate = Effect::RemoveGate { pod: ObjectKey::new("ns", "p"), uid: "u".into() };
    effects.send(vec![gate].into()).await.unwrap();
    let outcome = receiver.recv().await;
    let failed =
        matches!(outcome, Some(EngineMessage::Event(ClusterEvent::PodStatusFailed { .. })));
    assert!(failed, "{outcome:?}");
    let first = heads.recv().await.unwrap();
    assert!(first.starts_with("PATCH /api/v1/namespaces/ns/pods/p"), "{first}");
    assert!(first.contains("user-agent: vc-scheduler/"), "{first}");
    assert!(heads.try_recv().is_err(), "asked again");
    writer.abort();
}
