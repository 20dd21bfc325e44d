//! Exact integer amounts and resource vectors.
