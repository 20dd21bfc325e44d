//! What a file names and this process lacks: plugins, actions and arguments of Volcano that are not
//! built, and plugins that nobody knows. Specification: core.md 2.3, 2.6 (C-40).

use crate::error::{ConfError, Warning, printable};
use crate::file::LoadedConfig;

/// An entry of the file none of whose rules can be in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingEntry {
    pub kind: MissingKind,
    /// The name under which `--allow-missing-plugins` allows it: a plugin, an action, or an argument.
    pub name: String,
    /// From 1; `None` when the place is not known.
    pub line: Option<usize>,
    /// The path of the field, as in `tiers[0].plugins[1]`.
    pub field: String,
    /// What is missing, in lower case.
    pub problem: String,
    /// What the operator can do.
    pub remedy: String,
}

/// What the process does about a missing entry that is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingKind {
    /// It is Volcano's: the file is refused, because what it restricts would be unrestricted.
    NotBuilt,
    /// No plugin of Volcano has this name: it is skipped with an error, as in Volcano.
    Unknown,
}

/// The value of `--allow-missing-plugins`: what the operator knows to be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AllowMissing {
    #[default]
    Nothing,
    Everything,
    Named(Vec<String>),
}

/// A file that names something of Volcano that is not built; one error an entry, by line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct MissingError(pub Vec<ConfError>);

fn lines(errors: &[ConfError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl AllowMissing {
    /// The word that stands for everything.
    pub const ALL: &str = "*";

    /// Reads the names as they are given, separated by commas or one by one.
    pub fn of<'a>(values: impl IntoIterator<Item = &'a str>) -> AllowMissing {
        let names = values.into_iter().flat_map(|value| value.split(',')).map(str::trim);
        let names: Vec<String> = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        match names.iter().any(|name| name == Self::ALL) {
            true => AllowMissing::Everything,
            false if names.is_empty() => AllowMissing::Nothing,
            false => AllowMissing::Named(names),
        }
    }

    /// Returns true if an entry of this name may be missing.
    pub fn allows(&self, name: &str) -> bool {
        match self {
            AllowMissing::Nothing => false,
            AllowMissing::Everything => true,
            AllowMissing::Named(names) => names.iter().any(|allowed| allowed == name),
        }
    }
}

impl MissingEntry {
    /// A plugin or an action of Volcano.
    pub(crate) fn not_built(
        what: &str,
        name: &str,
        line: Option<usize>,
        field: &str,
    ) -> MissingEntry {
        let problem = format!("{what} {name} of Volcano is not built into this version");
        MissingEntry::of_volcano(name, line, field, problem, "remove it")
    }

    pub(crate) fn of_volcano(
        name: &str,
        line: Option<usize>,
        field: &str,
        problem: String,
        remedy: &str,
    ) -> MissingEntry {
        let flag = flag(name);
        let remedy = format!("{remedy}, or start with {flag} if nothing needs its rules");
        MissingEntry::new(MissingKind::NotBuilt, name, (line, field), problem, remedy)
    }

    /// A plugin that nobody knows; `suggestion` is what was probably meant.
    pub(crate) fn unknown(
        name: &str,
        line: Option<usize>,
        field: &str,
        suggestion: &str,
    ) -> MissingEntry {
        let problem = format!("unknown plugin {name}, it is skipped");
        let remedy = format!("{suggestion} Or start with {} to say that it is known", flag(name));
        MissingEntry::new(MissingKind::Unknown, name, (line, field), problem, remedy)
    }

    fn new(
        kind: MissingKind,
        name: &str,
        (line, field): (Option<usize>, &str),
        problem: String,
        remedy: String,
    ) -> MissingEntry {
        let (name, field) = (printable(name), printable(field));
        let (problem, remedy) = (printable(&problem), printable(&remedy));
        MissingEntry { kind, name, line, field, problem, remedy }
    }

    /// The same as a warning, once it is allowed.
    fn as_warning(&self) -> Warning {
        let message = match self.kind {
            MissingKind::NotBuilt => format!("{}: skipped", self.problem),
            MissingKind::Unknown => self.problem.clone(),
        };
        let remedy = "nothing to do: --allow-missing-plugins says that it may be missing";
        Warning::new(self.line, &self.field, message, remedy)
    }

    fn as_error(&self, file: &str) -> ConfError {
        ConfError {
            file: file.to_owned(),
            line: self.line,
            field: self.field.clone(),
            problem: self.problem.clone(),
            hint: self.remedy.clone(),
        }
    }

    /// The entry as an error of its file, for a log.
    pub fn in_file(&self, file: &str) -> String {
        self.as_error(file).to_string()
    }
}

fn flag(name: &str) -> String {
    format!("--allow-missing-plugins={name}")
}

impl LoadedConfig {
    /// Turns what is allowed to be missing into warnings.
    pub fn allow(&mut self, allowed: &AllowMissing) {
        let missing = std::mem::take(&mut self.missing);
        let (allowed, missing): (Vec<MissingEntry>, Vec<MissingEntry>) =
            missing.into_iter().partition(|entry| allowed.allows(&entry.name));
        self.missing = missing;
        self.warn(allowed.iter().map(MissingEntry::as_warning));
    }

    /// The file itself if nothing of Volcano is missing in it but what is allowed. What
    /// [`LoadedConfig::missing`] still has then is unknown plugins.
    ///
    /// # Errors
    /// Something of Volcano that is not built and not allowed to be missing.
    pub fn admit(
        mut self,
        file: &str,
        allowed: &AllowMissing,
    ) -> Result<LoadedConfig, MissingError> {
        self.allow(allowed);
        let not_built = self.missing.iter().filter(|entry| entry.kind == MissingKind::NotBuilt);
        let errors: Vec<ConfError> = not_built.map(|entry| entry.as_error(file)).collect();
        if errors.is_empty() { Ok(self) } else { Err(MissingError(errors)) }
    }
}
