//! Cases of check.
