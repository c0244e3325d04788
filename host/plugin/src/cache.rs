//! Keeps compiled components in a folder, by the digest of the component and what the compiler was told.
//! Anything wrong with the folder or a file in it means compiling again, never an error.
//!
//! A file is the SHA-256 of what follows, and the compiled component. It is written aside and renamed, so a
//! reader sees all of it or none.

use crate::compiled;
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use wasmtime::Engine;
use wasmtime::component::Component;

/// Bytes of the hash in front of the code.
const HASH: usize = 32;

/// A folder of compiled components.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// A cache in `folder`, which is made if it is not there. None when others could put code into it.
    pub fn open(folder: &Path) -> Option<Cache> {
        let opened =
            DirBuilder::new().recursive(true).mode(0o700).create(folder).and_then(|()| is_private(folder));
        match opened {
            Ok(true) => Some(Cache { folder: folder.to_owned() }),
            Ok(false) => {
                tracing::warn!(folder = %folder.display(), "others can write here; compiled plugins are not cached");
                None
            }
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "compiled plugins are not cached");
                None
            }
        }
    }

    /// The component of that digest, if it was compiled before.
    pub fn read(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let file = fs::read(self.path(engine, digest)).ok()?;
        let (hash, code) = file.split_at_checked(HASH)?;
        if Sha256::digest(code).as_slice() != hash {
            tracing::warn!(digest, "a compiled plugin is damaged and is compiled again");
            return None;
        }
        compiled::load(engine, code).ok()
    }

    /// Keeps a compiled component.
    pub fn write(&self, engine: &Engine, digest: &str, component: &Component) {
        let path = self.path(engine, digest);
        let aside = path.with_extension(format!("{}.new", std::process::id()));
        let written = component.serialize().map_err(io::Error::other).and_then(|code| {
            fs::write(&aside, [Sha256::digest(&code).as_slice(), code.as_slice()].concat())?;
            fs::rename(&aside, &path)
        });
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "a compiled plugin was not cached");
        }
    }

    fn path(&self, engine: &Engine, digest: &str) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let name = digest.trim_start_matches("sha256:");
        self.folder.join(format!("{name}-{:016x}.compiled", hasher.finish()))
    }
}

/// Whether only our own user can write to the folder.
fn is_private(folder: &Path) -> io::Result<bool> {
    let folder = fs::metadata(folder)?;
    let us = fs::metadata("/proc/self")?;
    Ok(folder.uid() == us.uid() && folder.mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmtime::Config;

    #[test]
    fn code_for_another_engine_is_kept_elsewhere() {
        let engine = |is_interrupted: bool| {
            Engine::new(Config::new().epoch_interruption(is_interrupted)).expect("this machine can run Wasm")
        };
        let cache = Cache { folder: PathBuf::new() };
        let path = |is_interrupted: bool| cache.path(&engine(is_interrupted), "sha256:00");
        assert_eq!(path(true), path(true));
        assert_ne!(path(true), path(false));
    }
}
