//! What a call of a plugin may use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a call of a plugin may use. Absent, the operator's own limits hold, and none can be above those.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitGrants {
    /// Fuel of a plan, which is its time: 10000000000 is about a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1000000, max = 1000000000000u64), extend("format" = "int64"))]
    pub fuel: Option<u64>,
    /// Bytes of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1048576, max = 1073741824), extend("format" = "int64"))]
    pub memory: Option<u64>,
    /// Bytes of a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 67108864), extend("format" = "int64"))]
    pub plan_size: Option<u64>,
}

impl LimitGrants {
    /// The limits that hold where these are granted and the host has `max`: the lower of each.
    pub fn limits_within(&self, max: &LimitGrants) -> LimitGrants {
        let lower = |granted: Option<u64>, max: Option<u64>| granted.into_iter().chain(max).min();
        LimitGrants {
            fuel: lower(self.fuel, max.fuel),
            memory: lower(self.memory, max.memory),
            plan_size: lower(self.plan_size, max.plan_size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_above_that_of_the_host() {
        let host = LimitGrants { fuel: Some(100), memory: Some(200), plan_size: None };
        assert_eq!(LimitGrants::default().limits_within(&host), host);
        let asked = LimitGrants { fuel: Some(10), memory: Some(2000), plan_size: Some(5) };
        assert_eq!(
            asked.limits_within(&host),
            LimitGrants { fuel: Some(10), memory: Some(200), plan_size: Some(5) }
        );
    }
}
