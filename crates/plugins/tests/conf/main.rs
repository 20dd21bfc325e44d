//! The configuration file with what the plugins declare.

mod bad_input;
mod declared;
mod document;
mod load;
mod missing;
mod quota;
mod render;
mod shipped;
mod structured;
mod support;
