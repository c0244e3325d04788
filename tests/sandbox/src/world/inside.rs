//! What runs inside a world: its first process, which only collects orphans, and the process that brings
//! everything up and keeps it running.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::WaitOptions;

use super::options::{Options, Parts};
use super::process::{Recipe, Supervisor};
use super::state::Reporter;
use super::{World, network, relay};
use crate::{cloud, control, emulator, management, operator, paths};
use tools::Tools;

/// Runs as the first process of the namespaces, and again as its child; never returns unless the world is
/// over.
pub fn main(directory: &Path, tied: bool) -> Result<()> {
    if std::process::id() == 1 {
        return first_process(directory, tied);
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    let reporter = Arc::new(Reporter::new(directory));
    let result = runtime.block_on(run(directory, Arc::clone(&reporter)));
    if let Err(error) = &result {
        reporter.failed(error);
    }
    result
}

/// Starts the real work and collects every process whose parent has ended, as the first process has to.
fn first_process(directory: &Path, tied: bool) -> Result<()> {
    let own = std::env::current_exe().context("finding this program")?;
    let child = Command::new(own)
        .arg("world")
        .arg(directory)
        .stdin(Stdio::null())
        .spawn()
        .context("starting the world's main process")?;
    if tied {
        // The other end is held by the process outside; it closes when that ends, however it ends.
        std::thread::spawn(|| {
            let mut nothing = Vec::new();
            let _ = std::io::stdin().read_to_end(&mut nothing);
            std::process::exit(0);
        });
    }
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get().cast_unsigned() == child.id() => {
                bail!("the world's main process ended: {status:?}");
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("waiting for processes"),
        }
    }
}

async fn run(directory: &Path, reporter: Arc<Reporter>) -> Result<()> {
    let options: Options = read(&directory.join("options.json"))?;
    let tools: Tools = read(&directory.join("tools.json"))?;
    let world =
        Arc::new(World { directory: directory.to_owned(), tools, emulator: emulator::Client::inside()? });
    let supervisor = Supervisor::new(directory);
    reporter.step("making the network");
    network::set_up(directory).await?;
    relay::serve(&directory.join("emulator.sock"), emulator::ADDRESS)?;
    if options.parts != Parts::ApiServer {
        supervisor.start(emulator_recipe(&world, &options)?)?;
    }
    let server = if options.parts == Parts::Emulator {
        None
    } else {
        Some(management::start(&world, &supervisor, &reporter, options.parts).await?)
    };
    if options.parts != Parts::ApiServer {
        reporter.step("waiting for the AWS emulator");
        wait_for_emulator(&world, &supervisor).await?;
    }
    let mut operator = operator::Operator::new(&world, &supervisor, &options);
    if let (Some(server), Parts::All) = (&server, options.parts) {
        reporter.step("starting the operator");
        operator.prepare(server).await?;
        operator.start().await?;
    }
    control::serve(directory, supervisor, operator)?;
    reporter.ready();
    if options.boots && matches!(options.parts, Parts::All | Parts::Management) {
        return cloud::run(world).await.context("acting out the cloud");
    }
    std::future::pending().await
}

/// The policies in `deploy/iam`. The last one names a bucket, which is any here.
const POLICIES: [&str; 3] = ["controller-policy.json", "takeover-policy.json", "issuer-policy.json"];

/// Flags that give the operator its policies.
fn rights_of_operator(world: &World) -> Result<Vec<String>> {
    let mut res = Vec::new();
    for name in POLICIES {
        let (from, to) = (paths::source().join("deploy/iam").join(name), world.directory.join(name));
        let text = std::fs::read_to_string(&from).with_context(|| format!("reading {}", from.display()))?;
        std::fs::write(&to, text.replace("BUCKET", "*"))
            .with_context(|| format!("writing {}", to.display()))?;
        res.extend(["--identity".to_owned(), format!("{}={}", operator::ACCESS_KEY, to.display())]);
    }
    Ok(res)
}

fn emulator_recipe(world: &World, options: &Options) -> Result<Recipe> {
    let package: PathBuf = paths::source().join("tests/emulator");
    let (host, port) = emulator::ADDRESS.split_once(':').unwrap_or((emulator::ADDRESS, "5000"));
    let calls = world.directory.join("logs/aws-calls.jsonl");
    let recipe = Recipe::new("emulator", world.tools.python.join("bin/python"))
        .arguments(["-m", "emulator", "--host", host, "--port", port, "--call-log"])
        .arguments([
            calls.display().to_string(),
            "--delay".to_owned(),
            options.delay.as_secs_f64().to_string(),
        ])
        .arguments(rights_of_operator(world)?)
        .arguments(options.emulator_arguments.clone())
        .environment([
            ("PYTHONPATH", package.display().to_string()),
            // A checkout may be read-only, and is not the place for caches anyway.
            ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
            ("PYTHONUNBUFFERED", "1".to_owned()),
        ]);
    Ok(recipe)
}

async fn wait_for_emulator(world: &World, supervisor: &Supervisor) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !world.emulator.ready().await {
        supervisor.check("emulator")?;
        if Instant::now() > deadline {
            bail!("the AWS emulator does not answer; its log is {}", world.log("emulator").display());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

fn read<T: serde::de::DeserializeOwned>(file: &Path) -> Result<T> {
    let text = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("reading {}", file.display()))
}
