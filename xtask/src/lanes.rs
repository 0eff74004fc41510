//! All steps on two cores: those that wait for processes leave the cores idle half of the time, and others compute meanwhile.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command};

use crate::run::root;
use crate::steps::Step;

/// Steps that another process runs, with what the processors have left.
pub struct Beside {
    child: Child,
    log: PathBuf,
}

impl Beside {
    /// Begins to run `steps`, in this order. What they say goes into a file.
    pub fn begin(steps: &[&Step]) -> Result<Self, String> {
        let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
        let log = root().join("target/beside.log");
        println!("\n=== beside the next steps: {} (log: {})", names.join(", "), log.display());
        let file = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let copy = file.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(own).arg("test").args(names).stdout(file).stderr(copy);
        let child = command.spawn().map_err(|error| format!("cannot run them: {error}"))?;
        Ok(Self { child, log })
    }

    /// Waits for them, and shows what they have said.
    pub fn end(mut self) -> Result<(), String> {
        let status = self.child.wait();
        let said = std::fs::read(&self.log).unwrap_or_default();
        println!("{}", String::from_utf8_lossy(&said));
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(_) => Err("steps beside the others failed".to_owned()),
            Err(error) => Err(format!("cannot wait for the steps beside the others: {error}")),
        }
    }
}

/// Whoever is interrupted leaves nothing running.
impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
