//! State of a plugin that outlives sessions and configurations: it belongs to the process.
//! Specification: answers.md 10, 15.

use std::any::Any;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// State that the next plugin of the same name takes over. Every type that can be stored may be one.
pub trait PluginMemory: Any + Send {
    /// Returns the state as bytes.
    ///
    /// # Errors
    /// A value cannot be stored, with the text of the format's error.
    fn store(&self) -> Result<Vec<u8>, String>;

    /// Returns the state for a plugin of this process.
    fn into_earlier(self: Box<Self>) -> EarlierMemory;
}

/// The state of an earlier plugin of the same name.
pub struct EarlierMemory(Form);

enum Form {
    Live(Box<dyn Any + Send>),
    Stored(Vec<u8>),
}

impl<M: Any + Send + Serialize> PluginMemory for M {
    fn store(&self) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        ciborium::into_writer(self, &mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    fn into_earlier(self: Box<Self>) -> EarlierMemory {
        EarlierMemory(Form::Live(self))
    }
}

impl EarlierMemory {
    /// Returns what [`PluginMemory::store`] has stored.
    pub fn stored(bytes: Vec<u8>) -> Self {
        Self(Form::Stored(bytes))
    }

    /// Returns the state. Returns `None` if it is of another type, which only the file of another
    /// version can cause.
    pub fn read<M: Any + DeserializeOwned>(self) -> Option<M> {
        match self.0 {
            Form::Live(memory) => memory.downcast().ok().map(|memory| *memory),
            Form::Stored(bytes) => ciborium::from_reader(&*bytes).ok(),
        }
    }
}
