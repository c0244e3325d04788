//! An AWS emulator of a test's own, ended with the test, and what every test does with it. It holds no
//! expectations.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use aws::{Aws, Region};
use aws_credential_types::Credentials;
use model::{Action, Interest, Key, Outcome, Read, Snapshot};
use serde_json::Value;
use sha2::{Digest, Sha256};

pub const REGION: &str = "us-east-1";
pub const ZONE: &str = "us-east-1a";
pub const IMAGE: &str = "ami-bed13630000000000";

/// The access key of the crate under test: it may do what the policies in `deploy/iam` allow, and nothing
/// else.
const OPERATOR: &str = "operator";
const POLICIES: [&str; 3] = ["controller", "takeover", "issuer"];

pub struct Bed {
    process: Child,
    address: String,
    http: reqwest::Client,
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Bed {
    pub async fn start(flags: &[&str]) -> Bed {
        let emulator = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/emulator");
        let python = python(&emulator);
        let mut process = Command::new(&python)
            .args(["-m", "emulator", "--port", "0"])
            .args(if flags.contains(&"--delay") { &[][..] } else { &["--delay", "0.5"] })
            .args(flags)
            .args(IDENTITY.iter())
            .env("PYTHONPATH", &emulator)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", python.display()));
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.split_whitespace().last().unwrap_or_else(|| panic!("the emulator ended at once")).to_owned();
        Bed { process, address, http: reqwest::Client::new() }
    }

    /// Of the emulator: `http://host:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Another process's view of the same account: it knows nothing of what earlier ones did.
    pub async fn region(&self) -> Region {
        self.region_of(OPERATOR).await
    }

    async fn region_of(&self, key: &str) -> Region {
        let credentials = Credentials::new(key, "secret", None, None, "test");
        Aws::connect_to(&self.address, credentials).await.unwrap().region(REGION)
    }

    /// A region that was swept once.
    pub async fn swept(&self) -> Region {
        self.swept_by(OPERATOR).await
    }

    /// The same for a user who may do everything.
    pub async fn swept_by_user(&self) -> Region {
        self.swept_by("user").await
    }

    async fn swept_by(&self, key: &str) -> Region {
        let region = self.region_of(key).await;
        region.interest("test", Interest::default());
        until(&region, |it| it.read_at.len() == 11 && !it.zones.is_empty()).await;
        region
    }

    pub async fn faults(&self, faults: Value) {
        let answer =
            self.http.put(format!("{}/_emulator/faults", self.address)).json(&faults).send().await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
    }

    async fn get(&self, path: &str) -> Value {
        self.http
            .get(format!("{}/_emulator/{path}", self.address))
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap()
    }

    /// Actions that were called, in order.
    pub async fn calls(&self) -> Vec<String> {
        let calls = self.get("calls?since=0").await;
        calls["calls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["action"].as_str().unwrap().to_owned())
            .collect()
    }

    pub async fn count(&self, action: &str) -> usize {
        self.calls().await.iter().filter(|it| *it == action).count()
    }

    /// What of the policies was needed so far: actions by statement, without those that another statement
    /// allowed too.
    pub async fn needed(&self) -> BTreeMap<String, BTreeSet<String>> {
        serde_json::from_value(self.get(&format!("rights?key={OPERATOR}")).await).unwrap()
    }

    /// Ids of what exists, by kind; kinds of which nothing exists are left out.
    pub async fn account(&self) -> Vec<(String, usize)> {
        let account = self.get("account").await;
        let count = |it: &Value| it.as_array().map(Vec::len).unwrap_or_default();
        account
            .as_object()
            .unwrap()
            .iter()
            .map(|(kind, ids)| (kind.clone(), count(ids)))
            .filter(|it| it.1 > 0)
            .collect()
    }
}

/// The text of one policy of `deploy/iam`.
pub fn policy(name: &str) -> String {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/iam").join(format!("{name}-policy.json"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The emulator's flags that give the operator its policies, with any bucket where users put the name of
/// theirs.
static IDENTITY: LazyLock<Vec<String>> = LazyLock::new(|| {
    let write = |name: &str| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-policy.json"));
        std::fs::write(&path, policy(name).replace("BUCKET", "*")).unwrap();
        format!("{OPERATOR}={}", path.display())
    };
    POLICIES.into_iter().flat_map(|it| ["--identity".to_owned(), write(it)]).collect()
});

/// The Python that the emulator's requirements are installed for.
fn python(emulator: &Path) -> PathBuf {
    if let Some(path) = std::env::var_os("CLUSTER_OPERATOR_EMULATOR_PYTHON") {
        return path.into();
    }
    let requirements = std::fs::read(emulator.join("requirements.txt")).unwrap();
    let hash: String = Sha256::digest(&requirements).iter().take(8).map(|it| format!("{it:02x}")).collect();
    let home = PathBuf::from(std::env::var_os("HOME").expect("HOME is set"));
    let python = home.join(".cache/cluster-operator/python").join(hash).join("bin/python");
    assert!(python.exists(), "{} is missing: `make test` installs it", python.display());
    python
}

/// Waits until the view shows something.
pub async fn until(region: &Region, mut done: impl FnMut(&Snapshot) -> bool) -> Arc<Snapshot> {
    let mut view = region.view();
    let wait = async {
        loop {
            let snapshot = view.borrow_and_update().snapshot.clone();
            if let Some(snapshot) = snapshot.filter(|it| done(it)) {
                return snapshot;
            }
            view.changed().await.unwrap();
        }
    };
    match tokio::time::timeout(Duration::from_secs(40), wait).await {
        Ok(snapshot) => snapshot,
        Err(_) => panic!("not shown in time; the view is {:#?}", region.view().borrow()),
    }
}

pub fn snapshot(region: &Region) -> Arc<Snapshot> {
    region.view().borrow().snapshot.clone().expect("the region was swept")
}

pub async fn act(region: &Region, action: Action) -> Outcome {
    act_all(region, vec![action]).await.remove(0).1
}

pub async fn act_all(region: &Region, actions: Vec<Action>) -> Vec<(Key, Outcome)> {
    region.act("test", actions).await
}

pub fn awaiting(reads: impl IntoIterator<Item = Read>) -> Interest {
    Interest { reads: reads.into_iter().collect(), ..Interest::default() }
}
