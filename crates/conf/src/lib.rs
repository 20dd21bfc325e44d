//! The scheduler configuration file: actions, tiers, switches, arguments, warnings.
//!
//! [`parse`] turns a text into a [`Config`] or a [`ConfError`] that names line, field and remedy.
//! This crate knows the actions that Volcano registers and their arguments, but no plugin: its caller
//! gives what plugins declare. Specification: core.md section 2, actions.md 1.

mod advice;
mod argument;
mod argument_types;
mod arguments;
mod defaults;
mod error;
mod file;
mod in_force;
mod loader;
mod metrics;
mod missing;
mod older;
mod quota;
mod registry;
mod render;
mod secrets;
mod settings;
mod spelling;
mod structured;
mod switches;
mod syntax;
mod tree;
mod written;

pub use argument::{Argument, ArgumentType, DeclaredArgument};
pub use argument_types::{DurationRule, FreeForm, OneOf, OneOrBoth, Section};
pub use arguments::Arguments;
pub use defaults::{BUILT_IN, CHART};
pub use error::{ConfError, Warning};
pub use file::{ActionConfig, Config, LoadedConfig, PluginOption, Tier, parse};
pub use in_force::{ConfigChange, ConfigInForce};
pub use missing::{AllowMissing, MissingEntry, MissingError, MissingKind};
pub use registry::{
    ACTIONS, EnqueueVote, EntryCheck, EntryFinding, KnownNames, PluginDeclaration, QueueRule,
};
pub use render::render;
pub use secrets::{lines_without_secrets, without_users};
pub use settings::{
    ActionSettings, AllocateSettings, BackfillSettings, GangSettings, HeadOfLine, PreemptSettings,
    ReclaimSettings, VictimOrderPolicy, arguments_of,
};
pub use spelling::nearest;
pub use structured::{ArgumentShape, StructuredInt, StructuredPart};
pub use switches::{SWITCHES, Switch, Switches};
pub use tree::argument_value;
