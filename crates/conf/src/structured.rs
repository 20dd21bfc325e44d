//! Shapes of the structured arguments, checked at load (core.md 2.4, C-09): a wrong shape makes
//! the file invalid, where Volcano would end the process inside a cycle.

use serde_json::Value;

use crate::arguments::{Arguments, meant, shown};
use crate::error::Warning;
use crate::spelling::did_you_mean;

/// What a structured argument must look like. Nothing (`null`) counts as absent everywhere.
enum ArgumentShape {
    /// A number; a fraction is cut off.
    Int,
    Number,
    Bool,
    Text,
    List(&'static ArgumentShape),
    /// Any keys.
    MapOf(&'static ArgumentShape),
    /// These keys without regard to case; others are ignored with a warning.
    Record(&'static [(&'static str, ArgumentShape)]),
    /// A list of strings, or one comma-separated string (plugins-jobs-queues.md D35).
    Names,
}

/// Plugin, argument, shape.
const STRUCTURED: &[(&str, &str, ArgumentShape)] = &[
    ("extender", "extender.managedResources", ArgumentShape::Names),
    ("predicates", "volumebinding.bindTimeoutSeconds", ArgumentShape::Int),
    ("predicates", "volumebinding.weight", ArgumentShape::Int),
    ("predicates", "volumebinding.shape", ArgumentShape::List(&SHAPE_POINT)),
    ("predicates", "dynamicresources.filterTimeoutSeconds", ArgumentShape::Int),
    ("resource-strategy-fit", "resourceStrategyFitWeight", ArgumentShape::Int),
    ("resource-strategy-fit", "resources", ArgumentShape::MapOf(&STRATEGY)),
    ("resource-strategy-fit", "sra", SRA),
    ("resource-strategy-fit", "proportional", PROPORTIONAL),
];
const SHAPE_POINT: ArgumentShape =
    ArgumentShape::Record(&[("utilization", ArgumentShape::Int), ("score", ArgumentShape::Int)]);
const STRATEGY: ArgumentShape =
    ArgumentShape::Record(&[("type", ArgumentShape::Text), ("weight", ArgumentShape::Int)]);
const SRA: ArgumentShape = ArgumentShape::Record(&[
    ("enable", ArgumentShape::Bool),
    ("resources", ArgumentShape::Text),
    ("weight", ArgumentShape::Int),
    ("resourceWeight", ArgumentShape::MapOf(&ArgumentShape::Int)),
]);
const PROPORTIONAL: ArgumentShape = ArgumentShape::Record(&[
    ("enable", ArgumentShape::Bool),
    ("resources", ArgumentShape::Text),
    ("resourceProportion", ArgumentShape::MapOf(&ArgumentShape::Number)),
]);

/// A structured argument of the wrong shape.
#[derive(Debug)]
pub(crate) struct WrongShape {
    pub(crate) line: Option<usize>,
    pub(crate) field: String,
    pub(crate) problem: String,
    /// What to write, where the value tells what was meant.
    pub(crate) hint: Option<String>,
}

/// Checks every structured argument of a plugin; unknown keys inside of one give a warning.
pub(crate) fn check(
    plugin: &str,
    arguments: &Arguments,
    warnings: &mut Vec<Warning>,
) -> Result<(), WrongShape> {
    for (_, key, shape) in STRUCTURED.iter().filter(|(owner, _, _)| *owner == plugin) {
        let Some(value) = arguments.get(key) else {
            continue;
        };
        let mut walk = ShapeCheck { line: arguments.line(key), warnings: &mut *warnings };
        walk.check(shape, value, &arguments.field_of(key))?;
    }
    Ok(())
}

struct ShapeCheck<'w> {
    /// Of the argument: the tree below it carries no lines any more.
    line: Option<usize>,
    warnings: &'w mut Vec<Warning>,
}

impl ShapeCheck<'_> {
    fn check(
        &mut self,
        shape: &ArgumentShape,
        value: &Value,
        field: &str,
    ) -> Result<(), WrongShape> {
        match (shape, value) {
            (_, Value::Null) => Ok(()),
            (ArgumentShape::Int | ArgumentShape::Number, Value::Number(_)) => Ok(()),
            (ArgumentShape::Bool, Value::Bool(_)) => Ok(()),
            (ArgumentShape::Text | ArgumentShape::Names, Value::String(_)) => Ok(()),
            (ArgumentShape::Names, Value::Array(items)) => {
                self.items(&ArgumentShape::Text, items, field)
            }
            (ArgumentShape::List(of), Value::Array(items)) => self.items(of, items, field),
            (ArgumentShape::MapOf(of), Value::Object(map)) => map
                .iter()
                .try_for_each(|(key, value)| self.check(of, value, &format!("{field}.{key}"))),
            (ArgumentShape::Record(keys), Value::Object(map)) => {
                map.iter().try_for_each(|(key, value)| self.entry(keys, key, value, field))
            }
            _ => Err(self.wrong(shape, value, field)),
        }
    }

    fn items(
        &mut self,
        of: &ArgumentShape,
        items: &[Value],
        field: &str,
    ) -> Result<(), WrongShape> {
        let mut numbered = items.iter().enumerate();
        numbered.try_for_each(|(at, item)| self.check(of, item, &format!("{field}[{at}]")))
    }

    fn entry(
        &mut self,
        keys: &[(&str, ArgumentShape)],
        key: &str,
        value: &Value,
        field: &str,
    ) -> Result<(), WrongShape> {
        let field = format!("{field}.{key}");
        if let Some((_, shape)) = keys.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)) {
            return self.check(shape, value, &field);
        }
        let names: Vec<&str> = keys.iter().map(|(name, _)| *name).collect();
        let message = format!("unknown key {key}, it is ignored");
        self.warnings.push(Warning::new(self.line, field, message, did_you_mean(key, &names)));
        Ok(())
    }

    fn wrong(&self, shape: &ArgumentShape, value: &Value, field: &str) -> WrongShape {
        let expected = match shape {
            ArgumentShape::Int | ArgumentShape::Number => "a number",
            ArgumentShape::Bool => "true or false without quotes",
            ArgumentShape::Text => "a string",
            ArgumentShape::List(_) => "a list",
            ArgumentShape::MapOf(_) | ArgumentShape::Record(_) => "a map",
            ArgumentShape::Names => "a list of strings",
        };
        let fits = |meant: &Value| match shape {
            ArgumentShape::Int | ArgumentShape::Number => meant.is_number(),
            ArgumentShape::Bool => meant.is_boolean(),
            _ => false,
        };
        WrongShape {
            line: self.line,
            field: field.to_owned(),
            problem: format!("expected {expected}, found {}", shown(value)),
            hint: meant(value, fits),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::known_arguments::keys_of;

    fn problem(plugin: &str, key: &str, value: Value) -> Result<usize, String> {
        let arguments: Arguments = [(key, value)].into_iter().collect();
        let mut warnings = Vec::new();
        match check(plugin, &arguments, &mut warnings) {
            Ok(()) => Ok(warnings.len()),
            Err(wrong) => Err(format!("{}: {}", wrong.field, wrong.problem)),
        }
    }

    #[test]
    fn right_shapes() {
        let sra = json!({"Enable": true, "resources": "nvidia.com/gpu", "weight": 10,
            "resourceWeight": {"nvidia.com/gpu": 1}});
        for (plugin, key, value) in [
            ("extender", "extender.managedResources", json!(["a", "b"])),
            ("extender", "extender.managedResources", json!("a, b")),
            ("predicates", "volumebinding.weight", json!(2.5)),
            ("predicates", "volumebinding.shape", json!([{"utilization": 0, "Score": 10}])),
            ("predicates", "dynamicresources.filterTimeoutSeconds", json!(-5)),
            ("resource-strategy-fit", "resources", json!({"cpu": {"type": "x", "weight": 1}})),
            ("resource-strategy-fit", "sra", sra),
            ("resource-strategy-fit", "resources", json!(null)),
            ("gang", "resources", json!(5)),
        ] {
            assert_eq!(problem(plugin, key, value.clone()), Ok(0), "{key}: {value}");
        }
    }

    #[test]
    fn wrong_shapes() {
        let fit = "resource-strategy-fit";
        for (plugin, key, value, expected) in [
            (
                "extender",
                "extender.managedResources",
                json!(["a", 1]),
                "extender.managedResources[1]: expected a string, found 1",
            ),
            (
                "extender",
                "extender.managedResources",
                json!(5),
                "extender.managedResources: expected a list of strings, found 5",
            ),
            (
                "predicates",
                "volumebinding.weight",
                json!("5"),
                "volumebinding.weight: expected a number, found \"5\"",
            ),
            (
                "predicates",
                "volumebinding.shape",
                json!({"utilization": 0}),
                "volumebinding.shape: expected a list, found {\"utilization\":0}",
            ),
            (fit, "resources", json!(["cpu"]), "resources: expected a map, found [\"cpu\"]"),
            (
                fit,
                "resources",
                json!({"cpu": {"weight": "1"}}),
                "resources.cpu.weight: expected a number, found \"1\"",
            ),
            (
                fit,
                "sra",
                json!({"enable": "true"}),
                "sra.enable: expected true or false without quotes, found \"true\"",
            ),
            (
                fit,
                "proportional",
                json!({"resourceProportion": {"gpu.cpu": true}}),
                "proportional.resourceProportion.gpu.cpu: expected a number, found true",
            ),
        ] {
            assert_eq!(problem(plugin, key, value), Err(expected.to_owned()));
        }
    }

    #[test]
    fn an_unknown_inner_key_is_a_warning() {
        assert_eq!(problem("resource-strategy-fit", "sra", json!({"enabel": true})), Ok(1));
    }

    #[test]
    fn every_structured_argument_is_a_known_key() {
        for (plugin, key, _) in STRUCTURED {
            assert!(keys_of(plugin).contains(key), "{plugin} {key}");
        }
    }
}
