//! The routes over a cluster as text, with somebody who says what each user may.

mod documents;
mod redaction;
mod rights;
mod support;
mod texts;
