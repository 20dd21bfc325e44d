//! The declaration of an argument of a plugin or an action: key, type, default, bound, description.
//!
//! From the declaration follow the reading with its warnings, the known keys, the tables of
//! docs/configuration.md and the schema. Specification: core.md 2.4, actions.md A3.

use std::fmt;

use serde_json::Value;

use crate::arguments::Arguments;
use crate::error::Warning;
use crate::missing::MissingEntry;
use crate::spelling::did_you_mean;

/// An argument whose default is of type `T`, which also says how its values are read.
#[derive(Clone, Copy, Debug)]
pub struct Argument<T> {
    /// The key in the file. A `*` at the end, or at both ends, stands for any text.
    pub key: &'static str,
    /// In force when the key is absent or its value cannot be used.
    pub default: T,
    /// What the argument does, for the page and the schema.
    pub about: &'static str,
    // Each of the others is described at the method that sets it.
    pub(crate) least: Option<T>,
    pub(crate) most: Option<T>,
    pub(crate) takes_decimal_text: bool,
    pub(crate) alias: Option<&'static str>,
    pub(crate) shown_default: Option<&'static str>,
    pub(crate) remedy: Option<&'static str>,
    pub(crate) not_built: Option<&'static str>,
}

impl<T: Copy> Argument<T> {
    /// Declares an argument without a bound.
    pub const fn new(key: &'static str, default: T, about: &'static str) -> Self {
        Argument {
            key,
            default,
            about,
            least: None,
            most: None,
            takes_decimal_text: false,
            alias: None,
            shown_default: None,
            remedy: None,
            not_built: None,
        }
    }

    /// Gives the argument another default.
    pub const fn with_default(self, default: T) -> Self {
        Argument { default, ..self }
    }

    /// Sets the lower bound: a smaller number gives a warning and leaves the default.
    pub const fn at_least(self, least: T) -> Self {
        Argument { least: Some(least), ..self }
    }

    /// Sets the upper bound: a larger number gives a warning and leaves the default.
    pub const fn at_most(self, most: T) -> Self {
        Argument { most: Some(most), ..self }
    }

    /// Sets the remedy for a number that is too small, in place of the usual one.
    pub const fn with_remedy(self, remedy: &'static str) -> Self {
        Argument { remedy: Some(remedy), ..self }
    }

    /// Allows an integer to be written as a decimal string (A3).
    pub const fn or_decimal_text(self) -> Self {
        Argument { takes_decimal_text: true, ..self }
    }

    /// Sets a second key of a boolean. The first key wins when both are given.
    pub const fn or_key(self, alias: &'static str) -> Self {
        Argument { alias: Some(alias), ..self }
    }

    /// Sets the default on the page, where the value alone does not say it.
    pub const fn shown_as(self, default: &'static str) -> Self {
        Argument { shown_default: Some(default), ..self }
    }

    /// Names what of Volcano the argument switches on and this version lacks, with a verb: "quotas
    /// are".
    pub const fn not_built(self, what: &'static str) -> Self {
        Argument { not_built: Some(what), ..self }
    }
}

impl<T: ArgumentType> Argument<T> {
    /// Reads the value. A value that cannot be used gives a warning and the default.
    pub fn read(&self, from: &Arguments, warnings: &mut Vec<Warning>) -> T::Value {
        T::read(self, &mut ArgumentReader { owner: "", key: self.key, from, warnings })
    }

    /// Reads the value of the key in which `name` stands for the `*`.
    pub fn read_named(
        &self,
        name: &str,
        from: &Arguments,
        warnings: &mut Vec<Warning>,
    ) -> T::Value {
        let key = self.key.replace('*', name);
        T::read(self, &mut ArgumentReader { owner: "", key: &key, from, warnings })
    }
}

/// The default of an argument, and the rules of its type.
pub trait ArgumentType: Copy + fmt::Debug + Sync + Sized + 'static {
    /// What a reader gets.
    type Value: Into<Value>;
    /// How a file does without an argument that is not built, and what the page says of it.
    const UNUSED: (&'static str, &'static str) = ("remove it", "it refuses the file");

    fn read(argument: &Argument<Self>, reader: &mut ArgumentReader<'_>) -> Self::Value;
    /// Returns the type in words and as a JSON schema.
    fn describe(argument: &Argument<Self>) -> (String, Value);
    /// Returns what the page adds to the description.
    fn remark(&self) -> &'static str {
        ""
    }
    /// Checks a value when the file is loaded. `Err` makes the file invalid.
    fn check(&self, _value: &Value, _reader: &mut ArgumentReader<'_>) -> Result<(), WrongArgument> {
        Ok(())
    }
    /// True if the value switches something on.
    fn is_used(value: &Value) -> bool {
        !value.is_null()
    }
    /// Returns the arguments inside of this one.
    fn parts(&self) -> &'static [&'static dyn DeclaredArgument] {
        &[]
    }
}

/// Reads one key, and collects warnings about its value.
pub struct ArgumentReader<'a> {
    /// The plugin that has the argument, for messages of [`ArgumentType::check`].
    pub(crate) owner: &'a str,
    pub(crate) key: &'a str,
    pub(crate) from: &'a Arguments,
    pub(crate) warnings: &'a mut Vec<Warning>,
}

/// A value that makes the file invalid.
#[derive(Debug)]
pub struct WrongArgument {
    pub(crate) field: String,
    pub(crate) problem: String,
    /// What to write, where the value tells what was meant.
    pub(crate) hint: Option<String>,
}

/// An argument of any type, for the loader, the page and the schema.
pub trait DeclaredArgument: fmt::Debug + Sync {
    /// The key in the file. A `*` at the end, or at both ends, stands for any text.
    fn key(&self) -> &'static str;
    /// A second key of the same argument.
    fn alias(&self) -> Option<&'static str>;
    /// What the argument does, with remarks about its type.
    fn about(&self) -> String;
    /// The type in words and as a JSON schema.
    fn describe(&self) -> (String, Value);
    /// The default in words.
    fn default_text(&self) -> String;
    /// The value that is in force.
    fn in_force(&self, from: &Arguments) -> Value;
    /// The arguments inside of this one.
    fn parts(&self) -> &'static [&'static dyn DeclaredArgument];
    /// Checks the value when the file is loaded. `Err` makes the file invalid.
    fn check(
        &self,
        owner: &str,
        from: &Arguments,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), WrongArgument>;
    /// Returns an entry if the value switches on what is not built.
    fn unbuilt(&self, owner: &str, from: &Arguments) -> Option<MissingEntry>;
}

impl<T: ArgumentType> DeclaredArgument for Argument<T> {
    fn key(&self) -> &'static str {
        self.key
    }

    fn alias(&self) -> Option<&'static str> {
        self.alias
    }

    fn about(&self) -> String {
        let alias = self.alias.map_or(String::new(), |key| format!("; also read as `{key}`"));
        let unbuilt =
            self.not_built.map_or(String::new(), |_| format!("; not built: {}", T::UNUSED.1));
        format!("{}{alias}{}{unbuilt}", self.about, self.default.remark())
    }

    fn describe(&self) -> (String, Value) {
        T::describe(self)
    }

    fn default_text(&self) -> String {
        if let Some(text) = self.shown_default {
            return text.to_owned();
        }
        match self.in_force(&Arguments::default()) {
            Value::Null => String::new(),
            Value::String(text) if text.is_empty() => "empty".to_owned(),
            Value::String(text) => text,
            other => other.to_string().trim_end_matches(".0").to_owned(),
        }
    }

    fn in_force(&self, from: &Arguments) -> Value {
        self.read(from, &mut Vec::new()).into()
    }

    fn parts(&self) -> &'static [&'static dyn DeclaredArgument] {
        self.default.parts()
    }

    fn check(
        &self,
        owner: &str,
        from: &Arguments,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), WrongArgument> {
        let Some(value) = from.get(self.key).filter(|value| !value.is_null()) else {
            return Ok(());
        };
        self.default.check(value, &mut ArgumentReader { owner, key: self.key, from, warnings })
    }

    fn unbuilt(&self, owner: &str, from: &Arguments) -> Option<MissingEntry> {
        let what = self.not_built.filter(|_| from.get(self.key).is_some_and(T::is_used))?;
        let name = match self.key.split_once('.') {
            Some((prefix, _)) if prefix == owner => self.key.to_owned(),
            _ => format!("{owner}.{}", self.key),
        };
        let (line, field) = (from.line(self.key), from.field_of(self.key));
        let problem = format!("{what} not built into this version");
        Some(MissingEntry::of_volcano(&name, line, &field, problem, T::UNUSED.0))
    }
}

/// The keys of the arguments.
pub(crate) fn keys_of(declared: &[&'static dyn DeclaredArgument]) -> Vec<&'static str> {
    declared.iter().flat_map(|one| [Some(one.key()), one.alias()]).flatten().collect()
}

/// Adds a warning for every argument that its owner does not read. Volcano ignores such arguments
/// silently (C-07). `moved` returns what stands in the place of an argument of older versions.
pub(crate) fn warn_unknown(
    owner: &str,
    keys: &[&str],
    moved: impl Fn(&str) -> Option<&'static str>,
    arguments: &Arguments,
    warnings: &mut Vec<Warning>,
) {
    for (key, _) in arguments.iter() {
        if keys.iter().any(|pattern| matches(pattern, key)) {
            continue;
        }
        let message = format!("unknown argument {key} of {owner}, it is ignored");
        let remedy = moved(key).map_or_else(|| did_you_mean(key, keys), str::to_owned);
        warnings.push(arguments.warning(key, &message, &remedy));
    }
}

/// True if the key is the pattern, in which `*` stands for any text.
pub(crate) fn matches(pattern: &str, key: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(_), Some(_)) => key.contains(pattern.trim_matches('*')),
        (None, Some(prefix)) => key.starts_with(prefix),
        _ => key == pattern,
    }
}
