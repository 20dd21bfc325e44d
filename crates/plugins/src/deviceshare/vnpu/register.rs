//! The NPUs that a device plugin registers in an annotation of its node. Specification:
//! plugins-nodes.md 16.9.

use serde_json::Value;

/// An NPU that pods share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Npu {
    pub(super) id: String,
    pub(super) index: i64,
    /// Number of containers that can share it.
    pub(super) most_users: i64,
    /// Memory in MiB.
    pub(super) memory: i64,
    pub(super) cores: i64,
    /// Its common word.
    pub(super) word: String,
    /// False if it takes no new container.
    pub(super) is_healthy: bool,
    /// The network that joins NPUs. `None` if it is not known.
    pub(super) network: Option<i64>,
}

/// Returns the NPUs of the annotation.
///
/// # Errors
/// What is wrong with it: the node then has no NPUs.
pub(super) fn parse(text: &str) -> Result<Vec<Npu>, String> {
    let list: Vec<Value> = serde_json::from_str(text)
        .map_err(|error| format!("no list of devices in JSON: {error}"))?;
    list.iter().enumerate().map(|(at, value)| npu(at, value)).collect()
}

fn npu(at: usize, value: &Value) -> Result<Npu, String> {
    let number = at + 1;
    let amount = |key: &str| match value.get(key).map_or(Some(0), Value::as_i64) {
        Some(amount) if 0 <= amount => Ok(amount),
        _ => Err(format!("{key} of device {number} is not a number: {}", value[key])),
    };
    let text = |key: &str| match value.get(key).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("device {number} has no {key}")),
    };
    Ok(Npu {
        id: text("id")?,
        index: amount("index")?,
        most_users: amount("count")?,
        memory: amount("devmem")?,
        cores: amount("devcore")?,
        word: text("type")?,
        is_healthy: value.get("health").and_then(Value::as_bool).unwrap_or(false),
        network: value.get("custominfo").and_then(|info| info.get("NetworkID")?.as_i64()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_the_annotation() {
        let text = r#"[{"id": "A", "index": 1, "count": 7, "devmem": 21527, "devcore": 8,
            "type": "Ascend310P", "numa": 0, "health": true, "custominfo": {"NetworkID": 3}},
            {"id": "B", "count": 7, "devmem": 1, "type": "Ascend310P", "health": false}]"#;
        let npus = parse(text).unwrap();
        let shown = |npu: &Npu| (npu.id.clone(), npu.index, npu.cores, npu.is_healthy, npu.network);
        assert_eq!(shown(&npus[0]), ("A".to_owned(), 1, 8, true, Some(3)));
        assert_eq!(shown(&npus[1]), ("B".to_owned(), 0, 0, false, None));
    }

    #[test]
    fn a_broken_device_takes_all_away() {
        let broken = |text: &str| parse(text).unwrap_err();
        assert!(broken("A,7").starts_with("no list of devices in JSON: "));
        assert_eq!(broken(r#"[{"type": "x"}]"#), "device 1 has no id");
        let text = r#"[{"id": "A", "count": "7", "type": "x"}]"#;
        assert_eq!(broken(text), "count of device 1 is not a number: \"7\"");
    }
}
