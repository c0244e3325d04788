//! Questions about things that users brought and mean by EC2's filters, and the answers to them. What is
//! asked follows from a spec, and is passed on as the user wrote it; nothing here talks to AWS, and nothing
//! here is part of a sweep.

use std::collections::BTreeMap;

use crate::{FoundSecurityGroup, FoundSubnet};

/// One filter of a Describe call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Filter {
    /// AWS's name of it: `tag:Name`, `vpc-id`.
    pub name: String,
    /// Any of which matches; `*` and `?` stand for any characters and any one.
    pub values: Vec<String>,
}

impl Filter {
    /// A filter that one value matches.
    pub fn new(name: &str, value: &str) -> Self {
        Filter { name: name.to_owned(), values: vec![value.to_owned()] }
    }
}

/// What only AWS can say: which things match all of these filters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lookup {
    /// DescribeSubnets.
    Subnets(Vec<Filter>),
    /// DescribeSecurityGroups.
    SecurityGroups(Vec<Filter>),
}

/// What AWS said, by question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    /// By the filters of [`Lookup::Subnets`]. A question that is not answered yet is absent; an empty list
    /// means that nothing matches.
    pub subnets: BTreeMap<Vec<Filter>, Vec<FoundSubnet>>,
    /// By the filters of [`Lookup::SecurityGroups`]; likewise.
    pub security_groups: BTreeMap<Vec<Filter>, Vec<FoundSecurityGroup>>,
}
