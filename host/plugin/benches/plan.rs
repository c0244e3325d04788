//! Prints how large each built-in plugin is and how long a plan takes with everything that a call includes,
//! instantiation first of all, each beside its bar, and how much fuel. Judges nothing: what is over its bar
//! is printed as such, and a test refuses what is too large.

#[path = "../tests/common/mod.rs"]
mod common;

use plugin::{Engine, Limits, built_in};
use serde_json::json;
use std::time::{Duration, Instant};

const RUNS: usize = 2000;

fn main() -> Result<(), plugin::PluginError> {
    let engine = Engine::new(Limits::default(), None)?;
    let row = |cells: [&str; 9]| {
        let [plugin, bytes, largest, load, p50, longest, p99, fuel, runs] = cells;
        println!(
            "{plugin:<30} {bytes:>9} {largest:>9} {load:>9} {p50:>9} {longest:>9} {p99:>9} {fuel:>12} \
             {runs:>9}"
        );
    };
    row(["plugin", "bytes", "bar", "load", "p50", "bar", "p99", "fuel", "runs"]);
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
        let (bytes, largest) = (built_in.bytes.len().to_string(), format!("<= {}", common::LARGEST));
        let (load, fuel, runs) = (milliseconds(load), fuel.to_string(), RUNS.to_string());
        row([built_in.name, &bytes, &largest, &load, &p50, "<= 1 ms", &p99, &fuel, &runs]);
    }
    Ok(())
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1000.0)
}
