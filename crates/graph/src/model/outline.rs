//! A graph as the model sees it: made once, asked for each length of slices.

use super::links::{Between, LinkEnd, Links};
use crate::graph::{Edge, Place, Step, encoded_len};
use crate::limits::{MAX_SLICE_BYTES, MIN_SLICE_BYTES};

/// Bytes of a message besides its slice.
pub(super) const MESSAGE_BYTES: f64 = 64.0;

/// Steps, edges and places by numbers, with what each moves in all.
pub(crate) struct Outline {
    pub(super) places: Vec<PlaceLine>,
    /// By how many others come before them, which is about when they have what they need.
    pub(super) steps: Vec<StepLine>,
    /// Those of the first step, then those of the second one, and so on.
    pub(super) edges: Vec<EdgeLine>,
    /// Lengths of ranges, each once: mostly there is one, or two.
    pub(super) spans: Vec<u32>,
    /// What each place does for each length of ranges, place by place.
    pub(super) loads: Vec<Load>,
    pub(super) pairs: Vec<PairLoad>,
    /// Edges whose windows may be what holds all up.
    pub(super) turns: Vec<Turn>,
    /// Edges beside which there is another, longer way to the same step, in the order of edges.
    pub(super) bypasses: Vec<Bypass>,
    /// When the asker's link has sent the graph to all.
    pub(super) sent_us: f64,
    pub(super) zone_bytes: u64,
    pub(super) costs: Costs,
}

/// What a process costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// A product of a byte and a coefficient, in microseconds.
    product_us: f64,
    /// A byte that is taken in, summed up, or sent.
    touch_us: f64,
    /// A slice of an edge, besides its bytes.
    pub slice_us: f64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PlaceLine {
    /// Microseconds to send a byte, and to receive one.
    pub up_us: f64,
    pub down_us: f64,
    /// From the asker's start to here.
    pub start_us: f64,
    /// Whether it sends chunks of its own beside what it has summed up of others.
    pub is_mixed: bool,
    place: Place,
    end: LinkEnd,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct StepLine {
    pub place: usize,
    /// Which of the lengths its range has.
    pub span: usize,
    /// Products that it adds up for each byte.
    pub products: f64,
    /// Edges along which it sends, and receives.
    pub sends: f64,
    pub receives: f64,
    /// Of the first, those to other places.
    pub sends_away: f64,
    /// When the first credits of all who receive of it are here.
    pub allowed_us: f64,
}

/// What is sent from one place to another along a link that is worse than its ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairLoad {
    from: usize,
    to: usize,
    pub span: usize,
    pub edges: f64,
    pub pair_us: f64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EdgeLine {
    /// Who receives: the number of the step, and of its place.
    pub to: usize,
    pub to_place: usize,
    /// One way, in microseconds.
    pub way_us: f64,
    /// Microseconds a byte of this very link, where that is more than its ends take.
    pub pair_us: f64,
}

/// What a place does for ranges of one length: per byte of them, and per slice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    pub products: f64,
    pub touches: f64,
    /// Edges to other places, and from them.
    pub sends: f64,
    pub receives: f64,
}

/// What passes between a batch of slices of an edge and the next one, if nothing but credits holds them up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub span: usize,
    pub both_ways_us: f64,
    /// For each slice, and for each of its bytes: given, sent and taken in.
    pub slice_us: f64,
    pub byte_us: f64,
}

/// An edge whose slices wait for others that its giver has sent along a longer way: by then its window may be full, and its giver waits,
/// with all that it sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bypass {
    pub edge: usize,
    /// The step that it goes to.
    pub to: usize,
    pub span: usize,
    pub way_us: f64,
    /// What its giver takes to send a byte along all of its edges, in microseconds; what it adds up for one, and along how many edges it
    /// sends.
    pub giver_us: f64,
    pub products: f64,
    pub sends: f64,
}

impl Turn {
    /// Whether it takes as long as the other whatever the slices are.
    fn covers(&self, other: &Self) -> bool {
        self.span == other.span
            && self.both_ways_us >= other.both_ways_us
            && self.slice_us >= other.slice_us
            && self.byte_us >= other.byte_us
    }
}

impl Costs {
    fn of(links: &Links) -> Self {
        Self {
            product_us: 1e6 / links.products_per_s,
            touch_us: 1e6 / links.touch_bytes_per_s,
            slice_us: links.slice_us,
        }
    }

    /// All that `products` and `touches` cost for each byte.
    pub(super) fn byte_us(&self, products: f64, touches: f64) -> f64 {
        self.product_us * products + self.touch_us * touches
    }
}

impl Outline {
    pub(crate) fn new(steps: &[Step], edges: &[Edge], links: &Links) -> Self {
        let (at, places) = places(steps, links);
        let sorted;
        let edges = if edges.is_sorted_by_key(|edge| edge.from) {
            edges
        } else {
            sorted = sorted_edges(edges);
            &sorted
        };
        let mut outline = Self {
            places,
            steps: Vec::with_capacity(steps.len()),
            edges: Vec::with_capacity(edges.len()),
            spans: Vec::new(),
            loads: Vec::new(),
            pairs: Vec::new(),
            turns: Vec::new(),
            bypasses: Vec::new(),
            sent_us: 0.0,
            zone_bytes: 0,
            costs: Costs::of(links),
        };
        let order = outline.add_steps(steps, edges, &at);
        outline.add_starts(encoded_len(1, steps, edges.len()), &order, links);
        outline.add_edges(steps, edges, &order, links);
        outline.find_mixed();
        outline.find_bypasses();
        outline
    }

    /// Steps in their order; of each its place in that order.
    fn add_steps(&mut self, steps: &[Step], edges: &[Edge], at: &[usize]) -> Order {
        let order = Order::new(steps.len(), edges);
        for step in &order.steps {
            let span = self.span(steps[*step].span.len);
            let (place, products) = (at[*step], products(&steps[*step]));
            let (sends, receives, sends_away, allowed_us) = (0.0, 0.0, 0.0, 0.0);
            self.steps.push(StepLine { place, span, products, sends, receives, sends_away, allowed_us });
        }
        for edge in edges {
            self.steps[order.numbers[edge.from as usize]].sends += 1.0;
            self.steps[order.numbers[edge.to as usize]].receives += 1.0;
        }
        self.loads = vec![Load::default(); self.places.len() * self.spans.len()];
        for step in &self.steps {
            let load = &mut self.loads[step.place * self.spans.len() + step.span];
            load.products += step.products;
            load.touches += step.sends + step.receives;
        }
        order
    }

    /// When each place has the graph of so many bytes: the asker sends it to one after the other, as [`crate::Graph::starting_order`] says.
    fn add_starts(&mut self, graph_bytes: usize, order: &Order, links: &Links) {
        let mut last = vec![(0, 0); self.places.len()];
        for (step, number) in self.steps.iter().zip(&order.steps) {
            last[step.place] = last[step.place].max((order.depths[*number], *number));
        }
        let mut told: Vec<usize> = (0..self.places.len()).collect();
        told.sort_unstable_by_key(|place| std::cmp::Reverse(last[*place]));
        let asker = links.end(Place::Asker);
        let stands_at = links.stand(Place::Asker);
        let bytes = graph_bytes as f64 + MESSAGE_BYTES;
        for place in told {
            let line = &mut self.places[place];
            if line.place != stands_at {
                let way_us = links.between((stands_at, &asker), (line.place, &line.end)).way_us;
                line.start_us = self.sent_us + bytes * asker.up_us().max(line.down_us) + way_us;
                self.sent_us += bytes * asker.up_us();
            }
        }
    }

    /// Finds the places that send both what lies there and what they have summed up.
    fn find_mixed(&mut self) {
        let mut sends = vec![(false, false); self.places.len()];
        for step in self.steps.iter().filter(|step| step.sends_away > 0.0) {
            let known = &mut sends[step.place];
            *known = (known.0 || step.receives == 0.0, known.1 || step.receives > 0.0);
        }
        for (place, sends) in self.places.iter_mut().zip(sends) {
            place.is_mixed = sends == (true, true);
        }
    }

    /// Finds the edges whose slices wait at their end for others of the same step that go round by further ones.
    fn find_bypasses(&mut self) {
        let mut first = 0;
        for step in 0..self.steps.len() {
            let edges = first..first + self.steps[step].sends as usize;
            first = edges.end;
            let receivers = &self.edges[edges.clone()];
            if receivers.iter().all(|edge| edge.to == receivers[0].to) {
                continue;
            }
            let behind = self.behind(edges.clone());
            let StepLine { span, place, sends_away, products, sends, .. } = self.steps[step];
            let giver_us = sends_away * self.places[place].up_us;
            let bypass = edges.map(|edge| (edge, self.edges[edge])).filter(|(_, line)| behind[line.to]);
            let away = bypass.filter(|(_, line)| line.to_place != place);
            self.bypasses.extend(away.map(|(edge, line)| Bypass {
                edge,
                to: line.to,
                span,
                way_us: line.way_us,
                giver_us,
                products,
                sends,
            }));
        }
    }

    /// Which steps are behind those that these edges, of one step, go to.
    fn behind(&self, edges: std::ops::Range<usize>) -> Vec<bool> {
        let (mut reached, mut behind) = (vec![false; self.steps.len()], vec![false; self.steps.len()]);
        self.edges[edges.clone()].iter().for_each(|edge| reached[edge.to] = true);
        let mut next = edges.end;
        let after = self.steps.iter().scan(0, |first, step| {
            *first += step.sends as usize;
            Some(*first)
        });
        // Steps come behind all that they receive of.
        for (step, end) in after.enumerate().skip_while(|(_, end)| *end <= edges.end) {
            for edge in &self.edges[next..end] {
                behind[edge.to] |= reached[step];
                reached[edge.to] |= reached[step];
            }
            next = end;
        }
        behind
    }

    fn add_edges(&mut self, steps: &[Step], edges: &[Edge], order: &Order, links: &Links) {
        // Where the edges of each step begin.
        let mut first = vec![0; steps.len() + 1];
        edges.iter().for_each(|edge| first[edge.from as usize + 1] += 1);
        (0..steps.len()).for_each(|step| first[step + 1] += first[step]);
        for (number, step) in order.steps.iter().enumerate() {
            for edge in &edges[first[*step]..first[*step + 1]] {
                let is_asker = steps[edge.to as usize].at == Place::Asker;
                self.add_edge(number, order.numbers[edge.to as usize], is_asker, links);
            }
        }
    }

    #[inline]
    fn add_edge(&mut self, from: usize, to: usize, is_asker: bool, links: &Links) {
        let (giver, taker) = (self.steps[from], self.steps[to]);
        let to_place = taker.place;
        if giver.place == to_place {
            return self.edges.push(EdgeLine { to, to_place, ..EdgeLine::default() });
        }
        let (sender, receiver) = (&self.places[giver.place], &self.places[to_place]);
        let link = links.between((sender.place, &sender.end), (receiver.place, &receiver.end));
        let allowed_us = if is_asker { 0.0 } else { receiver.start_us + link.way_us };
        if sender.end.zone != receiver.end.zone {
            self.zone_bytes += u64::from(self.spans[giver.span]);
        }
        let (way_us, pair_us) = (link.way_us, link.byte_us);
        self.add_turn(self.turn(&giver, &taker, link));
        self.edges.push(EdgeLine { to, to_place, way_us, pair_us });
        let line = &mut self.steps[from];
        line.sends_away += 1.0;
        line.allowed_us = line.allowed_us.max(allowed_us);
        let count = self.spans.len();
        self.loads[giver.place * count + giver.span].sends += 1.0;
        self.loads[to_place * count + taker.span].receives += 1.0;
        if pair_us > 0.0 {
            self.add_pair(PairLoad {
                from: giver.place,
                to: to_place,
                span: giver.span,
                edges: 1.0,
                pair_us,
            });
        }
    }

    fn turn(&self, giver: &StepLine, taker: &StepLine, link: Between) -> Turn {
        let (up_us, down_us) = (self.places[giver.place].up_us, self.places[taker.place].down_us);
        let sent_us = (giver.sends * up_us.max(link.byte_us)).max(taker.receives * down_us);
        let touches = giver.sends + taker.sends + taker.receives;
        Turn {
            span: giver.span,
            both_ways_us: 2.0 * link.way_us,
            slice_us: touches * self.costs.slice_us,
            byte_us: sent_us + self.costs.byte_us(giver.products + taker.products, touches),
        }
    }

    /// Keeps it unless another one takes longer in every way.
    #[inline]
    fn add_turn(&mut self, turn: Turn) {
        if !self.turns.iter().any(|other| other.covers(&turn)) {
            self.turns.retain(|other| !turn.covers(other));
            self.turns.push(turn);
        }
    }

    fn add_pair(&mut self, pair: PairLoad) {
        let key = |pair: &PairLoad| (pair.from, pair.to, pair.span);
        match self.pairs.iter_mut().find(|other| key(other) == key(&pair)) {
            Some(known) => known.edges += pair.edges,
            None => self.pairs.push(pair),
        }
    }

    /// The number of a length of ranges.
    fn span(&mut self, len: u32) -> usize {
        let known = self.spans.iter().position(|span| *span == len);
        known.unwrap_or_else(|| {
            self.spans.push(len);
            self.spans.len() - 1
        })
    }

    /// What a place does, for each length of ranges.
    pub(super) fn loads_of(&self, place: usize) -> &[Load] {
        &self.loads[place * self.spans.len()..][..self.spans.len()]
    }

    /// Lengths of slices that are worth asking about.
    pub(crate) fn slice_lens(&self) -> impl Iterator<Item = u32> + use<> {
        let longest = self.spans.iter().copied().max().unwrap_or(MIN_SLICE_BYTES);
        let most = longest.next_power_of_two().clamp(MIN_SLICE_BYTES, MAX_SLICE_BYTES);
        std::iter::successors(Some(most), |len| (*len > MIN_SLICE_BYTES).then_some(len / 2))
    }
}

/// Steps by their depth; of one depth the last ones first, as they are told.
struct Order {
    /// Of each step, as it is listed.
    depths: Vec<usize>,
    steps: Vec<usize>,
    /// Of each step, where it is in `steps`.
    numbers: Vec<usize>,
}

impl Order {
    /// `edges` are in the order of their first steps.
    fn new(steps: usize, edges: &[Edge]) -> Self {
        let mut depths = vec![0usize; steps];
        for edge in edges {
            depths[edge.to as usize] = depths[edge.to as usize].max(depths[edge.from as usize] + 1);
        }
        let deepest = depths.iter().copied().max().unwrap_or(0);
        // Where those of each depth begin.
        let mut next = vec![0usize; deepest + 2];
        depths.iter().for_each(|depth| next[depth + 1] += 1);
        for depth in 0..=deepest {
            next[depth + 1] += next[depth];
        }
        let (mut order, mut numbers) = (vec![0; steps], vec![0; steps]);
        for (step, depth) in depths.iter().enumerate().rev() {
            (numbers[step], order[next[*depth]]) = (next[*depth], step);
            next[*depth] += 1;
        }
        Self { depths, steps: order, numbers }
    }
}

fn sorted_edges(edges: &[Edge]) -> Vec<Edge> {
    let mut edges = edges.to_vec();
    edges.sort_by_key(|edge| edge.from);
    edges
}

/// Of each step the number of its place, and the places.
fn places(steps: &[Step], links: &Links) -> (Vec<usize>, Vec<PlaceLine>) {
    // By their numbers: those are compared sooner than places are.
    let number = |place: Place| match place {
        Place::Node(node) => u32::from(node.0),
        Place::Asker => u32::MAX,
    };
    let mut known: Vec<(u32, Place)> = Vec::new();
    let find = |known: &[(u32, Place)], place| known.binary_search_by_key(&number(place), |known| known.0);
    let stands = || steps.iter().map(|step| links.stand(step.at));
    for place in stands() {
        if let Err(at) = find(&known, place) {
            known.insert(at, (number(place), place));
        }
    }
    let at = stands().map(|place| find(&known, place).unwrap_or(0)).collect();
    let line = |(_, place): (u32, Place)| {
        let end = links.end(place);
        PlaceLine { up_us: end.up_us(), down_us: end.down_us(), start_us: 0.0, is_mixed: false, place, end }
    };
    (at, known.into_iter().map(line).collect())
}

/// Products for each byte: those of rows that are more than one input as it is.
fn products(step: &Step) -> f64 {
    let of_row = |row: &[u8]| {
        let used = row.iter().filter(|factor| **factor != 0).count();
        if used == 1 && row.contains(&1) { 0 } else { used }
    };
    step.matrix.chunks(step.inputs.len().max(1)).map(of_row).sum::<usize>() as f64
}
