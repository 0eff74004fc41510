//! JSON documents that people compare: one line for each thing that was measured.

use serde::Serialize;
use serde_json::Value;

/// A struct as JSON; its lists have one line for each entry.
///
/// # Errors
/// What `serde_json` says.
pub(crate) fn by_lines(document: &impl Serialize) -> serde_json::Result<String> {
    let Value::Object(fields) = serde_json::to_value(document)? else { unreachable!("a struct") };
    let mut lines = Vec::new();
    for (name, value) in fields {
        let text = match value {
            Value::Array(entries) => {
                let entries: Vec<String> =
                    entries.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
                format!("[\n    {}\n  ]", entries.join(",\n    "))
            }
            other => serde_json::to_string(&other)?,
        };
        lines.push(format!("  {}: {text}", serde_json::to_string(&name)?));
    }
    Ok(format!("{{\n{}\n}}\n", lines.join(",\n")))
}

/// The processor, its cores, the kernel.
pub(crate) fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let table = read("/proc/cpuinfo");
    let processor = table.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = read("/proc/sys/kernel/osrelease");
    let series: Vec<&str> = kernel.trim().split('.').take(2).collect();
    let processor = processor.map_or("unknown processor", |(_, name)| name);
    format!("{processor}, {} cores, Linux {}", cores(), series.join("."))
}

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
