//! Shared devices of nodes and pods in random stories, as words of a line.

/// Nodes with two cards of 100 MiB, as vGPUs for two or three containers each.
pub(super) const CARDS: [(u32, &str); 11] = [
    (
        4,
        "volcano.sh/vgpu-number=4 volcano.sh/vgpu-memory=200 volcano.sh/vgpu-cores=200 \
         annotation.hamivgpu=2026-01-01T01:00:00Z annotation.volcano.sh/node-vgpu-register=\
         G0,2,100,NVIDIA-A,true,hami-core:G1,2,100,NVIDIA-A,true,hami-core:",
    ),
    (6, "volcano.sh/gpu-memory=200 volcano.sh/gpu-number=2"),
    (
        2,
        "volcano.sh/gpu-memory=300 volcano.sh/gpu-number=3 \
         annotation.volcano.sh/gpu-unhealthy-ids=1",
    ),
    (
        12,
        "volcano.sh/vgpu-number=6 volcano.sh/vgpu-memory=200 volcano.sh/vgpu-cores=200 \
         annotation.volcano.sh/node-vgpu-register=\
         G0,3,100,NVIDIA-A,true,hami-core:G1,3,100,NVIDIA-B,true,hami-core:",
    ),
    (
        6,
        "volcano.sh/vgpu-number=4 volcano.sh/vgpu-memory=200 volcano.sh/vgpu-cores=200 \
         annotation.volcano.sh/node-vgpu-register=\
         G0,2,100,NVIDIA-A,true,hami-core:G1,2,100,NVIDIA-A,false,hami-core:",
    ),
    (
        2,
        "volcano.sh/vgpu-number=4 volcano.sh/vgpu-memory=200 volcano.sh/vgpu-cores=200 \
         annotation.volcano.sh/node-vgpu-register=G0,2,100",
    ),
    (2, "volcano.sh/vgpu-number=4 volcano.sh/vgpu-memory=200 volcano.sh/vgpu-cores=200"),
    (
        6,
        "volcano.sh/vgpu-number=6 volcano.sh/vgpu-memory=200 volcano.sh/vgpu-cores=200 \
         annotation.volcano.sh/node-vgpu-register=\
         G0,3,100,NVIDIA-A,true,mig:G1,3,100,NVIDIA-B,true,mig:",
    ),
    (
        6,
        "huawei.com/Ascend310P=14 annotation.hami.io/node-register-Ascend310P=\
         [{\"id\":\"A0\",\"count\":3,\"devmem\":21527,\"devcore\":8,\"type\":\"Ascend310P\",\
         \"health\":true},{\"id\":\"A1\",\"index\":1,\"count\":2,\"devmem\":21527,\"devcore\":8,\
         \"type\":\"Ascend310P\",\"health\":true}]",
    ),
    (
        5,
        "huawei.com/npu-core=16 label.accelerator=huawei-Ascend310P label.servertype=Ascend310P-8 \
         annotation.huawei.com/Ascend310P=Ascend310P-0,Ascend310P-1",
    ),
    (
        1,
        "huawei.com/npu-core=16 label.accelerator=huawei-Ascend310P label.servertype=Ascend310P-8 \
         annotation.huawei.com/Ascend310P=Ascend310P-0 \
         annotation.huawei.com/Ascend310P-Unhealthy=Ascend310P-1",
    ),
];

/// What pods request of them, and what some of them have got.
pub(super) const SHARES: [(u32, &str); 18] = [
    (8, "volcano.sh/gpu-memory=60"),
    (6, "volcano.sh/gpu-number=1"),
    (4, "volcano.sh/gpu-memory=50 volcano.sh/gpu-number=1 annotation.volcano.sh/gpu-index=0"),
    (12, "volcano.sh/vgpu-memory=60"),
    (8, "volcano.sh/vgpu-memory=30 volcano.sh/vgpu-cores=40"),
    (6, "volcano.sh/vgpu-number=2 volcano.sh/vgpu-memory=40"),
    (6, "volcano.sh/vgpu-number=1 volcano.sh/vgpu-cores=100"),
    (6, "volcano.sh/vgpu-memory=20 annotation.volcano.sh/vgpu-podgroup-policy=spread"),
    (4, "volcano.sh/vgpu-memory=50 annotation.nvidia.com/use-gputype=b"),
    (4, "volcano.sh/vgpu-memory=50 annotation.volcano.sh/vgpu-nouse-gpuuuid=G0"),
    (8, "volcano.sh/vgpu-memory=70 annotation.volcano.sh/vgpu-ids-new=G0,NVIDIA,70,10:"),
    (6, "huawei.com/Ascend310P=1 huawei.com/Ascend310P-memory=6000"),
    (3, "huawei.com/Ascend310P=2"),
    (
        3,
        "huawei.com/Ascend310P=1 huawei.com/Ascend310P-memory=9000 \
         huawei.com/Ascend310P-core=40 annotation.huawei.com/vnpu-mode=hami-core",
    ),
    (4, "huawei.com/npu-core=2 label.ring-controller.atlas=ascend-310P label.vnpu-level=high"),
    (3, "huawei.com/npu-core=4 label.ring-controller.atlas=ascend-310P label.vnpu-dvpp=yes"),
    (
        3,
        "huawei.com/npu-core=1 label.ring-controller.atlas=ascend-310P \
         annotation.huawei.com/npu-core=0-vir01 annotation.huawei.com/AscendReal=Ascend310P-1c-9-0_0",
    ),
    (2, "huawei.com/npu-core=8 label.ring-controller.atlas=ascend-310P"),
];
