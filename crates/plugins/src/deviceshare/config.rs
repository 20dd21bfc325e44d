//! The device configuration: names of resources, and what partitions devices can have. It stands in
//! a ConfigMap or in an argument. Specification: plugins-nodes.md 16.2.

use vc_conf::{Argument, Arguments, FreeForm, StructuredPart, Warning};

use super::vgpu::{MigGeometry, MigGroup, MigInstance, VgpuConfig};

/// The device configuration itself, which goes before the ConfigMap. The process writes the content
/// of the ConfigMap here.
pub(super) const DEVICE_CONFIG: Argument<FreeForm> = Argument::new(
    "deviceshare.DeviceConfig",
    FreeForm("map", &["object"]),
    "content of `device-config.yaml` in place of the ConfigMap",
)
.shown_as("that of the ConfigMap");

/// Instances of one type that a GPU can have at most. More are a typing error.
const MOST_INSTANCES: i64 = 64;

/// Reads the configuration of vGPUs. What is absent has its default.
pub(super) fn vgpu(arguments: &Arguments, warnings: &mut Vec<Warning>) -> VgpuConfig {
    let part = arguments.structured(DEVICE_CONFIG.key).field("nvidia");
    let mut config = VgpuConfig::default();
    let texts = [
        ("resourceCountName", &mut config.number),
        ("resourceMemoryName", &mut config.memory),
        ("resourceCoreName", &mut config.cores),
        ("resourceMemoryPercentageName", &mut config.percentage),
    ];
    for (name, text) in texts {
        let given = part.field(name).text();
        if !given.is_empty() {
            *text = given.to_owned();
        }
    }
    config.memory_factor = part.field("gpuMemoryFactor").int().unwrap_or(1).max(1);
    let geometries = part.field("knownMigGeometries");
    if geometries.is_given() {
        let mut problems = Vec::new();
        let items = geometries.items().enumerate();
        config.geometries = items.map(|(at, item)| geometry(at, item, &mut problems)).collect();
        warnings.extend(problems.into_iter().map(|(problem, remedy)| {
            arguments.warning(DEVICE_CONFIG.key, &format!("{problem}, it is left out"), remedy)
        }));
    }
    config
}

/// What is wrong, with a remedy.
type Problem = (String, &'static str);

fn geometry(at: usize, part: StructuredPart<'_>, problems: &mut Vec<Problem>) -> MigGeometry {
    let field = format!("nvidia.knownMigGeometries[{at}]");
    let models = part.field("models").items().map(|model| model.text().to_owned());
    let models: Vec<String> = models.filter(|model| !model.is_empty()).collect();
    if models.is_empty() {
        problems.push((format!("{field} names no models"), "write parts of names of GPU models"));
    }
    let groups = part.field("allowedGeometries").items().filter_map(|group| {
        let name = group.field("group").text();
        if name.is_empty() || name.contains(['-', ',', ';', ':', '[', ']']) {
            let problem = format!("{field}: group {name:?} is no name that annotations can hold");
            problems.push((problem, "write a name of letters and digits, such as group1"));
            return None;
        }
        let types = group.field("geometries").items();
        let types = types.filter_map(|part| instance(&field, name, part, problems)).collect();
        Some(MigGroup { name: name.to_owned(), instances: types })
    });
    MigGeometry { groups: groups.collect(), models }
}

fn instance(
    field: &str,
    group: &str,
    part: StructuredPart<'_>,
    problems: &mut Vec<Problem>,
) -> Option<MigInstance> {
    let amount = |name: &str| part.field(name).int().unwrap_or(0);
    let (memory, count) = (amount("memory"), amount("count"));
    let is_right = 0 < memory && (1..=MOST_INSTANCES).contains(&count);
    if !is_right {
        let name = part.field("name").text();
        let problem =
            format!("{field}: instance {name:?} of {group} has memory {memory} and count {count}");
        problems.push((problem, "write its memory in MiB and a count of 1 to 64"));
    }
    is_right.then_some(MigInstance { memory, count })
}
