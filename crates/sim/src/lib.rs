//! vcsim: the same engine over files, scenarios and an embedded API server.

pub mod serve;
