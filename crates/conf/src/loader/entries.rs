//! Maps, lists and scalars of the tree with their places (core.md 2.1).

use std::collections::BTreeMap;

use serde_json::Value;

use super::Loader;
use crate::arguments::Arguments;
use crate::error::{ConfError, Warning, printable};
use crate::spelling::did_you_mean;
use crate::tree::{YamlNode, YamlTree};

/// One entry of a map.
pub(super) struct MapEntry<'n> {
    pub(super) key: String,
    pub(super) key_line: Option<usize>,
    /// Path of the value.
    pub(super) field: String,
    pub(super) node: &'n YamlNode,
}

impl Loader<'_> {
    pub(super) fn arguments(&mut self, entry: &MapEntry<'_>) -> Result<Arguments, ConfError> {
        let mut arguments = Arguments::at(entry.field.clone());
        for argument in self.entries(entry.node, &entry.field)? {
            let value = self.value(argument.node, &argument.field)?;
            arguments.insert(argument.key, value, argument.node.line());
        }
        Ok(arguments)
    }

    fn value(&mut self, node: &YamlNode, field: &str) -> Result<Value, ConfError> {
        if let YamlTree::List(items) = &node.tree {
            let mut list = Vec::new();
            for (at, item) in items.iter().enumerate() {
                list.push(self.value(item, &format!("{field}[{at}]"))?);
            }
            return Ok(Value::Array(list));
        }
        if let Some(scalar) = node.scalar() {
            return Ok(scalar);
        }
        let mut map = serde_json::Map::new();
        for entry in self.entries(node, field)? {
            let value = self.value(entry.node, &entry.field)?;
            map.insert(entry.key, value);
        }
        Ok(Value::Object(map))
    }

    /// A string, or any other scalar as it is written.
    pub(super) fn text(&self, entry: &MapEntry<'_>, hint: &str) -> Result<String, ConfError> {
        entry.node.text(self.source).ok_or_else(|| {
            let problem = format!("expected a string, found {}", entry.node.kind());
            self.error(entry.node.line(), &entry.field, &problem, hint)
        })
    }

    pub(super) fn items<'n>(&self, entry: &MapEntry<'n>) -> Result<&'n [YamlNode], ConfError> {
        match &entry.node.tree {
            YamlTree::Null => Ok(&[]),
            YamlTree::List(items) => Ok(items),
            _ => {
                let problem = format!("expected a list, found {}", entry.node.kind());
                let hint = format!("begin each entry of {} with a dash", entry.key);
                Err(self.error(entry.node.line(), &entry.field, &problem, &hint))
            }
        }
    }

    /// The entries of a map, of duplicate keys only the last.
    pub(super) fn entries<'n>(
        &mut self,
        node: &'n YamlNode,
        field: &str,
    ) -> Result<Vec<MapEntry<'n>>, ConfError> {
        let map = match &node.tree {
            YamlTree::Null => return Ok(Vec::new()),
            YamlTree::Map(map) => map,
            _ => {
                let problem = format!("expected a map, found {}", node.kind());
                let hint = "write key: value pairs, without a dash before the key";
                return Err(self.error(node.line(), field, &problem, hint));
            }
        };
        let mut entries: Vec<MapEntry<'n>> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for (key_node, value) in map {
            let entry = self.entry(key_node, value, field)?;
            match places.get(&entry.key) {
                Some(&place) => {
                    self.duplicate_key(&entry, &entries[place]);
                    entries[place] = entry;
                }
                None => {
                    places.insert(entry.key.clone(), entries.len());
                    entries.push(entry);
                }
            }
        }
        Ok(entries)
    }

    fn entry<'n>(
        &self,
        key_node: &YamlNode,
        node: &'n YamlNode,
        field: &str,
    ) -> Result<MapEntry<'n>, ConfError> {
        let Some(key) = key_node.text(self.source) else {
            let problem = format!("expected a key, found {}", key_node.kind());
            return Err(self.error(key_node.line(), field, &problem, "write a plain word"));
        };
        let field = match field.is_empty() {
            true => key.clone(),
            false => format!("{field}.{key}"),
        };
        Ok(MapEntry { key, key_line: key_node.line(), field, node })
    }

    fn duplicate_key(&mut self, entry: &MapEntry<'_>, before: &MapEntry<'_>) {
        let message = match before.key_line {
            Some(line) => format!("duplicate key {}, also on line {line}", entry.key),
            None => format!("duplicate key {}", entry.key),
        };
        let remedy = "remove one of them: the last one wins";
        self.warnings.push(Warning::new(entry.key_line, &entry.field, message, remedy));
    }

    pub(super) fn unknown_key(&mut self, entry: &MapEntry<'_>, known: &[&str]) {
        let message = format!("unknown key {}, it is ignored", entry.key);
        let remedy = did_you_mean(&entry.key, known);
        self.warnings.push(Warning::new(entry.key_line, &entry.field, message, remedy));
    }

    pub(super) fn error(
        &self,
        line: Option<usize>,
        field: &str,
        problem: &str,
        hint: &str,
    ) -> ConfError {
        let field = if field.is_empty() { "the file" } else { field };
        ConfError {
            file: self.file.to_owned(),
            line,
            field: printable(field),
            problem: printable(problem),
            hint: printable(hint),
        }
    }
}
