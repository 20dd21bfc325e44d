//! The scheduler configuration file: actions, tiers, switches, arguments, warnings.
