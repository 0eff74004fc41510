//! What a card did when, in the format of Chrome's tracing, which Perfetto reads, too.

use std::fs;
use std::path::Path;

use codec_bench::{BenchError, Case};
use serde_json::json;

/// Writes a process for each side of each case, and a thread for each slot.
///
/// # Errors
/// `Io`.
pub fn write(file: &Path, cases: &[Case]) -> Result<(), BenchError> {
    let sides = cases.iter().flat_map(|case| case.sides.iter().map(move |side| (case, side)));
    let mut events = Vec::new();
    for (process, (case, side)) in sides.filter(|(_, side)| !side.trace.is_empty()).enumerate() {
        let name = format!("{} {}, chunks of {} B", side.name, case.op, case.chunk_bytes);
        events.push(json!({ "ph": "M", "name": "process_name", "pid": process, "args": { "name": name } }));
        events.extend(side.trace.iter().map(|span| {
            json!({
                "ph": "X",
                "name": span.stage.name(),
                "pid": process,
                "tid": span.slot,
                "ts": span.begin * 1e6,
                "dur": (span.end - span.begin) * 1e6,
            })
        }));
    }
    let text = json!({ "traceEvents": events }).to_string();
    fs::write(file, text).map_err(|error| BenchError::Io(format!("cannot write {}: {error}", file.display())))
}
