//! A fair queue for plugin calls: of the clusters that wait, the one that has used the least time goes first,
//! so that one with slow plans waits for the others and they hardly for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::context::ObjectName;
use crate::metrics::PluginCalls;

/// The queue of all clusters; cheap to clone.
#[derive(Clone)]
pub struct FairQueue(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    metrics: PluginCalls,
}

struct State {
    /// How many more calls may begin.
    free: usize,
    /// In the order in which they came.
    waiting: Vec<(ObjectName, oneshot::Sender<Permit>)>,
    /// What those who wait or ask have used since nobody did. Whoever comes anew counts as if it had used as
    /// much as the one that used least, so that nobody saves up time.
    used: HashMap<ObjectName, Duration>,
    asking: HashMap<ObjectName, usize>,
}

/// Permits one call; it is given back when it is dropped.
pub struct Permit {
    queue: FairQueue,
    cluster: ObjectName,
    began: Instant,
}

impl FairQueue {
    /// So many at once.
    pub fn new(calls: usize, metrics: PluginCalls) -> Self {
        let state =
            State { free: calls.max(1), waiting: Vec::new(), used: HashMap::new(), asking: HashMap::new() };
        FairQueue(Arc::new(Inner { state: Mutex::new(state), metrics }))
    }

    /// Waits for a permit for a cluster.
    pub async fn acquire(&self, cluster: &ObjectName) -> Permit {
        let waits = self.0.metrics.waits();
        loop {
            let (sender, receiver) = oneshot::channel();
            self.lock().enqueue(cluster, sender);
            self.serve();
            if let Ok(permit) = receiver.await {
                waits.end();
                return permit;
            }
        }
    }

    /// Gives the permits that are free.
    fn serve(&self) {
        let mut next = self.lock().next();
        while let Some((cluster, sender)) = next {
            // A permit that nobody takes any more is dropped here, and goes to the next.
            drop(sender.send(Permit { queue: self.clone(), cluster, began: Instant::now() }));
            next = self.lock().next();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.queue.lock().give_back(&self.cluster, self.began.elapsed());
        self.queue.serve();
    }
}

impl State {
    fn enqueue(&mut self, cluster: &ObjectName, sender: oneshot::Sender<Permit>) {
        let least = self.used.values().min().copied().unwrap_or_default();
        self.used.entry(cluster.clone()).or_insert(least);
        self.waiting.push((cluster.clone(), sender));
    }

    fn next(&mut self) -> Option<(ObjectName, oneshot::Sender<Permit>)> {
        self.waiting.retain(|(_, sender)| !sender.is_closed());
        self.free.checked_sub(1)?;
        let used = |cluster: &ObjectName| self.used.get(cluster).copied().unwrap_or_default();
        // The first of those that used the least.
        let place = (0..self.waiting.len()).min_by_key(|place| used(&self.waiting[*place].0))?;
        let next = self.waiting.remove(place);
        self.free -= 1;
        *self.asking.entry(next.0.clone()).or_default() += 1;
        Some(next)
    }

    fn give_back(&mut self, cluster: &ObjectName, took: Duration) {
        self.free += 1;
        *self.used.entry(cluster.clone()).or_default() += took;
        if let Some(count) = self.asking.get_mut(cluster) {
            *count -= 1;
        }
        self.asking.retain(|_, count| *count > 0);
        if self.waiting.is_empty() && self.asking.is_empty() {
            self.used.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn name(name: &str) -> ObjectName {
        ObjectName::new("default", name)
    }

    #[tokio::test]
    async fn a_cluster_with_slow_plans_waits_for_those_with_quick_ones() {
        let queue = FairQueue::new(1, PluginCalls::default());
        let (slow, quick) = (name("slow"), name("quick"));
        let first = queue.acquire(&slow).await;
        std::thread::sleep(Duration::from_millis(20));
        let mut many: Vec<_> = (0..3).map(|_| Box::pin(queue.acquire(&slow))).collect();
        assert!(many.iter_mut().all(|it| it.as_mut().now_or_never().is_none()));
        let mut other = Box::pin(queue.acquire(&quick));
        assert!(other.as_mut().now_or_never().is_none());
        drop(first);
        let permit = other.as_mut().now_or_never().expect("it came last and goes first");
        assert!(many.iter_mut().all(|it| it.as_mut().now_or_never().is_none()));
        drop(permit);
        let permit = many[0].as_mut().now_or_never().expect("nobody else waits");
        std::thread::sleep(Duration::from_millis(20));
        let mut again = Box::pin(queue.acquire(&quick));
        assert!(again.as_mut().now_or_never().is_none());
        drop(permit);
        assert!(
            again.as_mut().now_or_never().is_some(),
            "between two slow ones there is room for a quick one"
        );
    }

    #[tokio::test]
    async fn nobody_saves_up_time() {
        let queue = FairQueue::new(1, PluginCalls::default());
        let (often, seldom) = (name("busy"), name("fresh"));
        let busy = queue.acquire(&often).await;
        std::thread::sleep(Duration::from_millis(5));
        let mut waiting = Box::pin(queue.acquire(&often));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(busy);
        let _turn = waiting.as_mut().now_or_never().expect("it is alone");
        let mut fresh = Box::pin(queue.acquire(&seldom));
        assert!(fresh.as_mut().now_or_never().is_none());
        let used = queue.lock().used[&seldom];
        assert!(used >= Duration::from_millis(5), "{used:?}");
    }

    #[tokio::test]
    async fn who_gives_up_waiting_holds_up_nobody_and_is_not_counted() {
        let metrics = PluginCalls::default();
        let queue = FairQueue::new(1, metrics.clone());
        let [a, b, c] = ["a", "b", "c"].map(name);
        let first = queue.acquire(&a).await;
        let (mut gone, mut stays) = (Box::pin(queue.acquire(&b)), Box::pin(queue.acquire(&c)));
        assert!(gone.as_mut().now_or_never().is_none() && stays.as_mut().now_or_never().is_none());
        assert_eq!(metrics.waiting(), 2);
        drop(gone);
        assert_eq!(metrics.waiting(), 1);
        drop(first);
        assert!(stays.as_mut().now_or_never().is_some());
        assert_eq!(metrics.waiting(), 0);
        assert!(queue.lock().used.is_empty(), "nobody waits or asks");
    }
}
