//! What the API server takes in some time after it was stored, or after its own start: kinds, and
//! who may do what.

use serde_json::{Value, json};

use crate::api::{Api, text, until};
use crate::cluster::manifests;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// Waits until the kinds of the manifests are served and discovery names them.
pub(crate) async fn kinds(api: &Api) {
    let objects = manifests();
    let kinds = objects.iter().filter(|object| object["kind"] == "CustomResourceDefinition");
    for kind in kinds.map(|definition| &definition["spec"]) {
        let plural = text(&kind["names"]["plural"]);
        let version = text(&kind["versions"][0]["name"]);
        let group = format!("/apis/{}/{version}", text(&kind["group"]));
        until(&format!("{plural} are served"), async || {
            let known = api.get(&group).await.ok()?;
            known["resources"].as_array()?.iter().find(|row| row["name"] == plural)?;
            api.get(&format!("{group}/{plural}")).await.ok()
        })
        .await;
    }
}

/// Waits until the roles of the scheduler are in force, that of the cluster and that of its namespace.
pub(crate) async fn rights(api: &Api) {
    let lease = json!({"verb": "create", "group": "coordination.k8s.io", "resource": "leases",
        "namespace": "volcano-system"});
    for what in [binding(), lease] {
        review(api, &what, true).await;
    }
}

/// Waits until it may bind no pod any more.
pub(crate) async fn no_rights(api: &Api) {
    review(api, &binding(), false).await;
}

fn binding() -> Value {
    json!({"verb": "create", "resource": "pods", "subresource": "binding", "namespace": "default"})
}

/// Waits until the scheduler is allowed to do that, or is not.
pub(crate) async fn review(api: &Api, what: &Value, allowed: bool) {
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": "system:serviceaccount:volcano-system:vc-scheduler",
            "resourceAttributes": what}});
    until(&format!("allowed is {allowed}: {what}"), async || {
        let review = api.post(REVIEWS, &body).await.ok()?;
        (review["status"]["allowed"] == allowed).then_some(())
    })
    .await;
}
