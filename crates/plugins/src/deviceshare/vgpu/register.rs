//! The vGPUs that a device plugin registers in an annotation of its node. Specification:
//! plugins-nodes.md 16.5 ("Node").

/// A GPU that pods share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VgpuCard<'a> {
    pub(super) uuid: &'a str,
    /// Number of containers that can share it.
    pub(super) most_users: i64,
    /// Memory in MiB.
    pub(super) memory: i64,
    /// Vendor and model, as in `NVIDIA-A100`.
    pub(super) model: &'a str,
    /// False if it takes no new container.
    pub(super) is_healthy: bool,
    pub(super) mode: Mode,
}

/// How containers share a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    HamiCore,
    Mig,
}

impl Mode {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::HamiCore => "hami-core",
            Self::Mig => "mig",
        }
    }
}

const FIELDS: &str = "uuid,count,memory,type,health,mode";

/// Returns the cards of the annotation, by index.
///
/// # Errors
/// What is wrong with it: the node then has no devices.
pub(super) fn parse(text: &str) -> Result<Vec<VgpuCard<'_>>, String> {
    let entries = text.split(':').filter(|entry| !entry.trim().is_empty());
    entries.enumerate().map(|(at, entry)| card(at + 1, entry)).collect()
}

fn card(number: usize, entry: &str) -> Result<VgpuCard<'_>, String> {
    let fields: Vec<&str> = entry.split(',').collect();
    let [uuid, count, memory, model, health, mode, ..] = fields[..] else {
        let found = fields.len();
        return Err(format!("device {number} has {found} fields in place of 6 ({FIELDS})"));
    };
    let amount = |name: &str, text: &str| match text.parse::<i64>() {
        Ok(amount) if 0 <= amount => Ok(amount),
        _ => Err(format!("{name} of device {number} is not a number: {text:?}")),
    };
    Ok(VgpuCard {
        uuid,
        most_users: amount("count", count)?,
        memory: amount("memory", memory)?,
        model,
        is_healthy: matches!(health, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        mode: if mode == "mig" { Mode::Mig } else { Mode::HamiCore },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_145_an_entry_has_six_fields() {
        let text =
            "GPU-0,10,32768,NVIDIA-V100,true,hami-core:GPU-1,10,40960,NVIDIA-A100,false,mig,x:";
        let cards = parse(text).unwrap();
        let shown =
            |card: &VgpuCard<'_>| (card.most_users, card.memory, card.is_healthy, card.mode);
        assert_eq!(cards.iter().map(|card| card.uuid).collect::<Vec<_>>(), ["GPU-0", "GPU-1"]);
        assert_eq!(shown(&cards[0]), (10, 32768, true, Mode::HamiCore));
        assert_eq!(shown(&cards[1]), (10, 40960, false, Mode::Mig));
        assert_eq!(cards[1].model, "NVIDIA-A100");
        assert_eq!(parse(""), Ok(Vec::new()));
    }

    #[test]
    fn a_broken_entry_takes_all_devices_away() {
        let broken = |text: &str| parse(text).unwrap_err();
        let good = "GPU-0,10,32768,NVIDIA-V100,true,hami-core:";
        assert_eq!(
            broken(&format!("{good}GPU-1,10,32768:")),
            "device 2 has 3 fields in place of 6 (uuid,count,memory,type,health,mode)"
        );
        let text = "GPU-0,10,-1,NVIDIA-V100,true,hami-core:";
        assert_eq!(broken(text), "memory of device 1 is not a number: \"-1\"");
    }
}
