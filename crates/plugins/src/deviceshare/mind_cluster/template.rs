//! What a pod requests of Ascend 310P chips: whole chips, or a template. Specification:
//! plugins-nodes.md 16.10 ("Request").

use vc_model::{Code, DeviceDemand};

use super::super::family::Refusal;
use super::{CORES, refusal};

const KIND: &str = "ring-controller.atlas";
const KIND_310P: &str = "ascend-310P";
const LEVEL: &str = "vnpu-level";
const DVPP: &str = "vnpu-dvpp";

/// A part of a chip.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChipTemplate {
    pub(super) name: &'static str,
    pub(super) cores: i64,
    pub(super) cpus: i64,
    pub(super) dvpp: Dvpp,
}

/// How a part uses the unit for images and videos of its chip (digital vision pre-processing).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dvpp {
    /// The part has the unit for itself.
    Yes,
    /// The part does not use it.
    No,
    /// The part shares it with others.
    Null,
}

const VIR01: ChipTemplate = ChipTemplate { name: "vir01", cores: 1, cpus: 1, dvpp: Dvpp::Null };
const VIR02: ChipTemplate = ChipTemplate { name: "vir02", cores: 2, cpus: 2, dvpp: Dvpp::Null };
const VIR02_1C: ChipTemplate =
    ChipTemplate { name: "vir02_1c", cores: 2, cpus: 1, dvpp: Dvpp::Null };
const VIR04: ChipTemplate = ChipTemplate { name: "vir04", cores: 4, cpus: 4, dvpp: Dvpp::Null };
const VIR04_3C: ChipTemplate =
    ChipTemplate { name: "vir04_3c", cores: 4, cpus: 3, dvpp: Dvpp::Null };
const VIR04_3C_NDVPP: ChipTemplate =
    ChipTemplate { name: "vir04_3c_ndvpp", cores: 4, cpus: 3, dvpp: Dvpp::No };
const VIR04_4C_DVPP: ChipTemplate =
    ChipTemplate { name: "vir04_4c_dvpp", cores: 4, cpus: 4, dvpp: Dvpp::Yes };
const ALL: [&ChipTemplate; 7] =
    [&VIR01, &VIR02, &VIR02_1C, &VIR04, &VIR04_3C, &VIR04_3C_NDVPP, &VIR04_4C_DVPP];

impl ChipTemplate {
    /// Returns the template of this name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        ALL.into_iter().find(|template| template.name == name)
    }

    /// Returns the template with as many cores and fewer AI CPUs, which a pod gets where AI CPUs are
    /// short. Returns `None` if the pod gets none in its place.
    pub(super) fn lowered(&self) -> Option<&'static Self> {
        match self.name {
            "vir02" => Some(&VIR02_1C),
            "vir04" => Some(&VIR04_3C),
            _ => None,
        }
    }
}

/// What a pod requests of the chips of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChipRequest {
    /// A number of whole chips.
    Whole(usize),
    /// A part of one chip.
    Part(&'static ChipTemplate),
}

/// Returns the AI cores that the first container requests that requests some. Returns `None` if the
/// pod is not for Ascend 310P chips.
pub(super) fn n_cores(demand: &DeviceDemand) -> Option<i64> {
    let is_310p = demand.annotations.get(KIND).is_some_and(|kind| &**kind == KIND_310P);
    let mut amounts = demand.containers.iter().filter_map(|it| it.get(CORES).copied());
    amounts.find(|&cores| 0 < cores).filter(|_| is_310p)
}

impl ChipRequest {
    /// Returns the request on a node whose chips have so many AI cores each.
    ///
    /// # Errors
    /// No template has so many cores, or the label `vnpu-dvpp` has another value than yes, no and
    /// null.
    pub(super) fn of(demand: &DeviceDemand, cores_per_chip: i64) -> Result<Self, Refusal> {
        let cores = n_cores(demand).unwrap_or(0);
        if cores % cores_per_chip == 0 {
            return Ok(Self::Whole(usize::try_from(cores / cores_per_chip).unwrap_or(usize::MAX)));
        }
        let label = |key: &str| demand.annotations.get(key).map(|value| &**value);
        let dvpp = match label(DVPP) {
            Some("yes") => Dvpp::Yes,
            Some("no") => Dvpp::No,
            Some("null") | None => Dvpp::Null,
            Some(other) => {
                let detail = format!("label {DVPP} is {other:?}, write yes, no or null");
                return Err(refusal(Code::Unresolvable, &detail));
            }
        };
        match (cores, dvpp, label(LEVEL) == Some("high")) {
            (1, _, _) => Ok(Self::Part(&VIR01)),
            (2, _, true) => Ok(Self::Part(&VIR02)),
            (2, _, false) => Ok(Self::Part(&VIR02_1C)),
            (4, Dvpp::Yes, _) => Ok(Self::Part(&VIR04_4C_DVPP)),
            (4, Dvpp::No, _) => Ok(Self::Part(&VIR04_3C_NDVPP)),
            (4, Dvpp::Null, true) => Ok(Self::Part(&VIR04)),
            (4, Dvpp::Null, false) => Ok(Self::Part(&VIR04_3C)),
            _ => {
                let detail = format!(
                    "{CORES} is {cores}, write 1, 2, 4 or a multiple of the {cores_per_chip} AI \
                     cores of a chip"
                );
                Err(refusal(Code::Unresolvable, &detail))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(cores: i64, labels: &[(&str, &str)]) -> DeviceDemand {
        let labels = [(KIND, KIND_310P)].iter().chain(labels);
        DeviceDemand {
            containers: vec![[(CORES.into(), cores)].into()],
            annotations: labels.map(|&(key, value)| (key.into(), value.into())).collect(),
            ..DeviceDemand::default()
        }
    }

    /// The name of the template, a number of chips, or what is wrong.
    fn request(cores: i64, dvpp: &str, level: &str) -> String {
        match ChipRequest::of(&demand(cores, &[(DVPP, dvpp), (LEVEL, level)]), 8) {
            Ok(ChipRequest::Whole(number)) => number.to_string(),
            Ok(ChipRequest::Part(template)) => template.name.to_owned(),
            Err(refusal) => refusal.reason,
        }
    }

    #[test]
    fn nodes_156_the_template_by_cores_dvpp_and_level() {
        for (cores, dvpp, level, expected) in [
            (1, "null", "low", "vir01"),
            (1, "null", "high", "vir01"),
            (2, "null", "low", "vir02_1c"),
            (2, "null", "other", "vir02_1c"),
            (2, "null", "high", "vir02"),
            (4, "yes", "low", "vir04_4c_dvpp"),
            (4, "yes", "high", "vir04_4c_dvpp"),
            (4, "no", "low", "vir04_3c_ndvpp"),
            (4, "no", "high", "vir04_3c_ndvpp"),
            (4, "null", "low", "vir04_3c"),
            (4, "null", "high", "vir04"),
            (8, "yes", "high", "1"),
            (24, "x", "x", "3"),
        ] {
            assert_eq!(request(cores, dvpp, level), expected, "{cores} {dvpp} {level}");
        }
        assert_eq!(
            request(3, "null", "low"),
            "no Ascend310P chip available: huawei.com/npu-core is 3, write 1, 2, 4 or a multiple \
             of the 8 AI cores of a chip"
        );
        assert_eq!(
            request(4, "maybe", "low"),
            "no Ascend310P chip available: label vnpu-dvpp is \"maybe\", write yes, no or null"
        );
    }

    #[test]
    fn only_pods_with_the_label_request_chips() {
        assert_eq!(n_cores(&demand(4, &[])), Some(4));
        assert_eq!(n_cores(&demand(0, &[])), None);
        assert_eq!(n_cores(&demand(4, &[(KIND, "ascend-910")])), None);
        let two = DeviceDemand {
            containers: vec![[("a/b".into(), 7)].into(), [(CORES.into(), 2)].into()],
            ..demand(1, &[])
        };
        assert_eq!(n_cores(&two), Some(2));
    }
}
