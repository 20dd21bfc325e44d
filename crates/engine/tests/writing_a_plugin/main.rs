//! The examples of docs/writing-a-plugin.md: three plugins, each with its test, the scheduler that
//! runs them, and the comparison of the page with these files.

mod declared_scorer;
mod keep_label;
mod max_pods;
mod page;
mod prefer_label;
mod scheduler;
