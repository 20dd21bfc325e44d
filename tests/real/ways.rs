//! What a real API server says of ways to a scheduler that are not there. Specification: answers.md 13 (ANS-88), case
//! 79.

use serde_json::json;
use vc_kube::{
    AnswersAccess, AnswersClient, AnswersWay, find_answers_pods, find_answers_services,
    has_answers_group,
};

use crate::api::until;
use crate::cluster::Cluster;
use crate::objects::LABEL;

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

/// The administrator, who has a certificate and may have the token of the scheduler's ServiceAccount.
fn administrator(cluster: &Cluster) -> AnswersAccess {
    AnswersAccess {
        kubeconfig: Some(cluster.dir().join("admin.kubeconfig")),
        service_account: Some(("volcano-system".to_owned(), "vc-scheduler".to_owned())),
        ..AnswersAccess::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ans_88_a_group_without_a_scheduler_is_not_there() {
    let cluster = Cluster::take("group", 0).await;
    let access = administrator(&cluster);
    assert!(!has_answers_group(&access).await.unwrap());
    let name = "v1.answers.volcano.sh";
    let service = json!({"namespace": "volcano-system", "name": "nobody", "port": 11253});
    let api_service = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": name, "labels": {LABEL: ""}},
        "spec": {"group": "answers.volcano.sh", "version": "v1", "groupPriorityMinimum": 100,
            "versionPriority": 10, "insecureSkipTLSVerify": true, "service": service}});
    cluster.api.create(&api_service).await.unwrap();
    let problem = until("the group", async || has_answers_group(&access).await.err()).await;
    let expected = "no answer from the API server: service unavailable\nhint: ";
    assert!(problem.is_not_there() && problem.to_string().starts_with(expected), "{problem}");
    let client = AnswersClient::by(&access, AnswersWay::ApiServer).await.unwrap();
    let error = client.get("queues").await.unwrap_err();
    assert!(error.is_not_there() && error.to_string().starts_with(expected), "{error}");
    cluster.api.delete(&format!("{API_SERVICES}/{name}")).await.unwrap();
    until("no group", async || has_answers_group(&access).await.ok().filter(|has| !has)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ans_88_services_and_tunnels_of_a_real_api_server_that_are_not_there() {
    let cluster = Cluster::take("tunnel", 0).await;
    cluster.without_kubelet();
    let access = administrator(&cluster);
    let service = (cluster.namespace.to_owned(), "nobody".to_owned());
    let named = AnswersAccess { service: Some(service), ..access.clone() };
    let error = AnswersClient::new(&named).await.unwrap().get("queues").await.unwrap_err();
    assert!(error.is_not_there(), "{error}");
    assert!(find_answers_services(&access, cluster.namespace).await.unwrap().is_empty());

    let none = find_answers_pods(&access, cluster.namespace).await.unwrap_err();
    assert!(none.is_not_there(), "{none}");
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "vc-0", "namespace": cluster.namespace,
            "labels": {"scheduling.volcano.sh/answers": "true"}},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "x"}]}});
    cluster.api.create(&pod).await.unwrap();
    assert!(find_answers_pods(&access, cluster.namespace).await.is_err(), "it is not ready");
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    cluster.api.merge(&cluster.path("pods/vc-0/status"), &ready).await.unwrap();
    let pods = find_answers_pods(&access, cluster.namespace).await.unwrap();
    let [pod] = &pods[..] else { panic!("{pods:?}") };
    assert_eq!((pod.name.as_str(), pod.port), ("vc-0", 11253));
    let client = AnswersClient::by(&access, AnswersWay::Pod(pod.clone())).await.unwrap();
    let error = client.get("queues").await.unwrap_err();
    let text = error.to_string();
    assert!(error.is_not_there() && text.contains("does not have a host assigned"), "{text}");
}
