//! `sandbox down`.

use anyhow::Result;
use sandbox::world::launch;

use super::Name;

pub fn run(name: &Name) -> Result<()> {
    let ran = launch::down(&name.name)?;
    println!("sandbox {:?} {}", name.name, if ran { "is gone" } else { "was not up" });
    Ok(())
}
