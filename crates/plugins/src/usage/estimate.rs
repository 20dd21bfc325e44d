//! What a pod is taken to use until monitoring sees it.
//! Specification: plugins-nodes.md 12.4.

use vc_conf::{Argument, Arguments, DeclaredArgument, FreeForm, Section, Warning};
use vc_model::PodLimits;
use vc_resource::{Dim, Quantity, Resource};

use super::CpuMemory;

pub(super) const ESTIMATOR: Argument<Section> = Argument::new(
    "estimator",
    Section(&[&REQUEST_RATIO, &BURST_RATIO, &RISK_THRESHOLD, &RISK_FACTOR, &BE_CPU, &BE_MEMORY]),
    "what a new pod is taken to use until monitoring sees it",
);
const REQUEST_RATIO: Argument<f64> =
    Argument::new("request_ratio", 0.7, "part of its request").at_least(0.0).at_most(1.0);
const BURST_RATIO: Argument<f64> =
    Argument::new("burst_ratio", 0.0, "part of the room between its request and its limit")
        .at_least(0.0)
        .at_most(1.0);
const RISK_THRESHOLD: Argument<f64> = Argument::new(
    "risk_threshold",
    0.6,
    "part of the capacity in use from which the factor counts",
)
.at_least(0.0)
.at_most(1.0);
const RISK_FACTOR: Argument<f64> =
    Argument::new("risk_factor", 1.2, "factor on what a pod is taken to use").at_least(1.0);
const BE_CPU: Argument<FreeForm> =
    Argument::new("be_cpu", AMOUNT, "a pod without requests: millicores or a quantity")
        .shown_as("250m");
const BE_MEMORY: Argument<FreeForm> =
    Argument::new("be_mem", AMOUNT, "a pod without requests: MiB or a quantity").shown_as("200Mi");
const AMOUNT: FreeForm = FreeForm("int or string", &["integer", "string"]);

const BE_CPU_MILLI: f64 = 250.0;
const BE_MEMORY_BYTES: f64 = 200.0 * MIB;
const MIB: f64 = 1_048_576.0;

/// The rule by which pods are estimated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimator {
    request_ratio: f64,
    burst_ratio: f64,
    risk_threshold: f64,
    risk_factor: f64,
    best_effort: CpuMemory,
}

impl Estimator {
    pub(super) fn new(arguments: &Arguments, warnings: &mut Vec<Warning>) -> Self {
        let section = &arguments.section(ESTIMATOR.key);
        let milli = |quantity: Quantity| quantity.milli() as f64;
        let cpu =
            EstimateAmount { argument: &BE_CPU, of_text: milli, unit: 1.0, default: BE_CPU_MILLI };
        let bytes = |quantity: Quantity| quantity.value() as f64;
        let memory = EstimateAmount {
            argument: &BE_MEMORY,
            of_text: bytes,
            unit: MIB,
            default: BE_MEMORY_BYTES,
        };
        Self {
            request_ratio: REQUEST_RATIO.read(section, warnings),
            burst_ratio: BURST_RATIO.read(section, warnings),
            risk_threshold: RISK_THRESHOLD.read(section, warnings),
            risk_factor: RISK_FACTOR.read(section, warnings),
            best_effort: CpuMemory {
                cpu: cpu.read(section, warnings),
                memory: memory.read(section, warnings),
            },
        }
    }

    /// Returns the factor for a pod on a node of which this part is used.
    pub(super) fn risk(&self, load: f64) -> f64 {
        if self.risk_threshold <= load { self.risk_factor } else { 1.0 }
    }

    /// Returns what a pod is taken to use.
    pub(super) fn estimate(&self, request: &Resource, limits: PodLimits, risk: f64) -> CpuMemory {
        if request.is_empty() {
            let CpuMemory { cpu, memory } = self.best_effort;
            return CpuMemory { cpu: cpu * risk, memory: memory * risk };
        }
        let part = |dim, limit| self.part(request.get(dim) as f64, limit as f64, risk);
        CpuMemory {
            cpu: part(Dim::CPU, limits.cpu_milli),
            memory: part(Dim::MEMORY, limits.memory_bytes),
        }
    }

    /// Returns the estimate for one resource. A limit below the request counts as the request.
    fn part(&self, request: f64, limit: f64, risk: f64) -> f64 {
        let limit = limit.max(request).max(0.0);
        let used = request * self.request_ratio + (limit - request) * self.burst_ratio;
        (used * risk).clamp(0.0, limit)
    }
}

/// An argument that is a number of some unit, or a quantity.
struct EstimateAmount {
    argument: &'static Argument<FreeForm>,
    of_text: fn(Quantity) -> f64,
    unit: f64,
    default: f64,
}

impl EstimateAmount {
    /// Reads the amount. A negative or unreadable one gives a warning and the default.
    fn read(&self, section: &Arguments, warnings: &mut Vec<Warning>) -> f64 {
        let key = self.argument.key;
        let Some(value) = section.get(key).filter(|value| !value.is_null()) else {
            return self.default;
        };
        let amount = match value.as_str() {
            Some(text) => text.trim().parse().ok().map(self.of_text),
            None => value.as_i64().map(|number| number as f64 * self.unit),
        };
        amount.filter(|amount| 0.0 <= *amount).unwrap_or_else(|| {
            let default = self.argument.default_text();
            let remedy = format!(
                "write a number or a quantity, such as {default}; until then {default} is in force"
            );
            warnings.push(section.warning(key, &format!("not an amount: {value}"), &remedy));
            self.default
        })
    }
}
