//! The ConfigMap with the device configuration of the plugin `deviceshare`. Specification:
//! plugins-nodes.md 16.2.

use serde_json::json;
use vc_conf::{Config, PluginOption, Tier};
use vc_plugins::{DeviceConfigMap, with_device_config};

fn config(arguments: &[(&str, serde_json::Value)]) -> Config {
    let arguments = arguments.iter().map(|(key, value)| (*key, value.clone())).collect();
    let option =
        PluginOption { name: "deviceshare".to_owned(), arguments, ..PluginOption::default() };
    let gang = PluginOption { name: "gang".to_owned(), ..PluginOption::default() };
    Config { tiers: vec![Tier { plugins: vec![gang, option] }], ..Config::default() }
}

#[test]
fn kinds_that_need_the_config_map() {
    let map = |arguments: &[(&str, serde_json::Value)]| {
        let map = DeviceConfigMap::of(&config(arguments))?;
        Some(format!("{}/{}", map.namespace, map.name))
    };
    let (vgpu, on) = ("deviceshare.VGPUEnable", json!(true));
    let usual = Some("kube-system/volcano-vgpu-device-config".to_owned());
    assert_eq!(map(&[(vgpu, on.clone())]), usual);
    assert_eq!(map(&[("deviceshare.AscendHAMiVNPUEnable", on.clone())]), usual);
    assert_eq!(map(&[("deviceshare.GPUSharingEnable", on.clone())]), None);
    assert_eq!(map(&[(vgpu, on.clone()), ("deviceshare.DeviceConfig", json!({}))]), None);
    let names = [
        (vgpu, on),
        ("deviceshare.KnownGeometriesCMName", json!("mine")),
        ("deviceshare.KnownGeometriesCMNamespace", json!("here")),
    ];
    assert_eq!(map(&names), Some("here/mine".to_owned()));
}

#[test]
fn the_content_becomes_an_argument() {
    let vgpu = config(&[("deviceshare.VGPUEnable", json!(true))]);
    let text = "nvidia:\n  gpuMemoryFactor: 10\n  knownMigGeometries:\n  - models: [A30]\n";
    let content =
        json!({"nvidia": {"gpuMemoryFactor": 10, "knownMigGeometries": [{"models": ["A30"]}]}});
    let both = [("deviceshare.VGPUEnable", json!(true)), ("deviceshare.DeviceConfig", content)];
    assert_eq!(with_device_config(vgpu.clone(), text), Ok(config(&both)));
    // What the file says goes before.
    assert_eq!(with_device_config(config(&both), "nvidia: {}"), Ok(config(&both)));
    let broken = with_device_config(vgpu.clone(), "nvidia: [").unwrap_err();
    assert!(broken.starts_with("line "), "{broken}");
    let list = with_device_config(vgpu, "[1]").unwrap_err();
    assert_eq!(list, "expected a map with the keys nvidia and vnpus");
}
