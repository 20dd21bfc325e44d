use vc_sim::serve::*;
use serde_json::json;
use std::time::Instant;
#[tokio::test(flavor="multi_thread")]
async fn perf() {
    let n: usize = std::env::var("N").unwrap().parse().unwrap();
    let server = start(ServeOptions{listen:"127.0.0.1:0".parse().unwrap(), nodes: 1000, ..Default::default()}).await.unwrap();
    let t=Instant::now();
    for i in 0..n { server.store.create(&PODS,&json!({"metadata":{"name":format!("p-{i}"),"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"x","resources":{"requests":{"cpu":"1"}}}]}})).unwrap(); }
    println!("create {:?}", t.elapsed());
    for _ in 0..2 {
    let t=Instant::now();
    let url=format!("{}/api/v1/pods",server.url());
    let o=tokio::process::Command::new("curl").args(["-s","-o","/dev/null","-w","%{size_download}",&url]).output().await.unwrap();
    println!("list {:?} {}", t.elapsed(), String::from_utf8_lossy(&o.stdout));
    }
    let t=Instant::now();
    let url=format!("{}/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1",server.url());
    let o=tokio::process::Command::new("curl").args(["-s","-o","/dev/null","-w","%{size_download}",&url]).output().await.unwrap();
    println!("watch (1s timeout) {:?} {}", t.elapsed(), String::from_utf8_lossy(&o.stdout));
    let t=Instant::now();
    for i in 0..n { server.store.bind(&Key::new("default",&format!("p-{i}")),&json!({"target":{"name":"node-1"}})).unwrap(); }
    println!("bind {:?}", t.elapsed());
    let mut sub=server.store.subscribe(&PODS);
    while server.store.get(&PODS,"default",&format!("p-{}",n-1)).unwrap().value["status"]["phase"]!="Running" { if sub.next().await.is_err() { sub=server.store.subscribe(&PODS);} }
    println!("running {:?}", t.elapsed());
    let t=Instant::now();
    for i in 0..200 { let url=format!("{}/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dp-{i}",server.url()); let _=url; server.store.list(&PODS,Some("default")); }
    println!("200 in-process lists {:?}", t.elapsed());
    server.stop().await;
}
