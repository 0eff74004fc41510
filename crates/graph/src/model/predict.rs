//! The pipelined critical path of a graph (`T = L + bytes/B + products/C + h` for each step).
//!
//! The first slice of every edge is followed through the graph: links send and receive one slice after the other, a step begins
//! when it has a slice of each input. What follows takes as long as the busiest link, process or window needs for the rest.

use serde::Serialize;

use super::lanes::Lanes;
use super::links::Links;
use super::outline::{Bypass, Costs, Load, MESSAGE_BYTES, Outline, StepLine, Turn};
use crate::graph::{Edge, Execution, Step};

/// By how much longer a link takes along which sums go between slices of chunks that others wait for: what is behind a sum waits for the
/// slowest of those that it is made of. Measured in the network in virtual time, where it is 1.03 to 1.11.
const MIXED: f64 = 1.05;

/// What a graph will cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Prediction {
    /// From start to the last byte, in microseconds.
    pub us: f64,
    /// Of these, until the first slice has come to all ends.
    pub fill_us: f64,
    /// How long the busiest link sends or receives, in microseconds.
    pub busiest_us: f64,
    /// What slices take all processors together, besides their bytes, in microseconds.
    pub slices_us: f64,
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

/// Lengths that are asked about at once.
pub(crate) const LANES: usize = 4;

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
    let flow = Flow { slice_len, window, execution };
    let [prediction] = Outline::new(steps, edges, links).predict([flow], &mut Round::default());
    prediction
}

/// What is kept while the first slices are followed; used again for other lengths.
pub(crate) struct Round<const N: usize> {
    /// Of each length of ranges, how it flows.
    portions: Vec<Portion<N>>,
    places: Vec<PlaceRound<N>>,
    steps: Vec<StepRound<N>>,
    /// When the giver of each bypass has begun to send its first slices.
    sent: Vec<Lanes<N>>,
    /// What a slice takes the process that is busiest with one, for each length of ranges.
    stages: Vec<Lanes<N>>,
    /// What windows need for all that follows the first slices.
    pub windows_us: [f64; N],
}

/// Of a place: when its link has sent all first slices, when it has received them, and when it has received what follows them while
/// it waits for others.
#[derive(Clone, Copy)]
struct PlaceRound<const N: usize> {
    up_free: Lanes<N>,
    down_free: Lanes<N>,
    down_done: Lanes<N>,
    /// Work on what follows the first slices that was done before these were sent.
    ahead_us: Lanes<N>,
}

/// Of a step: when the first slice of its first input has come, and of its last one.
#[derive(Clone, Copy)]
struct StepRound<const N: usize> {
    first: Lanes<N>,
    ready: Lanes<N>,
    /// Inputs that come together, from one step: which that is, when the first of them comes, and how many.
    giver: usize,
    together: Lanes<N>,
    count: f64,
    /// When it has what it gives of them.
    begun: Lanes<N>,
}

impl<const N: usize> Default for Round<N> {
    fn default() -> Self {
        let (portions, places, steps) = (Vec::new(), Vec::new(), Vec::new());
        Self { portions, places, steps, sent: Vec::new(), stages: Vec::new(), windows_us: [0.0; N] }
    }
}

/// How a range flows: its first slice, and what follows it.
#[derive(Clone, Copy, Debug)]
struct Portion<const N: usize> {
    first_bytes: Lanes<N>,
    /// The first slice with its message.
    first_sent: Lanes<N>,
    /// Bytes and slices that follow; with their messages, and what of these may come while others are awaited.
    rest_bytes: Lanes<N>,
    rest_slices: Lanes<N>,
    rest_sent: Lanes<N>,
    early_sent: Lanes<N>,
    /// Slices that are given behind the first one before anything comes back, and what is sent for them.
    ahead: Lanes<N>,
    ahead_sent: Lanes<N>,
}

impl<const N: usize> Portion<N> {
    fn new(span: u32, flows: &[Flow; N]) -> Self {
        let lanes = |of: &dyn Fn(&Flow) -> u32| Lanes(flows.each_ref().map(|flow| f64::from(of(flow))));
        let is_whole = |flow: &Flow| flow.execution == Execution::Incoherent;
        let first = |flow: &Flow| if is_whole(flow) { span } else { span.min(flow.slice_len) };
        let slices = |flow: &Flow| if is_whole(flow) { 1 } else { span.div_ceil(flow.slice_len).max(1) };
        let (first_bytes, rest_bytes) = (lanes(&first), lanes(&|flow| span - first(flow)));
        let rest_slices = lanes(&|flow| slices(flow) - 1);
        let ahead = lanes(&|flow| slices(flow).min(flow.window.into()).saturating_sub(1));
        let first_sent = first_bytes + Lanes::all(MESSAGE_BYTES);
        let rest_sent = rest_bytes + rest_slices * MESSAGE_BYTES;
        let ahead_sent = ahead * first_sent;
        let early_sent = rest_sent.min(ahead_sent);
        Self { first_bytes, first_sent, rest_bytes, rest_slices, rest_sent, early_sent, ahead, ahead_sent }
    }
}

impl Costs {
    /// What a slice of so many bytes costs that is given by `products` and taken in and sent by `touches`.
    fn work_us<const N: usize>(&self, bytes: Lanes<N>, products: f64, touches: f64) -> Lanes<N> {
        bytes * self.byte_us(products, touches) + Lanes::all(touches * self.slice_us)
    }
}

impl Outline {
    pub(crate) fn predict<const N: usize>(&self, flows: [Flow; N], round: &mut Round<N>) -> [Prediction; N] {
        let fill = self.first_round(&flows, round);
        let windows_us = self.all_windows_us(&flows, round);
        round.windows_us = windows_us.0;
        let us = fill + windows_us.max(self.rest_us(round));
        let mut predictions = flows.map(|flow| self.at_least(flow));
        for ((prediction, us), fill_us) in predictions.iter_mut().zip(us.0).zip(fill.0) {
            (prediction.us, prediction.fill_us) = (us, fill_us);
        }
        predictions
    }

    /// What it costs if nothing waits: never more than it will.
    pub(crate) fn at_least(&self, flow: Flow) -> Prediction {
        // All that is sent for a range, with its messages.
        let sent = |span: u32| f64::from(span) + MESSAGE_BYTES * f64::from(span.div_ceil(flow.slice_len));
        let (mut busiest_us, mut touched) = (0.0f64, 0.0);
        for (number, place) in self.places.iter().enumerate() {
            let (mut up, mut down) = (0.0, 0.0);
            for (load, span) in self.loads_of(number).iter().zip(&self.spans) {
                up += load.sends * sent(*span);
                down += load.receives * sent(*span);
                touched += load.touches * f64::from(span.div_ceil(flow.slice_len));
            }
            busiest_us = busiest_us.max(up * place.up_us).max(down * place.down_us);
        }
        let us = match flow.execution {
            Execution::Coherent => busiest_us.max(self.windows_us(flow)),
            Execution::Incoherent => 0.0,
        };
        let slices_us = touched * self.costs.slice_us;
        Prediction { us, fill_us: 0.0, busiest_us, slices_us, zone_bytes: self.zone_bytes }
    }

    /// Follows one slice of each edge: when the last step has it.
    fn first_round<const N: usize>(&self, flows: &[Flow; N], round: &mut Round<N>) -> Lanes<N> {
        self.begin(flows, round);
        let Round { portions, places, steps, sent: bypassed, .. } = round;
        let mut last = Lanes::all(0.0);
        let mut edges = self.edges.iter().enumerate();
        let mut bypasses = self.bypasses.iter().peekable();
        for (number, step) in self.steps.iter().enumerate() {
            let portion = &portions[step.span];
            let begun = if step.receives == 0.0 {
                let (begun, ahead_us) = self.begun_alone(step, portion, &steps[number]);
                places[step.place].ahead_us += ahead_us;
                begun
            } else {
                self.begun(step, portion.first_bytes, &steps[number]).max(Lanes::all(step.allowed_us))
            };
            last = last.max(begun);
            steps[number].begun = begun;
            let (up_us, sent) = (self.places[step.place].up_us, portion.first_sent);
            let mut up_free = places[step.place].up_free;
            let given = begun.max(up_free);
            for (at, edge) in edges.by_ref().take(step.sends as usize) {
                let mut received = begun;
                if edge.to_place != step.place {
                    let from = begun.max(up_free);
                    up_free = from + sent * up_us;
                    if bypasses.next_if(|bypass| bypass.edge == at).is_some() {
                        bypassed.push(given);
                    }
                    let landed = from + sent * up_us.max(edge.pair_us) + Lanes::all(edge.way_us);
                    let down_us = self.places[edge.to_place].down_us;
                    let to = &mut places[edge.to_place];
                    received = landed.max(to.down_free + sent * down_us);
                    to.down_free = received;
                    to.down_done = received.max(to.down_done + sent * down_us) + portion.early_sent * down_us;
                }
                let to = &mut steps[edge.to];
                to.ready = to.ready.max(received);
                to.first = to.first.min(received);
                if to.giver != number {
                    (to.giver, to.together, to.count) = (number, received, 0.0);
                }
                to.count += 1.0;
            }
            // A step that waits for nobody sends as many slices as it may before another step of its process has its turn.
            if step.receives == 0.0 {
                up_free += portion.ahead_sent * (step.sends_away * up_us);
            }
            places[step.place].up_free = up_free;
        }
        last
    }

    fn begin<const N: usize>(&self, flows: &[Flow; N], round: &mut Round<N>) {
        round.portions.clear();
        round.portions.extend(self.spans.iter().map(|span| Portion::new(*span, flows)));
        round.places.clear();
        round.places.extend(self.places.iter().map(|place| {
            // The asker's link sends the graph before a slice.
            let up_free = Lanes::all(if place.start_us == 0.0 { self.sent_us } else { 0.0 });
            let (down_free, down_done, ahead_us) = (Lanes::all(0.0), Lanes::all(0.0), Lanes::all(0.0));
            PlaceRound { up_free, down_free, down_done, ahead_us }
        }));
        round.steps.clear();
        round.steps.extend(self.steps.iter().map(|step| StepRound {
            first: Lanes::all(f64::MAX),
            ready: Lanes::all(self.places[step.place].start_us),
            giver: usize::MAX,
            together: Lanes::all(0.0),
            count: 0.0,
            begun: Lanes::all(0.0),
        }));
        round.sent.clear();
        round.stages.clear();
        if !self.bypasses.is_empty() {
            let stages = (0..self.spans.len()).map(|span| self.stage_us(span, &round.portions[span]));
            round.stages.extend(stages);
        }
    }

    /// What a slice takes the process that is busiest with one of this length of ranges.
    fn stage_us<const N: usize>(&self, span: usize, portion: &Portion<N>) -> Lanes<N> {
        let loads = (0..self.places.len()).map(|place| self.loads_of(place)[span]);
        let work = |load: Load| self.costs.work_us(portion.first_bytes, load.products, load.touches);
        loads.map(work).fold(Lanes::all(0.0), Lanes::max)
    }

    /// When a step has what it gives of the first slices: while the others arrive, what has come is taken in.
    fn begun<const N: usize>(&self, step: &StepLine, bytes: Lanes<N>, round: &StepRound<N>) -> Lanes<N> {
        let work = |touches: f64| self.costs.work_us(bytes, step.products, touches);
        let after_last = round.ready + work(step.sends + step.receives.min(1.0));
        let after_first = round.first.min(round.ready) + work(step.sends + step.receives);
        // Those that came long before are taken in by now.
        let after_those = round.together + work(step.sends + round.count);
        after_last.max(after_first).max(after_those)
    }

    /// The same where nothing is waited for but the graph and credits: a window of slices is given at one go, and sent then. What those
    /// behind the first one take is the second.
    fn begun_alone<const N: usize>(
        &self,
        step: &StepLine,
        portion: &Portion<N>,
        round: &StepRound<N>,
    ) -> (Lanes<N>, Lanes<N>) {
        let slice_us = self.costs.work_us(portion.first_bytes, step.products, step.sends);
        let ahead_us = portion.ahead * slice_us;
        (round.ready.max(Lanes::all(step.allowed_us)) + slice_us + ahead_us, ahead_us)
    }

    /// What the windows of edges need for what follows the first slices: by themselves, and where slices wait for others that go round.
    fn all_windows_us<const N: usize>(&self, flows: &[Flow; N], round: &Round<N>) -> Lanes<N> {
        let mut most = Lanes(flows.map(|flow| self.windows_us(flow)));
        for (bypass, sent) in self.bypasses.iter().zip(&round.sent) {
            let credited = round.steps[bypass.to].begun - *sent + Lanes::all(bypass.way_us);
            // A step sends along all of its edges or none, and a batch at one go: so the others of a batch come one after the other.
            let batch = Lanes(flows.each_ref().map(|flow| f64::from((flow.window / 2).max(1))));
            let portion = &round.portions[bypass.span];
            let apart = (portion.first_sent * bypass.giver_us).max(round.stages[bypass.span]);
            let given = batch * self.costs.work_us(portion.first_bytes, bypass.products, bypass.sends);
            let turn = credited + given + apart * (batch - Lanes::all(1.0));
            most = most.max(turn * Lanes(flows.each_ref().map(|flow| self.windows(bypass, flow))));
        }
        most
    }

    /// How many windows of slices follow the first one: the first slice of each is allowed when half of the one before has been taken in, which
    /// is waited for once in each.
    fn windows(&self, bypass: &Bypass, flow: &Flow) -> f64 {
        if flow.execution == Execution::Incoherent {
            return 0.0;
        }
        let window = u32::from(flow.window.max(1));
        let slices = self.spans[bypass.span].div_ceil(flow.slice_len);
        f64::from(slices.saturating_sub(window)) / f64::from(window)
    }

    /// What the busiest link or process needs for what follows the first slices.
    fn rest_us<const N: usize>(&self, round: &Round<N>) -> Lanes<N> {
        let mut rest = Lanes::all(0.0);
        for (number, (place, so_far)) in self.places.iter().zip(&round.places).enumerate() {
            let (mut up, mut cpu) = (Lanes::all(0.0), Lanes::all(0.0));
            let mut down = so_far.down_done - so_far.down_free;
            let up_us = place.up_us * if place.is_mixed { MIXED } else { 1.0 };
            for (load, portion) in self.loads_of(number).iter().zip(&round.portions) {
                up += portion.rest_sent * (load.sends * up_us);
                down += (portion.rest_sent - portion.early_sent) * (load.receives * place.down_us);
                cpu += portion.rest_bytes * self.costs.byte_us(load.products, load.touches);
                cpu += portion.rest_slices * (load.touches * self.costs.slice_us);
            }
            rest = rest.max(up).max(down).max(cpu - so_far.ahead_us);
        }
        for pair in &self.pairs {
            rest = rest.max(round.portions[pair.span].rest_sent * (pair.edges * pair.pair_us));
        }
        rest
    }

    /// How long an edge needs for what follows its window if that is all that holds it up. Credits come for half a window at a time: so
    /// many slices are given, sent and taken in, one after the other, while the other half is on its way.
    pub(crate) fn windows_us(&self, flow: Flow) -> f64 {
        if flow.execution == Execution::Incoherent {
            return 0.0;
        }
        let window = u32::from(flow.window.max(1));
        let batch = f64::from((window / 2).max(1));
        let wait = |turn: &Turn| {
            let slices = self.spans[turn.span].div_ceil(flow.slice_len);
            let turn_us =
                turn.both_ways_us + batch * (turn.slice_us + turn.byte_us * f64::from(flow.slice_len));
            f64::from(slices.saturating_sub(window)) * turn_us / f64::from(window)
        };
        self.turns.iter().map(wait).fold(0.0, f64::max)
    }
}
