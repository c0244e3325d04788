//! Prints how long a plan takes with everything that a call includes, instantiation first of all, and how much fuel. Judges nothing.

#[path = "../tests/common/mod.rs"]
mod common;

use plugin::{Engine, Limits, built_in};
use serde_json::json;
use std::time::{Duration, Instant};

const RUNS: usize = 2000;

fn main() -> Result<(), plugin::PluginError> {
    let engine = Engine::new(Limits::default(), None)?;
    println!("{:<30} {:>9} {:>9} {:>9} {:>9} {:>12} {:>9}", "plugin", "bytes", "load", "p50", "p99", "fuel", "runs");
    for built_in in built_in() {
        let start = Instant::now();
        let plugin = engine.load(built_in.name, built_in.bytes)?;
        let load = start.elapsed();
        let request = common::request(json!({}));
        let mut fuel = 0;
        let mut times = Vec::with_capacity(RUNS);
        for _ in 0..RUNS {
            let start = Instant::now();
            fuel = plugin.plan(&request)?.fuel;
            times.push(start.elapsed());
        }
        times.sort();
        let [p50, p99] = [50, 99].map(|percent| milliseconds(times[RUNS * percent / 100]));
        println!("{:<30} {:>9} {:>9} {p50:>9} {p99:>9} {fuel:>12} {RUNS:>9}", built_in.name, built_in.bytes.len(), milliseconds(load));
    }
    Ok(())
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1000.0)
}
