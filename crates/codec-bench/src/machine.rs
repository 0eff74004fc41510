//! What was measured on.

use std::fs;

use serde::Serialize;

/// The machine and what the codec chose on it.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's name; empty if the system does not tell.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// The kernel in use.
    pub kernel: &'static str,
    /// The first card, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
}

impl Machine {
    /// This one.
    #[must_use]
    pub fn here() -> Self {
        let table = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = table.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        Self {
            processor: name.map_or_else(String::new, |(_, name)| name.trim().to_owned()),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            kernel: codec::kernel().name(),
            card: codec_cuda::Device::open(0).ok().map(|device| device.name().to_owned()),
        }
    }
}
