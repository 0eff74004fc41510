//! What both commands ask about.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use codec::Code;
use graph::{
    Aim, EncodeQuestion, Execution, LinkEnd, Links, Place, Question, Scheme, Shape, Source, Unplannable,
    Wanted, plan, plan_encode,
};
use types::{NodeId, RoleIndex};

use crate::exit::Exit;
use crate::units::Size;

/// Longest file of links that is read.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The question.
#[derive(Args, Clone, Debug)]
pub struct QuestionArgs {
    /// The code; role I is at node I
    #[arg(long, default_value = "rs(6+3)")]
    code: codec::Scheme,
    /// Roles that are lost, and wanted; the first data role if not given
    #[arg(long, value_delimiter = ',', value_name = "ROLE")]
    lost: Vec<u8>,
    /// Encode a new stripe instead: the asker has the data
    #[arg(long, conflicts_with_all = ["lost", "to"])]
    encode: bool,
    /// Bytes of a chunk
    #[arg(long, default_value = "1MiB")]
    chunk: Size,
    /// Nodes that the chunks are rebuilt at, one for each lost role; whoever asks if not given
    #[arg(long, value_delimiter = ',', value_name = "NODE")]
    to: Vec<u16>,
    /// Bandwidth of every link, in Gbit/s
    #[arg(long, default_value_t = 1.0)]
    gbit: f64,
    /// One way between two nodes, in microseconds
    #[arg(long, default_value_t = 50.0)]
    latency_us: f64,
    /// Parameters of the model as JSON, instead of --gbit and --latency-us: what `explain -o json` prints as `links`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["gbit", "latency_us"])]
    links: Option<PathBuf>,
    /// What is good: little of the busiest link's time instead of an early end
    #[arg(long)]
    repair: bool,
    /// What a MiB between two zones costs, in microseconds
    #[arg(long, default_value_t = 0.0)]
    zone_mib: f64,
    /// Receive all, then compute all, then send all: the baseline of INEC's figures
    #[arg(long)]
    incoherent: bool,
}

/// The question, checked.
pub struct Asked {
    pub name: codec::Scheme,
    pub code: Code,
    pub links: Links,
    pub aim: Aim,
    pub execution: Execution,
    pub len: u32,
    pub lost: Vec<u8>,
    pub is_encoding: bool,
    wanted: Vec<Wanted>,
    sources: Vec<Source>,
}

impl QuestionArgs {
    /// # Errors
    /// `Usage` for what no code and no graph can be.
    pub fn read(&self) -> Result<Asked, Exit> {
        let code = Code::of(self.code).map_err(Exit::usage)?;
        let lost = if self.lost.is_empty() { vec![0] } else { self.lost.clone() };
        if !self.to.is_empty() && self.to.len() != lost.len() {
            return Err(Exit::usage("--to names one node for each lost role"));
        }
        let is_fit = |value: f64| value.is_finite() && value >= 0.0;
        if !is_fit(self.gbit) || self.gbit == 0.0 || !is_fit(self.latency_us) || !is_fit(self.zone_mib) {
            return Err(Exit::usage("--gbit is above 0, --latency-us and --zone-mib are not below 0"));
        }
        let aim = if self.repair { Aim::REPAIR } else { Aim::READER };
        let place = |at: usize| self.to.get(at).map_or(Place::Asker, |node| Place::Node(NodeId(*node)));
        let wanted =
            lost.iter().enumerate().map(|(at, role)| Wanted { role: RoleIndex(*role), to: place(at) });
        let present = (0..=u8::MAX).take(code.n()).filter(|role| !lost.contains(role));
        Ok(Asked {
            name: self.code,
            links: self.read_links()?,
            aim: Aim { zone_mib: self.zone_mib, ..aim },
            execution: if self.incoherent { Execution::Incoherent } else { Execution::Coherent },
            len: u32::try_from(self.chunk.0)
                .map_err(|_| Exit::usage("--chunk is longer than a chunk may be"))?,
            wanted: wanted.collect(),
            sources: present
                .map(|role| Source { role: RoleIndex(role), node: NodeId(role.into()) })
                .collect(),
            is_encoding: self.encode,
            lost,
            code,
        })
    }

    fn read_links(&self) -> Result<Links, Exit> {
        let Some(path) = &self.links else {
            return Ok(Links::uniform(LinkEnd::symmetric(self.gbit, self.latency_us / 2.0)));
        };
        let wrong = |error: &dyn std::fmt::Display| Exit::usage(format!("{}: {error}", path.display()));
        let len = fs::metadata(path).map_err(|error| wrong(&error))?.len();
        if len > MAX_FILE_BYTES {
            return Err(wrong(&"longer than any file of links"));
        }
        let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let links: Links = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        if links.is_sound() {
            Ok(links)
        } else {
            Err(wrong(&"bandwidths and rates are above 0, times are not below 0"))
        }
    }
}

impl Asked {
    /// The graph of a scheme.
    pub fn shape(&self, scheme: Scheme) -> Result<Shape, Unplannable> {
        let (code, len, links, aim, execution) =
            (&self.code, self.len, &self.links, self.aim, self.execution);
        if self.is_encoding {
            let holders: Vec<NodeId> = (0..=u16::MAX).take(code.n()).map(NodeId).collect();
            return plan_encode(
                &EncodeQuestion { code, holders: &holders, len, links, aim, execution },
                scheme,
            );
        }
        let (sources, wanted) = (&self.sources, &self.wanted);
        plan(&Question { code, sources, wanted, len, links, avoided: &[], aim, execution }, scheme)
    }

    /// The schemes that can do it.
    pub fn schemes(&self) -> &'static [Scheme] {
        if self.is_encoding { Scheme::ENCODING } else { Scheme::DECODING }
    }

    /// What is asked, in a few words.
    pub fn what(&self) -> String {
        let len = Size(self.len.into());
        if self.is_encoding {
            return format!("{}: encode chunks of {len}", self.name);
        }
        let lost: Vec<String> = self.lost.iter().map(ToString::to_string).collect();
        format!("{}: chunks of {len} of roles {}", self.name, lost.join(", "))
    }
}
