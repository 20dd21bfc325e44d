//! Kubernetes objects as slim types, and their way into cluster events.
