//! The mounted configuration file of a process, and what the process makes of it (I9).

use std::cell::Cell;
use std::rc::Rc;

use vc_conf::{Config, ConfigChange, ConfigInForce};

use super::configs;

/// The file as it is mounted. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct ConfigFile(Rc<Cell<&'static str>>);

impl ConfigFile {
    pub(super) fn new(text: &'static str) -> Self {
        Self(Rc::new(Cell::new(text)))
    }

    pub(super) fn write(&self, text: &'static str) {
        self.0.set(text);
    }
}

/// The file as a process follows it.
pub(super) struct FollowedConfig {
    in_force: ConfigInForce,
    /// What must be in force: the last good file that was read.
    expected: Config,
    /// The text that was read last.
    read_last: &'static str,
}

impl FollowedConfig {
    /// Reads the file at the start of the process. A bad one is replaced by the built-in one.
    pub(super) fn start(file: &ConfigFile) -> Self {
        let text = file.0.get();
        let seen = Some(text.to_owned());
        match configs::read(text) {
            Ok(loaded) => {
                let expected = loaded.config.clone();
                let in_force = ConfigInForce::new(seen.clone(), seen, loaded);
                Self { in_force, expected, read_last: text }
            }
            Err(_) => {
                let built_in =
                    configs::read(vc_conf::BUILT_IN).expect("the built-in configuration is good");
                let expected = built_in.config.clone();
                let in_force = ConfigInForce::new(seen, None, built_in);
                Self { in_force, expected, read_last: text }
            }
        }
    }

    /// Reads the file when the process begins to lead.
    pub(super) fn lead(&mut self, file: &ConfigFile) {
        self.read(file);
    }

    /// Reads the file again. True: it is good and new.
    pub(super) fn read(&mut self, file: &ConfigFile) -> bool {
        let text = file.0.get();
        if text == std::mem::replace(&mut self.read_last, text) {
            return false;
        }
        let means = configs::read(text);
        if let Ok(loaded) = &means {
            self.expected = loaded.config.clone();
        }
        matches!(self.in_force.read(Some(text.to_owned()), means), ConfigChange::Accepted)
    }

    pub(super) fn in_force(&self) -> &Config {
        &self.in_force.loaded().config
    }

    /// I9: what is in force is the last good file.
    pub(super) fn faults(&self, process: &str) -> Option<String> {
        let is_it = self.expected == *self.in_force();
        (!is_it).then(|| format!("I9: {process}: not the last good configuration is in force"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_configuration_than_the_last_good_one_is_found() {
        let file = ConfigFile::new(configs::GOOD[0]);
        let mut followed = FollowedConfig::start(&file);
        file.write(configs::BAD[0]);
        assert!(!followed.read(&file));
        assert_eq!(followed.faults("a"), None);
        file.write(configs::GOOD[1]);
        assert!(followed.read(&file));
        assert_eq!(followed.faults("a"), None);
        followed.expected = configs::read(configs::GOOD[0]).unwrap().config;
        let fault = "I9: a: not the last good configuration is in force";
        assert_eq!(followed.faults("a").as_deref(), Some(fault));
    }
}
