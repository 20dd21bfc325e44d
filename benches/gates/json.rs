//! A pod as the API server writes it.

/// As a kubelet and the controllers leave it.
pub(crate) fn pod_json(number: u32) -> String {
    let labels = r#"{"volcano.sh/job-name":"job","volcano.sh/job-namespace":"bench",
        "volcano.sh/queue-name":"default","volcano.sh/task-spec":"worker"}"#;
    let condition = |name| {
        format!(
            r#"{{"type":"{name}","status":"True","lastProbeTime":null,
                "lastTransitionTime":"2026-05-31T00:00:00Z"}}"#
        )
    };
    let conditions =
        ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition).join(",");
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"job-worker-{number}",
        "namespace":"bench","uid":"00000002-0000-4000-8000-{number:012}","resourceVersion":"{number}",
        "creationTimestamp":"2026-05-31T00:00:00Z","labels":{labels},"annotations":
        {{"scheduling.k8s.io/group-name":"job","volcano.sh/job-name":"job",
        "volcano.sh/task-spec":"worker"}},"ownerReferences":[{{"apiVersion":"batch.volcano.sh/v1alpha1",
        "kind":"Job","name":"job","uid":"u","controller":true}}],"managedFields":[{{"manager":"x",
        "operation":"Update","fieldsV1":{{"f:spec":{{"f:nodeName":{{}}}}}}}}]}},
        "spec":{{"schedulerName":"volcano","nodeName":"node-00001","priority":0,"containers":
        [{{"name":"main","image":"registry.example.com/train:1","command":["sh","-c","train"],
        "env":[{{"name":"A","value":"1"}},{{"name":"B","value":"2"}}],"resources":{{"requests":
        {{"cpu":"2","memory":"8Gi"}},"limits":{{"cpu":"2","memory":"8Gi"}}}}}}],"tolerations":
        [{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute",
        "tolerationSeconds":300}}]}},"status":{{"phase":"Running","conditions":[{conditions}],
        "hostIP":"10.0.0.1","podIP":"10.1.0.1","startTime":"2026-05-31T00:00:00Z",
        "containerStatuses":[{{"name":"main","ready":true,"restartCount":0,"image":"x",
        "imageID":"y","state":{{"running":{{"startedAt":"2026-05-31T00:00:00Z"}}}}}}]}}}}"#
    )
}
