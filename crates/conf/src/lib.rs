//! The scheduler configuration file: actions, tiers, switches, arguments, warnings.
//!
//! [`parse`] turns a text into a [`Config`] or a [`ConfError`] that names line, field and remedy.
//! This crate knows the names that Volcano registers, but no plugin and no action: which of them
//! the process can run is given by its caller. Specification: core.md section 2, actions.md 1.

mod advice;
mod arguments;
mod defaults;
mod error;
mod file;
mod known_arguments;
mod loader;
mod metrics;
mod missing;
mod older;
mod quota;
mod registry;
mod render;
mod sections;
mod settings;
mod spelling;
mod structured;
mod switches;
mod syntax;
mod tree;

pub use arguments::Arguments;
pub use defaults::{BUILT_IN, CHART};
pub use error::{ConfError, Warning};
pub use file::{ActionConfig, Config, LoadedConfig, PluginOption, Tier, parse};
pub use missing::{AllowMissing, MissingEntry, MissingError, MissingKind};
pub use registry::{ACTIONS, KnownNames, PLUGINS};
pub use render::render;
pub use settings::{
    ActionSettings, AllocateSettings, BackfillSettings, GangSettings, HeadOfLine, PreemptSettings,
    ReclaimSettings, VictimOrderPolicy,
};
pub use spelling::nearest;
pub use switches::{SWITCHES, Switch, Switches};
