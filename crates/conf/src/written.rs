//! A configuration as a file that [`crate::parse`] reads. Specification: answers.md 15.

use serde_json::{Map, Value, json};

use crate::arguments::Arguments;
use crate::file::{Config, PluginOption};
use crate::switches::SWITCHES;

impl Config {
    /// Returns the configuration as a file. Comments and entries that were left out are lost.
    ///
    /// # Errors
    /// A value cannot be written as YAML.
    pub fn file_text(&self) -> Result<String, String> {
        let tiers = self.tiers.iter().map(|tier| {
            let plugins: Vec<Value> = tier.plugins.iter().map(plugin).collect();
            json!({ "plugins": plugins })
        });
        let mut file = Map::new();
        file.insert("actions".into(), self.actions.join(", ").into());
        file.insert("tiers".into(), tiers.collect());
        let actions = self.configurations.iter();
        let actions = actions.map(|it| json!({ "name": it.name, "arguments": map(&it.arguments) }));
        let actions: Vec<Value> = actions.collect();
        if !actions.is_empty() {
            file.insert("configurations".into(), actions.into());
        }
        if !self.metrics.is_empty() {
            file.insert("metrics".into(), json!(self.metrics));
        }
        serde_yaml::to_string(&file).map_err(|error| error.to_string())
    }
}

fn plugin(option: &PluginOption) -> Value {
    let mut entry = Map::from_iter([("name".to_owned(), option.name.clone().into())]);
    for (key, switch, default) in SWITCHES {
        let on = option.switches.on(*switch);
        if on != *default || option.switches.is_written(*switch) {
            entry.insert((*key).to_owned(), on.into());
        }
    }
    if !option.arguments.is_empty() {
        entry.insert("arguments".into(), map(&option.arguments));
    }
    entry.into()
}

fn map(arguments: &Arguments) -> Value {
    arguments.iter().map(|(key, value)| (key.to_owned(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use crate::defaults::{BUILT_IN, CHART};
    use crate::file::parse;
    use crate::registry::{ACTIONS, KnownNames, PluginDeclaration};

    const MORE: &str = "actions: \"enqueue, allocate, preempt\"
tiers:
- plugins:
  - name: gang
    enablePreemptable: false
  - name: x
    enableHierarchy: true
    arguments:
      a.b: \"5\"
      c: [{d: 1}, {d: 2}]
- plugins:
  - name: gang
configurations:
- name: preempt
  arguments:
    trimVictims: false
metrics:
  type: prometheus
  address: http://p:9090
";

    #[test]
    fn a_configuration_is_what_was_read() {
        let names = BUILT_IN.lines().chain(CHART.lines()).chain(MORE.lines());
        let name = |line: &'static str| line.trim_start_matches(['-', ' ']).strip_prefix("name: ");
        let plugins: Vec<_> = names.filter_map(name).map(PluginDeclaration::new).collect();
        let known = KnownNames { plugins: &plugins, not_built: &[], actions: ACTIONS };
        for text in [BUILT_IN, CHART, MORE] {
            let config = parse("a.conf", text, &known).unwrap().config;
            let written = config.file_text().unwrap();
            let read =
                parse("b.conf", &written, &known).unwrap_or_else(|e| panic!("{e}\n{written}"));
            assert_eq!(read.config, config, "{written}");
        }
    }
}
