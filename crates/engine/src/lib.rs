//! The scheduler as a function: events and time in, effects and a report out.
