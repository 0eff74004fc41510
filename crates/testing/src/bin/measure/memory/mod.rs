//! Resident memory per stored value, net of the empty processes; then what share of it holds keys and values.

mod client;
pub mod utilisation;

use crate::Arguments;
use testing::servers::Server;

const SIZES: [(&str, u32); 3] = [("100 B", 100), ("1 KiB", 1024), ("4 KiB", 4096)];

/// Loads values of each size into fresh servers and prints what each value costs.
pub fn measure(arguments: &Arguments) -> Result<(), String> {
    println!("\nResident bytes per stored value, {} values of each size:", arguments.values);
    println!(
        "| value | gestalt rs(3+2) | memcached x1 | memcached x3 | redis 1+2 |\n| --- | --- | --- | --- | --- |"
    );
    for (title, bytes) in SIZES {
        let gestalt = per_value(&Server::gestalt("rs(3+2)", 5, "2GiB")?, bytes, arguments.values)?;
        let memcached = per_value(&Server::memcached()?, bytes, arguments.values)?;
        let redis = per_value(&Server::valkey(2)?, bytes, arguments.values)?;
        println!("| {title} | {gestalt:.0} | {memcached:.0} | {:.0} | {redis:.0} |", memcached * 3.0);
    }
    Ok(())
}

fn per_value(server: &Server, bytes: u32, values: u32) -> Result<f64, String> {
    let before = server.resident();
    let (keys, size) = (values.to_string(), bytes.to_string());
    server.bench("load", ["--keys", &keys, "--value-size", &size])?;
    Ok(server.resident().saturating_sub(before) as f64 / f64::from(values))
}
