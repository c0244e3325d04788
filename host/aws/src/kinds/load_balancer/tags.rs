//! Tags of load balancers, which their Describe does not show.

use std::collections::BTreeMap;

use model::Tags;

use crate::errors::Failure;

/// AWS describes the tags of no more at once.
const TAGS_AT_ONCE: usize = 20;

/// Tags by name or ARN, as `describe` finds them. One that is gone has none.
pub(super) async fn by_id<F>(
    ids: &[String],
    describe: impl Fn(Vec<String>) -> F,
) -> Result<BTreeMap<String, Tags>, Failure>
where
    F: Future<Output = Result<BTreeMap<String, Tags>, Failure>>,
{
    let mut res = BTreeMap::new();
    for some in ids.chunks(TAGS_AT_ONCE) {
        match describe(some.to_vec()).await {
            // One that is missing fails the whole call.
            Err(failure) if failure.is_gone() => {
                for id in some {
                    match describe(vec![id.clone()]).await {
                        Err(failure) if failure.is_gone() => {}
                        other => res.extend(other?),
                    }
                }
            }
            other => res.extend(other?),
        }
    }
    Ok(res)
}
