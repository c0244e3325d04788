//! What is decided about clusters and machines, by whole decisions against a pretend AWS. One program,
//! because linking many takes longer than all of them run. What a single module decides by itself is tested
//! beside it.

mod additions;
mod bootstrap;
mod edits;
mod egress;
mod external;
mod foreign;
mod golden;
mod launch;
mod living;
mod mishaps;
mod ownership;
mod pause;
mod placement;
mod simulation;
mod status;
mod tags_and_rules;
mod unmanaged;
mod world;
