//! What a program in Python gets done: small operations a second from asyncio, one by one and in batches, and values that are read into NumPy's
//! arrays (`rates.py`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use processes::local_cluster::{LocalCluster, Options};
use processes::others::{outputs, python_with};
use serde::{Deserialize, Serialize};

use super::arguments::Arguments;
use crate::spread::Spread;

const NUMPY: &str = "numpy==2.4.6";

/// One way to ask.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    pub what: String,
    /// Thousands of operations a second, or gigabytes (10^9) of values.
    pub unit: String,
    pub rate: Spread,
}

/// One process of Python, which asks for everything in turns, as many rounds as there are.
pub fn measure(arguments: &Arguments) -> Result<Vec<Rate>, String> {
    let Some(library) = &arguments.python_library else {
        println!("left out: Python, for want of --python-library");
        return Ok(Vec::new());
    };
    let cluster = LocalCluster::start(&Options::default())?;
    let address = cluster.native(0)?;
    let mut script = script("rates.py", library)?;
    script.arg(format!("gestalt://{address}/default"));
    script.args([arguments.rounds(), arguments.milliseconds()].map(|number| number.to_string()));
    let (printed, _) = outputs(&mut script)?;
    let lines = printed.lines().map(|line| {
        let (what, unit, rates): (String, String, Vec<f64>) =
            serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
        let rate = Rate { what, unit, rate: Spread::of(rates) };
        println!("{rate:?}");
        Ok(rate)
    });
    lines.collect()
}

/// A script beside this file, run by a Python that has the package and NumPy.
pub fn script(name: &str, library: &Path) -> Result<Command, String> {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = absolute(library)?;
    let mut script = Command::new(python_with("native-python", &[NUMPY])?);
    script.arg(crate_dir.join("src/native").join(name));
    script.env("PYTHONPATH", crate_dir.join("../../bindings/python")).env("GESTALT_LIBRARY", library);
    // Its own threads would compute on the cores that the transfer needs.
    script.env("OPENBLAS_NUM_THREADS", "1").env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(script)
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    fs::canonicalize(path).map_err(|error| format!("{}: {error}", path.display()))
}
