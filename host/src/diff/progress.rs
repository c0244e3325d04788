//! Says on stderr what is being done, once that takes longer than people wait without a word.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long nothing is said.
const SILENCE: Duration = Duration::from_secs(2);

/// What is being done. Dropping it ends it.
pub struct Progress {
    what: watch::Sender<String>,
    teller: JoinHandle<()>,
}

impl Progress {
    pub fn begin(what: &str) -> Progress {
        let (what, mut told) = watch::channel(what.to_owned());
        let teller = tokio::spawn(async move {
            tokio::time::sleep(SILENCE).await;
            loop {
                eprintln!("cluster-operator: {} ...", *told.borrow_and_update());
                if told.changed().await.is_err() {
                    return;
                }
            }
        });
        Progress { what, teller }
    }

    pub fn say(&self, what: String) {
        self.what.send_replace(what);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.teller.abort();
    }
}
