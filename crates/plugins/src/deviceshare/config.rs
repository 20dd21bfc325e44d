//! The device configuration: names of resources, and what partitions devices can have. It stands in
//! a ConfigMap or in an argument. Specification: plugins-nodes.md 16.2.

use vc_conf::{Argument, Arguments, Config, FreeForm, PluginOption, StructuredPart, Warning};

use super::vgpu::{MigGeometry, MigGroup, MigInstance, VgpuConfig};
use super::vnpu::{VnpuChip, VnpuTemplate, known_chips};

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

/// The ConfigMap with the device configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceConfigMap {
    pub namespace: String,
    pub name: String,
}

impl DeviceConfigMap {
    /// Key of the ConfigMap that is read.
    pub const KEY: &str = "device-config.yaml";

    /// Returns the ConfigMap that the configuration needs. Returns `None` if no kind of devices is
    /// switched on that reads it, or the configuration has the content itself.
    pub fn of(config: &Config) -> Option<Self> {
        let mut options = config.tiers.iter().flat_map(|tier| &tier.plugins);
        let arguments = &options.find(|option| reads_config_map(option))?.arguments;
        let text = |argument: Argument<&'static str>| argument.read(arguments, &mut Vec::new());
        Some(Self { namespace: text(super::CONFIG_MAP_NAMESPACE), name: text(super::CONFIG_MAP) })
    }
}

/// True if the configuration needs the reports of device plugins about Ascend chips.
pub fn needs_device_reports(config: &Config) -> bool {
    let mut options = config.tiers.iter().flat_map(|tier| &tier.plugins);
    let is_on =
        |option: &PluginOption| super::ASCEND_MIND_CLUSTER.read(&option.arguments, &mut Vec::new());
    options.any(|option| option.name == super::ENTRY.name() && is_on(option))
}

/// Returns the configuration with the content of the ConfigMap as an argument.
///
/// # Errors
/// The content is no YAML, or no map.
pub fn with_device_config(mut config: Config, text: &str) -> Result<Config, String> {
    let value = vc_conf::argument_value(text)?;
    if !value.is_object() && !value.is_null() {
        return Err("expected a map with the keys nvidia and vnpus".to_owned());
    }
    let options = config.tiers.iter_mut().flat_map(|tier| &mut tier.plugins);
    for option in options.filter(|option| reads_config_map(option)) {
        option.arguments.set(DEVICE_CONFIG.key, value.clone());
    }
    Ok(config)
}

fn reads_config_map(option: &PluginOption) -> bool {
    let is_on = |argument: &Argument<bool>| argument.read(&option.arguments, &mut Vec::new());
    option.name == super::ENTRY.name()
        && option.arguments.get(DEVICE_CONFIG.key).is_none()
        && [super::VGPU, super::ASCEND_HAMI].iter().any(is_on)
}

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

/// The part about NPUs of Ascend.
pub(super) struct VnpuConfig {
    /// True if nodes take parts of any size.
    pub(super) is_soft: bool,
    /// One kind of devices each, in the order in which they are asked.
    pub(super) chips: Vec<VnpuChip>,
}

/// Reads the configuration of NPUs: a list of chips, or a record with the list under `configs`.
/// Without the part there are the chips that are built in.
pub(super) fn vnpu(arguments: &Arguments, warnings: &mut Vec<Warning>) -> VnpuConfig {
    let part = arguments.structured(DEVICE_CONFIG.key).field("vnpus");
    let list = if part.is_list() { part } else { part.field("configs") };
    let is_soft = part.field("hamiVnpuCore").is_true();
    if !part.is_given() {
        return VnpuConfig { is_soft, chips: known_chips() };
    }
    let (mut chips, mut problems): (Vec<VnpuChip>, Vec<Problem>) = (Vec::new(), Vec::new());
    for (at, item) in list.items().enumerate() {
        match chip(item) {
            Some(chip) if chips.iter().all(|known| known.word != chip.word) => chips.push(chip),
            Some(_) => problems.push((
                format!("vnpus[{at}] has the commonWord of an earlier one"),
                "write one entry for each commonWord",
            )),
            None => problems.push((
                format!("vnpus[{at}] has no commonWord, resourceName or memoryAllocatable"),
                "write the entry as the Ascend device plugin documents it",
            )),
        }
    }
    warnings.extend(problems.into_iter().map(|(problem, remedy)| {
        arguments.warning(DEVICE_CONFIG.key, &format!("{problem}, it is left out"), remedy)
    }));
    VnpuConfig { is_soft, chips }
}

fn chip(part: StructuredPart<'_>) -> Option<VnpuChip> {
    let text = |name: &str| part.field(name).text().to_owned();
    let amount = |part: StructuredPart<'_>, name: &str| part.field(name).int().unwrap_or(0);
    let template = |part: StructuredPart<'_>| VnpuTemplate {
        name: part.field("name").text().to_owned(),
        memory: amount(part, "memory"),
    };
    let mut templates: Vec<VnpuTemplate> = part.field("templates").items().map(template).collect();
    templates.sort_by_key(|template| template.memory);
    let number = text("resourceName");
    let chip = VnpuChip {
        word: text("commonWord"),
        cores: format!("{number}-core"),
        number,
        memory: text("resourceMemoryName"),
        allocatable: amount(part, "memoryAllocatable"),
        capacity: amount(part, "memoryCapacity"),
        templates,
    };
    let is_whole = !chip.word.is_empty() && !chip.number.is_empty() && 0 < chip.allocatable;
    is_whole.then_some(chip)
}
