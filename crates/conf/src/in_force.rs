//! Which configuration is in force while its file changes: the last good one (core.md 2.6, C-10).

use crate::file::LoadedConfig;

/// The file as it was followed so far, and the configuration that is in force.
#[derive(Clone, Debug)]
pub struct ConfigInForce {
    /// The file as it was read last. `None`: it could not be read.
    seen: Option<String>,
    /// The last good file. `None`: the built-in configuration is in force.
    text: Option<String>,
    loaded: LoadedConfig,
}

/// What a file that was read again means.
#[derive(Debug, PartialEq)]
pub enum ConfigChange<E> {
    /// The file is as before.
    Unchanged,
    /// After a bad file it is again what is in force.
    Again,
    /// It is good, and in force from now on.
    Accepted,
    /// It is bad: what was in force stays.
    Refused(E),
}

impl ConfigInForce {
    /// Begins with the file as it was read, and the configuration in force with its text.
    pub fn new(seen: Option<String>, text: Option<String>, loaded: LoadedConfig) -> Self {
        Self { seen, text, loaded }
    }

    /// Returns the file whose configuration is in force. `None`: the built-in one is.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Returns what is in force.
    pub fn loaded(&self) -> &LoadedConfig {
        &self.loaded
    }

    /// Takes in the file as it is now, and what it means.
    pub fn read<E>(
        &mut self,
        text: Option<String>,
        loaded: Result<LoadedConfig, E>,
    ) -> ConfigChange<E> {
        if text == self.seen {
            return ConfigChange::Unchanged;
        }
        self.seen = text;
        match loaded {
            Ok(_) if self.seen == self.text => ConfigChange::Again,
            Ok(loaded) => {
                self.text.clone_from(&self.seen);
                self.loaded = loaded;
                ConfigChange::Accepted
            }
            Err(error) => ConfigChange::Refused(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(action: &str) -> LoadedConfig {
        let config = crate::Config { actions: vec![action.to_owned()], ..crate::Config::default() };
        LoadedConfig { config, warnings: Vec::new(), missing: Vec::new() }
    }

    #[test]
    fn the_last_good_file_stays_in_force() {
        let text = |text: &str| Some(text.to_owned());
        let mut in_force = ConfigInForce::new(text("a"), text("a"), loaded("a"));
        let mut read = |file: Option<&str>, good: bool| {
            let means = good.then(|| loaded(file.unwrap_or_default())).ok_or("bad");
            let change = in_force.read(file.map(str::to_owned), means);
            (
                change,
                in_force.text().map(str::to_owned),
                in_force.loaded().config.actions[0].clone(),
            )
        };
        let a = || (text("a"), "a".to_owned());
        let b = || (text("b"), "b".to_owned());
        let with = |change, (text, action)| (change, text, action);
        assert_eq!(read(Some("a"), true), with(ConfigChange::Unchanged, a()));
        assert_eq!(read(Some("x"), false), with(ConfigChange::Refused("bad"), a()));
        assert_eq!(read(None, false), with(ConfigChange::Refused("bad"), a()));
        assert_eq!(read(Some("a"), true), with(ConfigChange::Again, a()));
        assert_eq!(read(Some("b"), true), with(ConfigChange::Accepted, b()));
        assert_eq!(read(Some("x"), false), with(ConfigChange::Refused("bad"), b()));
        assert_eq!(read(Some("x"), false), with(ConfigChange::Unchanged, b()));
    }
}
