//! Cases of permissions.
