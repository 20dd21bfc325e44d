//! The edge to a real API server: feeds in, writes out.
