//! The root of a machine, made from the inside: the host's programs to read, everything else its own.
//!
//! Runs in the machine's fresh mount namespace, before anything else does. What it mounts is gone with the
//! machine.

use std::ffi::{CStr, CString};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change, mount_remount,
};

use super::Specification;

/// What the machine has of ours: wrappers in `bin`, Kubernetes in `programs`, and `cloud-init`.
pub const OURS: &str = "/opt/machine";
/// The machine's log directory.
pub const LOGS: &str = "/var/log/machine";

/// Directories of the host that hold programs and libraries, where they are not links into `/usr`.
const PROGRAMS: [&str; 9] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix", "gnu"];

/// What of the host's `/etc` a program may need to run at all.
const CONFIGURATION: [&str; 22] = [
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "debian_version",
    "group",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "login.defs",
    "lsb-release",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "profile",
    "protocols",
    "python3",
    "rpc",
    "services",
    "ssl",
];

const EMPTY: [&str; 14] = [
    "dev",
    "etc/cloud/cloud.cfg.d",
    "etc/kubernetes/manifests",
    "home",
    "opt/machine/bin",
    "opt/machine/cloud-init",
    "opt/machine/programs",
    "proc",
    "root",
    "run",
    "sys",
    "tmp",
    "var/lib/cloud",
    "var/lib/kubelet/pki",
];

/// Makes the root and moves this process into it.
///
/// # Errors
/// Names the mount that failed.
pub fn enter(machine: &Specification) -> Result<()> {
    let root = machine.root.as_path();
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .context("making mounts private")?;
    // A process inside makes mount namespaces too, which takes a root that is a mount.
    bind(root, root)?;
    for name in EMPTY {
        create(&root.join(name))?;
    }
    for name in PROGRAMS {
        programs(root, name)?;
    }
    configuration(root)?;
    state(machine)?;
    for (source, target) in [
        (&machine.programs, root.join("opt/machine/programs")),
        (&machine.cloud_init, root.join("opt/machine/cloud-init")),
    ] {
        bind(source, &target)?;
    }
    for directory in &machine.kept {
        let target = inside(root, directory);
        create(&target)?;
        bind(directory, &target)?;
    }
    devices(root)?;
    rustix::system::sethostname(machine.hostname.as_bytes()).context("setting the host name")?;
    rustix::process::chroot(root).with_context(|| format!("changing the root to {}", root.display()))?;
    std::env::set_current_dir("/").context("entering the new root")
}

/// A directory of programs: the host's link, or the host's files under a writable layer, or the host's files.
fn programs(root: &Path, name: &str) -> Result<()> {
    let (source, target) = (Path::new("/").join(name), root.join(name));
    let Ok(metadata) = source.symlink_metadata() else { return Ok(()) };
    if metadata.is_symlink() {
        let to = std::fs::read_link(&source).with_context(|| format!("reading {}", source.display()))?;
        return symlink(to, &target).with_context(|| format!("linking {}", target.display()));
    }
    if !metadata.is_dir() {
        return Ok(());
    }
    let layer = root.with_file_name(format!("{name}-written"));
    let work = root.with_file_name(format!("{name}-work"));
    for directory in [&target, &layer, &work] {
        create(directory)?;
    }
    let options = format!(
        "userxattr,lowerdir={},upperdir={},workdir={}",
        source.display(),
        layer.display(),
        work.display()
    );
    let options = CString::new(options).context("encoding mount options")?;
    if mount("overlay", &target, "overlay", MountFlags::empty(), options.as_c_str()).is_ok() {
        return Ok(());
    }
    // Where the layer lies on an overlay itself, as in a container: then at least nothing can be changed.
    mount_bind_recursive(&source, &target).with_context(|| format!("mounting {}", source.display()))?;
    let _ = mount_remount(&target, MountFlags::BIND | MountFlags::RDONLY, c"");
    Ok(())
}

fn configuration(root: &Path) -> Result<()> {
    for name in CONFIGURATION {
        let (source, target) = (Path::new("/etc").join(name), root.join("etc").join(name));
        if source.exists() {
            copy(&source, &target)?;
        }
    }
    // A lookup of anything outside the hosts file fails at once instead of hanging.
    let files = [("resolv.conf", ""), ("fstab", ""), ("shells", "/bin/sh\n/bin/bash\n"), ("machine-id", "")];
    for (name, content) in files {
        write(&root.join("etc").join(name), content)?;
    }
    Ok(())
}

fn state(machine: &Specification) -> Result<()> {
    let root = machine.root.as_path();
    write(&root.join("etc/hostname"), &format!("{}\n", machine.hostname))?;
    let hosts = root.join("etc/hosts");
    write(&hosts, "")?;
    bind(&machine.hosts, &hosts)?;
    let logs = inside(root, Path::new(LOGS));
    create(&logs)?;
    bind(&machine.logs, &logs)?;
    let link = root.join("var/run");
    symlink("/run", &link).with_context(|| format!("linking {}", link.display()))?;
    for name in ["run", "tmp"] {
        let target = root.join(name);
        mount("tmpfs", &target, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=1777")
            .with_context(|| format!("mounting {}", target.display()))?;
    }
    Ok(())
}

fn devices(root: &Path) -> Result<()> {
    mount("proc", root.join("proc"), "proc", MountFlags::empty(), None::<&CStr>).context("mounting /proc")?;
    mount_bind_recursive("/dev", root.join("dev")).context("mounting /dev")?;
    // A fresh one shows the machine's own network devices; some containers allow only the host's.
    let target = root.join("sys");
    if mount("sysfs", &target, "sysfs", MountFlags::RDONLY, None::<&CStr>).is_err() {
        mount_bind_recursive("/sys", &target).context("mounting /sys")?;
    }
    Ok(())
}

/// The place of an absolute path below `root`.
fn inside(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Copies files and directories, links as what they point to; what may not be read is left out.
fn copy(source: &Path, target: &Path) -> Result<()> {
    if source.is_dir() {
        create(target)?;
        for entry in std::fs::read_dir(source).into_iter().flatten().flatten() {
            copy(&entry.path(), &target.join(entry.file_name()))?;
        }
    } else if let Ok(content) = std::fs::read(source) {
        std::fs::write(target, content).with_context(|| format!("writing {}", target.display()))?;
    }
    Ok(())
}

fn bind(source: &Path, target: &Path) -> Result<()> {
    mount_bind(source, target)
        .with_context(|| format!("mounting {} on {}", source.display(), target.display()))
}

fn create(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("creating {}", directory.display()))
}

fn write(file: &Path, content: &str) -> Result<()> {
    std::fs::write(file, content).with_context(|| format!("writing {}", file.display()))
}
