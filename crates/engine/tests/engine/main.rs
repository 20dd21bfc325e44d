//! The whole engine: a cluster as text goes in, decisions as text come out. Names of tests are the numbers
//! and slugs of the specification's cases.
#![allow(non_snake_case)]

mod allocate;
mod enqueue;
mod support;
