//! The pipelined critical path of a graph (`T = L + bytes/B + products/C + h` for each step).
//!
//! The first slice of every edge is followed through the graph: links send and receive one slice after the other, a step begins
//! when it has a slice of each input. What follows takes as long as the busiest link, process or window needs for the rest.

use serde::Serialize;

use super::links::{LinkEnd, Links};
use crate::graph::{Edge, Execution, Place, Step};
use crate::limits::MIN_SLICE_BYTES;

/// Bytes of a message besides its slice.
const MESSAGE_BYTES: f64 = 64.0;

/// What a graph will cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Prediction {
    /// From start to the last byte, in microseconds.
    pub us: f64,
    /// Of these, until the first slice has come to all ends.
    pub fill_us: f64,
    /// How long the busiest link sends or receives, in microseconds.
    pub busiest_us: f64,
    /// Bytes that go from one zone to another.
    pub zone_bytes: u64,
}

/// How slices flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub slice_len: u32,
    pub window: u8,
    pub execution: Execution,
}

/// A graph as the model sees it: places by numbers, with what each moves in all. Made once, asked for each length of slices.
pub(crate) struct Outline<'a> {
    steps: &'a [Step],
    links: &'a Links,
    ends: Vec<LinkEnd>,
    /// Of each step, the number of its place.
    at: Vec<usize>,
    /// Of each step the products it adds up for each byte.
    products: Vec<f64>,
    /// Of each step the edges that it sends along, and those that it receives along.
    sends: Vec<f64>,
    receives: Vec<f64>,
    /// Of each place, the edges along which it sends chunks of its own.
    own: Vec<f64>,
    /// In the order of their first steps.
    edges: Vec<Edge>,
    /// Steps by how many others come before them: that is about when they have what they need.
    order: Vec<usize>,
    /// From the asker to each place, in microseconds.
    start_us: Vec<f64>,
}

/// Predicts `steps` and `edges`, in slices of `slice_len` with `window` of them in flight.
///
/// # Panics
/// If an edge names a step that is not there: a checked graph has none.
#[must_use]
pub fn predict(
    steps: &[Step],
    edges: &[Edge],
    slice_len: u32,
    window: u8,
    execution: Execution,
    links: &Links,
) -> Prediction {
    Outline::new(steps, edges, links).predict(Flow { slice_len, window, execution })
}

impl<'a> Outline<'a> {
    pub(crate) fn new(steps: &'a [Step], edges: &[Edge], links: &'a Links) -> Self {
        let mut places: Vec<Place> = steps.iter().map(|step| links.stand(step.at)).collect();
        places.sort_unstable();
        places.dedup();
        let number = |step: &Step| places.binary_search(&links.stand(step.at)).unwrap_or(0);
        let ends: Vec<LinkEnd> = places.iter().map(|place| links.end(*place)).collect();
        let asker = links.end(Place::Asker);
        let stands_at = links.stand(Place::Asker);
        let start = |(place, end): (&Place, &LinkEnd)| {
            if *place == stands_at { 0.0 } else { links.way_us(&asker, end) }
        };
        let start_us = places.iter().zip(&ends).map(start).collect();
        let mut edges = edges.to_vec();
        let (mut sends, mut receives) = (vec![0.0; steps.len()], vec![0.0; steps.len()]);
        for edge in &edges {
            sends[edge.from as usize] += 1.0;
            receives[edge.to as usize] += 1.0;
        }
        edges.sort_by_key(|edge| edge.from);
        let order = by_depth(steps.len(), &edges);
        let at: Vec<usize> = steps.iter().map(number).collect();
        let mut own = vec![0.0; ends.len()];
        for (step, place) in at.iter().enumerate().filter(|(step, _)| receives[*step] == 0.0) {
            own[*place] += sends[step];
        }
        Self {
            steps,
            links,
            at,
            own,
            products: products(steps),
            sends,
            receives,
            edges,
            order,
            start_us,
            ends,
        }
    }

    pub(crate) fn predict(&self, flow: Flow) -> Prediction {
        let fill_us = self.first_round(flow);
        let (up, down, cpu) = self.totals(flow, |span, _| f64::from(span));
        let busiest = |per_place: &[f64]| per_place.iter().copied().fold(0.0, f64::max);
        let busiest_us = busiest(&up).max(busiest(&down));
        let rest = match flow.execution {
            Execution::Incoherent => 0.0,
            Execution::Coherent => {
                let (up_first, down_first, cpu_first) =
                    self.totals(flow, |span, slice| f64::from(span.min(slice)));
                let left = |all: &[f64], first: &[f64]| {
                    all.iter().zip(first).map(|(all, first)| all - first).fold(0.0, f64::max)
                };
                let links = left(&up, &up_first).max(left(&down, &down_first));
                links.max(left(&cpu, &cpu_first)).max(self.windows(flow))
            }
        };
        Prediction { us: fill_us + rest, fill_us, busiest_us, zone_bytes: self.zone_bytes() }
    }

    /// Follows one slice of each edge: when the last step has it.
    fn first_round(&self, flow: Flow) -> f64 {
        let mut up_free = vec![0.0f64; self.ends.len()];
        let mut down_free = vec![0.0f64; self.ends.len()];
        let mut ready: Vec<f64> = self.at.iter().map(|place| self.start_us[*place]).collect();
        let mut first = vec![f64::MAX; self.steps.len()];
        let mut last = 0.0f64;
        for step in self.order.iter().copied() {
            let place = self.at[step];
            let bytes = self.round_bytes(step, flow);
            // While the others arrive, what has come is taken in.
            let after_last = ready[step]
                + self.combine_us(step, bytes)
                + self.touch_us(self.sends[step] + self.receives[step].min(1.0), bytes);
            let after_first = first[step].min(ready[step]) + self.work_us(step, bytes);
            let begun = after_last.max(after_first);
            last = last.max(begun);
            let from = self.edges.partition_point(|edge| (edge.from as usize) < step);
            for edge in self.edges[from..].iter().take_while(|edge| edge.from as usize == step) {
                let to = self.at[edge.to as usize];
                let mut received = begun;
                if to != place {
                    let way = self.links.way_us(&self.ends[place], &self.ends[to]);
                    let allowed = self.credit_at(edge.to as usize, way);
                    let sent = bytes + MESSAGE_BYTES;
                    let queued = self.queued(step, flow) * sent * self.ends[place].up_us();
                    up_free[place] =
                        begun.max(allowed).max(up_free[place]) + sent * self.ends[place].up_us() + queued;
                    received = (down_free[to] + sent * self.ends[to].down_us()).max(up_free[place] + way);
                    down_free[to] = received;
                }
                ready[edge.to as usize] = ready[edge.to as usize].max(received);
                first[edge.to as usize] = first[edge.to as usize].min(received);
            }
        }
        last
    }

    /// Slices of chunks that lie at a step's process and are sent before what it has combined: as many as their windows allow.
    fn queued(&self, step: usize, flow: Flow) -> f64 {
        let slices = self.steps[step].span.len.div_ceil(flow.slice_len);
        let ahead = slices.min(flow.window.into()).saturating_sub(1);
        let is_relay = self.receives[step] > 0.0 && flow.execution == Execution::Coherent;
        if is_relay { f64::from(ahead) * self.own[self.at[step]] / self.sends[step] } else { 0.0 }
    }

    /// When the receiver's first credit is with the sender: the asker's comes with the graph.
    fn credit_at(&self, receiver: usize, way_us: f64) -> f64 {
        match self.steps[receiver].at {
            Place::Asker => 0.0,
            Place::Node(_) => self.start_us[self.at[receiver]] + way_us,
        }
    }

    /// Bytes of a step in a round: a slice, or all.
    fn round_bytes(&self, step: usize, flow: Flow) -> f64 {
        let span = self.steps[step].span.len;
        match flow.execution {
            Execution::Coherent => f64::from(span.min(flow.slice_len)),
            Execution::Incoherent => f64::from(span),
        }
    }

    /// All that a process does for a slice of a step.
    fn work_us(&self, step: usize, bytes: f64) -> f64 {
        self.combine_us(step, bytes) + self.touch_us(self.sends[step] + self.receives[step], bytes)
    }

    fn combine_us(&self, step: usize, bytes: f64) -> f64 {
        1e6 * bytes * self.products[step] / self.links.products_per_s
    }

    /// To take in and sum up a slice of each of so many edges.
    fn touch_us(&self, edges: f64, bytes: f64) -> f64 {
        edges * (1e6 * bytes / self.links.touch_bytes_per_s + self.links.slice_us)
    }

    /// Microseconds that each place sends, receives and computes, where `of` says how many bytes of a span count.
    fn totals(&self, flow: Flow, of: impl Fn(u32, u32) -> f64) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let count = self.ends.len();
        let (mut up, mut down, mut cpu) = (vec![0.0; count], vec![0.0; count], vec![0.0; count]);
        for (step, place) in self.at.iter().enumerate() {
            let bytes = of(self.steps[step].span.len, flow.slice_len);
            let slices = (bytes / f64::from(flow.slice_len)).ceil();
            let edges = self.sends[step] + self.receives[step];
            cpu[*place] += self.work_us(step, bytes) + (slices - 1.0) * edges * self.links.slice_us;
        }
        for edge in &self.edges {
            let (from, to) = (self.at[edge.from as usize], self.at[edge.to as usize]);
            if from != to {
                let bytes = of(self.steps[edge.from as usize].span.len, flow.slice_len);
                let bytes = bytes + MESSAGE_BYTES * (bytes / f64::from(flow.slice_len)).ceil();
                up[from] += bytes * self.ends[from].up_us();
                down[to] += bytes * self.ends[to].down_us();
            }
        }
        (up, down, cpu)
    }

    /// How long an edge needs for what follows its first slice if its window is all that holds it up.
    fn windows(&self, flow: Flow) -> f64 {
        let wait = |edge: &Edge| {
            let (from, to) = (self.at[edge.from as usize], self.at[edge.to as usize]);
            let slices = self.steps[edge.from as usize].span.len.div_ceil(flow.slice_len);
            if from == to || slices <= u32::from(flow.window) {
                return 0.0;
            }
            let (from, to) = (&self.ends[from], &self.ends[to]);
            let slice_us = f64::from(flow.slice_len) * from.up_us().max(to.down_us());
            let turn = 2.0 * self.links.way_us(from, to) + slice_us + 2.0 * self.links.slice_us;
            // Credits come for half a window at a time.
            f64::from(slices - 1) * turn
                / (f64::from(flow.window) - (f64::from(flow.window / 2) - 1.0).max(0.0))
        };
        self.edges.iter().map(wait).fold(0.0, f64::max)
    }

    fn zone_bytes(&self) -> u64 {
        let crossing = self.edges.iter().filter(|edge| {
            let end = |step: u32| self.ends[self.at[step as usize]].zone;
            end(edge.from) != end(edge.to)
        });
        crossing.map(|edge| u64::from(self.steps[edge.from as usize].span.len)).sum()
    }

    /// Lengths of slices that are worth asking about.
    pub(crate) fn slice_lens(&self) -> impl Iterator<Item = u32> + use<> {
        let longest = self.steps.iter().map(|step| step.span.len).max().unwrap_or(MIN_SLICE_BYTES);
        let most = longest.next_power_of_two().clamp(MIN_SLICE_BYTES, crate::limits::MAX_SLICE_BYTES);
        std::iter::successors(Some(most), |len| (*len > MIN_SLICE_BYTES).then_some(len / 2))
    }
}

/// Products of each step for each byte: those of rows that are more than one input as it is.
fn products(steps: &[Step]) -> Vec<f64> {
    let of_row = |row: &[u8]| {
        let used = row.iter().filter(|factor| **factor != 0).count();
        if used == 1 && row.contains(&1) { 0 } else { used }
    };
    let of_step = |step: &Step| {
        let rows = (0..step.outputs.len()).map(|output| of_row(step.row(output)));
        rows.sum::<usize>() as f64
    };
    steps.iter().map(of_step).collect()
}

/// Steps by their depth. `edges` are in the order of their first steps.
fn by_depth(steps: usize, edges: &[Edge]) -> Vec<usize> {
    let mut depths = vec![0u32; steps];
    for edge in edges {
        depths[edge.to as usize] = depths[edge.to as usize].max(depths[edge.from as usize] + 1);
    }
    let mut order: Vec<usize> = (0..steps).collect();
    order.sort_by_key(|step| depths[*step]);
    order
}
