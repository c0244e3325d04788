//! The boot of a machine: cloud-init, in the stages that a distribution's units start it in.
//!
//! Also puts the few commands in place that user data calls and that the machine has no daemon for. It knows
//! nothing of what the user data does.

use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use super::machine::Specification;
use super::machine::root::{LOGS, OURS};
use crate::emulator;

/// Made by the `systemctl` stand-in when cloud-init is to start over.
const RESTART: &str = "/run/restart-cloud-init";
/// Where programs are looked for on a machine.
pub const PATH: &str =
    "/opt/machine/bin:/opt/machine/programs:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const STAGES: [&[&str]; 3] = [&["init"], &["modules", "--mode=config"], &["modules", "--mode=final"]];

/// cloud-init's configuration: the metadata service as only source, and the modules that bootstrap data uses.
const CLOUD_CONFIGURATION: &str = "\
datasource_list: [Ec2]
datasource:
  Ec2: {strict_id: false, metadata_urls: ['http://169.254.169.254'], max_wait: 20, timeout: 5}
network: {config: disabled}
preserve_hostname: true
manage_etc_hosts: false
disable_root: false
cloud_init_modules: [bootcmd, write-files, ca-certs, users-groups]
cloud_config_modules: [runcmd]
cloud_final_modules: [scripts-per-once, scripts-per-boot, scripts-per-instance, scripts-user]
system_info:
  distro: debian
  paths: {cloud_dir: /var/lib/cloud, templates_dir: /etc/cloud/templates}
output: {all: '| tee -a /var/log/cloud-init-output.log'}
";

/// Runs `kubeadm`; there is neither a container runtime nor systemd to be found by its checks.
const KUBEADM: &str = "\
#!/bin/sh
case \"$1 $2\" in
'init phase'|'join phase') ;;
init*|join*) command=$1; shift; set -- \"$command\" --ignore-preflight-errors=all \"$@\" ;;
esac
exec /opt/machine/programs/kubeadm \"$@\"
";

/// The kubelet always runs here, and cloud-init is started over by the first process.
const SYSTEMCTL: &str = "\
#!/bin/sh
case \"$*\" in
*restart*cloud-init*) : > /run/restart-cloud-init; exec sleep 60 ;;
esac
exit 0
";

/// Boots the machine: all stages, from the first again whenever a restart is asked for.
///
/// # Errors
/// When a stage cannot be started. A stage that fails is in the console log and does not stop the next, as on
/// a real machine.
pub async fn run(machine: &Specification) -> Result<()> {
    prepare(machine)?;
    'boot: loop {
        for stage in STAGES {
            if restarted(start(machine, stage)?, stage).await? {
                tracing::info!("cloud-init starts over");
                continue 'boot;
            }
        }
        tracing::info!("booted");
        return Ok(());
    }
}

fn prepare(machine: &Specification) -> Result<()> {
    let write =
        |path: &str, content: &str| std::fs::write(path, content).with_context(|| format!("writing {path}"));
    write("/etc/cloud/cloud.cfg", CLOUD_CONFIGURATION)?;
    let aws = machine.kept.first().map(|environment| environment.join("bin/aws"));
    let aws = aws.as_deref().unwrap_or(Path::new("/usr/bin/aws")).display();
    let aws = format!("#!/bin/sh\nexport AWS_ENDPOINT_URL={}\nexec {aws} \"$@\"\n", emulator::ENDPOINT);
    for (name, content) in [("kubeadm", KUBEADM), ("systemctl", SYSTEMCTL), ("aws", aws.as_str())] {
        let path = format!("{OURS}/bin/{name}");
        write(&path, content)?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o755))
            .with_context(|| format!("marking {path}"))?;
    }
    Ok(())
}

/// Starts a stage, in a process group of its own, with its output on the console.
fn start(machine: &Specification, stage: &[&str]) -> Result<Child> {
    let path = format!("{LOGS}/machine-{}-console.log", machine.instance);
    let open = || {
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        std::io::Result::Ok((file.try_clone()?, file))
    };
    let (output, errors) = open().with_context(|| format!("opening {path}"))?;
    Command::new("/usr/bin/python3")
        .arg(format!("{OURS}/cloud-init/usr/bin/cloud-init"))
        .args(stage)
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", "/root")
        .env("LANG", "C.UTF-8")
        .env("PYTHONPATH", format!("{OURS}/cloud-init/usr/lib/python3/dist-packages"))
        .env("AWS_ENDPOINT_URL", emulator::ENDPOINT)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .with_context(|| format!("starting cloud-init {}", stage.join(" ")))
}

/// Waits for a stage; true if it was killed because a restart was asked for.
async fn restarted(mut child: Child, stage: &[&str]) -> Result<bool> {
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    loop {
        let status = tokio::time::timeout(Duration::from_millis(200), child.wait()).await;
        if Path::new(RESTART).exists() {
            if let (Some(group), Err(_)) = (group, &status) {
                kill_process_group(group, Signal::KILL).context("killing a stage of cloud-init")?;
                child.wait().await.context("waiting for a stage of cloud-init")?;
            }
            std::fs::remove_file(RESTART).context("taking note of the restart")?;
            return Ok(true);
        }
        if let Ok(status) = status {
            let status = status.with_context(|| format!("waiting for cloud-init {}", stage.join(" ")))?;
            tracing::info!(stage = stage.join(" "), %status, "cloud-init");
            return Ok(false);
        }
    }
}
