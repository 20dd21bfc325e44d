use vc_sim::serve::*;
#[tokio::test(flavor="multi_thread")]
async fn manual() {
    let server = start(ServeOptions{listen:"127.0.0.1:0".parse().unwrap(), nodes: 3, write_kubeconfig: Some("/tmp/kc".into()), ..Default::default()}).await.unwrap();
    let o=tokio::process::Command::new("bash").arg("/tmp/manual.sh").env("URL",server.url()).output().await.unwrap();
    println!("{}\n{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
    server.stop().await;
}
