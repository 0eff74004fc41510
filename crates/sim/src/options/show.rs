//! Options in a few lines, for reports.

use std::fmt;

use super::{FaultKind, Options, Verb};

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} on {} nodes x {} shards, {} groups, {} clients{}, {}+{} keys, {} calls, phase {} ms",
            self.profile(),
            self.nodes,
            self.shards,
            self.groups,
            self.clients,
            if self.faithful { " faithful to a role" } else { "" },
            self.text_keys,
            self.number_keys,
            self.calls,
            self.phase_us / 1000
        )?;
        writeln!(f, "  verbs {}", named(&self.mix, Verb::ALL.map(|v| format!("{v:?}"))))?;
        writeln!(
            f,
            "  sizes {:?}, expiry {} %, second {} us, think {} us, bursts {} %, patience {} us",
            self.sizes.mix,
            self.expiry_percent,
            self.second_us,
            self.think_us,
            self.bursts_percent,
            self.patience_us
        )?;
        writeln!(f, "  {:?}", self.timing)?;
        writeln!(f, "  {:?}", self.limits)?;
        writeln!(f, "  {:?}, {:?}, drift {} ppm", self.memory, self.batching, self.drift_ppm)?;
        writeln!(f, "  {:?}, scrub every {} us, {:?}", self.network, self.scrub_every_us, self.wall)?;
        if let Some(succession) = &self.succession {
            writeln!(f, "  {succession:?}")?;
        }
        if let Some(objects) = &self.objects {
            writeln!(f, "  {objects:?}, {:?}", self.graphs)?;
        }
        if let Some(natives) = &self.natives {
            writeln!(f, "  {natives:?}")?;
        }
        let faults = &self.faults;
        write!(
            f,
            "  faults every {} us for {} us, aimed {} %, sparing parities {} %, restart {} %, supervised {:?}, beyond m by {} \
             ({:?}){}: {}",
            faults.every_us,
            faults.lasting_us,
            faults.aimed_percent,
            faults.spare_parities_percent,
            faults.restart_percent,
            faults.supervised_us,
            faults.beyond,
            self.on_loss,
            if faults.forgets { ", coordinators start with nothing" } else { "" },
            named(&faults.mix, FaultKind::ALL.map(|kind| format!("{kind:?}")))
        )
    }
}

/// The names with their weights, those of weight 0 left out.
fn named<const N: usize>(weights: &[u32; N], names: [String; N]) -> String {
    let drawn = weights.iter().zip(names).filter(|(weight, _)| **weight > 0);
    drawn.map(|(weight, name)| format!("{name}:{weight}")).collect::<Vec<_>>().join(" ")
}
