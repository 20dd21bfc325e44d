//! Kubernetes filters and scorers as pure rules.
