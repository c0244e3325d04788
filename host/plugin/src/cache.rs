//! Stores components in a folder: compiled, by the digest of the component and what the compiler was told;
//! and those from outside as they are, by their digest, so that they are there when the registry is not.
//! Anything wrong with the folder or a file in it means doing the work again, never an error.
//!
//! A file of code is the SHA-256 of what follows, and the code; a component is named by its own SHA-256. Both
//! are written aside and renamed, so a reader sees all of a file or none. Those that were not used for the
//! longest time go when all together take more than [`LARGEST`].

use crate::compiled;
use crate::digest::is_digest;
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Bytes of the hash in front of the code.
const HASH: usize = 32;
/// Bytes of all files together. The built-in plugins take about a fifteenth of it.
const LARGEST: u64 = 384 << 20;
/// How the names of compiled components end.
const COMPILED: &str = "compiled";
/// How the names of components end.
const COMPONENT: &str = "wasm";
/// How the name of a file ends that says which component a source has.
const SOURCE: &str = "source";
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

    /// The code of the component of that digest, if it was compiled before.
    pub fn read(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let path = self.code(engine, digest)?;
        let file = read(&path)?;
        let code = file
            .split_at_checked(HASH)
            .filter(|(hash, code)| Sha256::digest(code).as_slice() == *hash)
            .map(|(_, code)| code);
        let Some(code) = code else {
            discard(&path);
            return None;
        };
        compiled::load(engine, code).ok()
    }

    /// Stores the code of a component, and makes room for it.
    pub fn write(&self, engine: &Engine, digest: &str, code: &[u8]) {
        if let Some(path) = self.code(engine, digest) {
            self.put(&path, &[Sha256::digest(code).as_slice(), code]);
        }
    }

    /// The component of that digest, if it was stored.
    pub fn component(&self, digest: &str) -> Option<Vec<u8>> {
        let path = self.file(digest)?;
        let bytes = read(&path)?;
        if crate::digest::digest(&bytes) != digest {
            discard(&path);
            return None;
        }
        Some(bytes)
    }

    /// Stores a component unless it is there, and makes room for it.
    pub fn store(&self, digest: &str, bytes: &[u8]) {
        let is_there = |path: &Path| fs::metadata(path).is_ok_and(|file| file.len() == bytes.len() as u64);
        match self.file(digest) {
            Some(path) if is_there(&path) => touch(&path),
            Some(path) => self.put(&path, &[bytes]),
            None => (),
        }
    }

    /// Stores which component a source has.
    pub fn store_source(&self, source: &str, digest: &str) {
        self.put(&self.source(source), &[digest.as_bytes()]);
    }

    /// Digest of the component that a source has, if it was stored.
    pub fn component_of(&self, source: &str) -> Option<String> {
        String::from_utf8(read(&self.source(source))?).ok()
    }

    fn source(&self, source: &str) -> PathBuf {
        let name = crate::digest::digest(source.as_bytes());
        self.folder.join(name.trim_start_matches("sha256:")).with_extension(SOURCE)
    }

    fn put(&self, path: &Path, parts: &[&[u8]]) {
        let size = parts.iter().map(|part| part.len() as u64).sum();
        let written = self.evict(size).and_then(|()| {
            let unfinished = path.with_extension(format!("{}.{UNFINISHED}", std::process::id()));
            let mut file = fs::File::create(&unfinished)?;
            parts.iter().try_for_each(|part| file.write_all(part))?;
            fs::rename(&unfinished, path)
        });
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "a plugin was not cached");
        }
    }

    /// Removes the files that were not used for the longest time until there is room for `size` bytes more. Files of other names are not ours.
    fn evict(&self, size: u64) -> io::Result<()> {
        if size > self.largest {
            return Err(io::Error::other(format!("{size} bytes are more than the cache may hold")));
        }
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            if !matches!(extension, Some(COMPILED | COMPONENT | SOURCE | UNFINISHED)) {
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

    fn code(&self, engine: &Engine, digest: &str) -> Option<PathBuf> {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let name = hash_of(digest)?;
        Some(self.folder.join(format!("{name}-{:016x}.{COMPILED}", hasher.finish())))
    }

    fn file(&self, digest: &str) -> Option<PathBuf> {
        hash_of(digest).map(|name| self.folder.join(name).with_extension(COMPONENT))
    }
}

/// The part of a digest that names files; of nothing else, because users write digests.
fn hash_of(digest: &str) -> Option<&str> {
    digest.strip_prefix("sha256:").filter(|_| is_digest(digest))
}

/// The bytes of a file, which counts as used now.
fn read(path: &Path) -> Option<Vec<u8>> {
    let bytes = fs::read(path).ok()?;
    touch(path);
    Some(bytes)
}

fn touch(path: &Path) {
    // Else it goes earlier than it should.
    let _ = fs::File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
}

fn discard(path: &Path) {
    tracing::warn!(path = %path.display(), "a stored plugin is damaged and is made anew");
    let _ = fs::remove_file(path);
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
        let digest = crate::digest::digest(b"component");
        let path = |is_interrupted: bool| cache.code(&engine(is_interrupted), &digest);
        assert!(path(true).is_some());
        assert_eq!(path(true), path(true));
        assert_ne!(path(true), path(false));
    }
}
