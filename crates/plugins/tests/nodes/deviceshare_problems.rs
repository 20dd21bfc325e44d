//! Annotations of nodes that cannot be read: they take the devices of their node away, the log says so
//! once, and other nodes keep theirs. Specification: plugins-nodes.md 16.3.

use serde_json::json;
use vc_model::{ClusterEvent, Code, NodeRecord};

use crate::bed::{PluginFixture, node, plugin, pod};

/// A kind of devices whose annotation is broken on a node.
struct Broken {
    switch: &'static str,
    annotation: &'static str,
    good: &'static str,
    bad: &'static str,
    /// Resource and amount that a pod requests, and further ones that a node has.
    request: (&'static str, &'static str),
    offers: &'static [(&'static str, &'static str)],
    reason: &'static str,
    warning: &'static str,
}

const BROKEN: &[Broken] = &[
    Broken {
        switch: "deviceshare.VGPUEnable",
        annotation: "volcano.sh/node-vgpu-register",
        good: "GPU-0,10,32768,NVIDIA-V100,true,hami-core:",
        bad: "GPU-0,10,32768,NVIDIA-V100,true,hami-core:GPU-1,10:",
        request: ("volcano.sh/vgpu-memory", "1000"),
        offers: &[
            ("volcano.sh/vgpu-number", "10"),
            ("volcano.sh/vgpu-memory", "32768"),
            ("volcano.sh/vgpu-cores", "100"),
        ],
        reason: "hami-vgpuDeviceSharing error: no vGPU is registered on this node",
        warning: "device 2 has 2 fields in place of 6 (uuid,count,memory,type,health,mode)",
    },
    Broken {
        switch: "deviceshare.GPUSharingEnable",
        annotation: "volcano.sh/gpu-unhealthy-ids",
        good: "0",
        bad: "0,first",
        request: ("volcano.sh/gpu-memory", "1000"),
        offers: &[("volcano.sh/gpu-memory", "8000"), ("volcano.sh/gpu-number", "4")],
        reason: "GpuShare no enough gpu memory on node bad",
        warning: "not the number of a card: \"first\"",
    },
    Broken {
        switch: "deviceshare.GPUNumberEnable",
        annotation: "volcano.sh/gpu-unhealthy-ids",
        good: "0",
        bad: "x",
        request: ("volcano.sh/gpu-number", "1"),
        offers: &[("volcano.sh/gpu-memory", "8000"), ("volcano.sh/gpu-number", "4")],
        reason: "GpuNumber no enough gpu number on node bad",
        warning: "not the number of a card: \"x\"",
    },
    Broken {
        switch: "deviceshare.AscendHAMiVNPUEnable",
        annotation: "hami.io/node-register-Ascend310P",
        good: r#"[{"id": "A", "count": 7, "devmem": 21527, "type": "Ascend310P", "health": true}]"#,
        bad: r#"[{"count": 7, "devmem": 21527, "type": "Ascend310P", "health": true}]"#,
        request: ("huawei.com/Ascend310P", "1"),
        offers: &[("huawei.com/Ascend310P", "7")],
        reason: "no ascend device available: no Ascend310P is registered on this node",
        warning: "device 1 has no id",
    },
];

impl Broken {
    fn node(&self, name: &str, text: &str) -> NodeRecord {
        let annotations = [(self.annotation.into(), text.into())].into();
        NodeRecord { annotations, ..node(name, self.offers) }
    }
}

#[test]
fn nodes_163_a_broken_annotation_takes_the_devices_of_its_node_away() {
    for kind in BROKEN {
        let mut plugin = plugin("deviceshare", &[(kind.switch, json!(true))]);
        let nodes = vec![kind.node("bad", kind.bad), kind.node("good", kind.good)];
        let mut bed = PluginFixture::new(nodes, vec![pod("p", &[kind.request])]);
        let found = bed.findings(&*plugin, "p", "bad");
        assert_eq!(found.len(), 1, "{}", kind.switch);
        assert_eq!(found[0].code, Code::Unresolvable, "{}", kind.switch);
        assert_eq!(bed.reasons(&*plugin, "p", "bad"), [kind.reason]);
        assert_eq!(bed.reasons(&*plugin, "p", "good"), [""; 0], "{}", kind.switch);
        let warnings = bed.scores(&mut *plugin, "p").1;
        let begin = format!(
            "node bad: annotation {}: {}, its devices are not used\nhint: ",
            kind.annotation, kind.warning
        );
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with(&begin), "{warnings:?}");
        assert_eq!(bed.scores(&mut *plugin, "p").1, [""; 0], "said twice");
        bed.apply(ClusterEvent::NodeApplied(Box::new(kind.node("bad", kind.good))));
        assert_eq!(bed.reasons(&*plugin, "p", "bad"), [""; 0], "{}", kind.switch);
    }
}
