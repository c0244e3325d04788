//! What belongs to whom: clusters of the same name, users' networks, clusters made by another provider,
//! things that were lost.

mod in_the_way;
mod instances;
mod lost;
mod neighbours;
mod takeover;
