//! Cases of issuer.
