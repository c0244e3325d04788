//! Stores compiled components in a folder, by the digest of the component and what the compiler was told.
//! Anything wrong with the folder or a file in it means compiling again, never an error.
//!
//! A file is the SHA-256 of what follows, and the compiled component. It is written aside and renamed, so a
//! reader sees all of it or none. The oldest files go when all together take more than [`LARGEST`].

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
/// Bytes of all files together. The built-in plugins take about a tenth of it.
const LARGEST: u64 = 256 << 20;
/// How the names of compiled components end.
const COMPILED: &str = "compiled";
/// How the name of one ends that is not whole yet.
const UNFINISHED: &str = "unfinished";

/// A folder of compiled components.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    /// Bytes of all files together.
    largest: u64,
}

impl Cache {
    /// A cache in `folder`, which is made if it is not there. None when others could put code into it.
    pub fn open(folder: &Path) -> Option<Cache> {
        let opened =
            DirBuilder::new().recursive(true).mode(0o700).create(folder).and_then(|()| is_private(folder));
        match opened {
            Ok(true) => Some(Cache { folder: folder.to_owned(), largest: LARGEST }),
            Ok(false) => {
                tracing::warn!(
                    folder = %folder.display(),
                    "others can write here; compiled plugins are not cached"
                );
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

    /// Stores a compiled component, and makes room for it.
    pub fn write(&self, engine: &Engine, digest: &str, component: &Component) {
        let path = self.path(engine, digest);
        let written = component.serialize().map_err(io::Error::other).and_then(|code| {
            let hash = Sha256::digest(&code);
            self.evict((hash.len() + code.len()) as u64)?;
            let unfinished = path.with_extension(format!("{}.{UNFINISHED}", std::process::id()));
            fs::write(&unfinished, [hash.as_slice(), code.as_slice()].concat())?;
            fs::rename(&unfinished, &path)
        });
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "a compiled plugin was not cached");
        }
    }

    /// Removes the oldest files until there is room for `size` bytes more. Files of other names are not ours.
    fn evict(&self, size: u64) -> io::Result<()> {
        if size > self.largest {
            return Err(io::Error::other(format!("{size} bytes are more than the cache may hold")));
        }
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            if !matches!(extension, Some(COMPILED | UNFINISHED)) {
                continue;
            }
            // Another copy of this program may have removed it meanwhile.
            let Ok(file) = fs::metadata(&path) else { continue };
            files.push((file.modified()?, file.len(), path));
        }
        files.sort();
        let mut total = size + files.iter().map(|(_, size, _)| size).sum::<u64>();
        for (_, size, path) in files {
            if total <= self.largest {
                break;
            }
            fs::remove_file(path)?;
            total -= size;
        }
        Ok(())
    }

    fn path(&self, engine: &Engine, digest: &str) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let name = digest.trim_start_matches("sha256:");
        self.folder.join(format!("{name}-{:016x}.{COMPILED}", hasher.finish()))
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
    fn the_oldest_files_make_room_and_files_of_others_stay() {
        let folder = std::env::temp_dir().join(format!("cluster-operator-cache-{}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        let cache = Cache { largest: 10, ..Cache::open(&folder).expect("it can be made") };
        for (name, age) in
            [("a.compiled", 30), ("b.1.unfinished", 20), ("c.compiled", 10), ("of-others.txt", 40)]
        {
            let file = fs::File::create(folder.join(name)).expect("it can be written");
            io::Write::write_all(&mut &file, b"1234").expect("it can be written");
            let modified = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
            file.set_modified(modified).expect("its time can be set");
        }
        let files = || {
            let entries = fs::read_dir(&folder).expect("it is there").flatten();
            let mut names: Vec<_> =
                entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort();
            names.join(" ")
        };
        cache.evict(3).expect("there is room");
        assert_eq!(files(), "c.compiled of-others.txt");
        assert!(cache.evict(11).is_err(), "more than all");
        assert_eq!(files(), "c.compiled of-others.txt");
        fs::remove_dir_all(&folder).expect("it goes away");
    }

    #[test]
    fn code_for_another_engine_is_kept_elsewhere() {
        let engine = |is_interrupted: bool| {
            Engine::new(Config::new().epoch_interruption(is_interrupted)).expect("this machine can run Wasm")
        };
        let cache = Cache { folder: PathBuf::new(), largest: LARGEST };
        let path = |is_interrupted: bool| cache.path(&engine(is_interrupted), "sha256:00");
        assert_eq!(path(true), path(true));
        assert_ne!(path(true), path(false));
    }
}
