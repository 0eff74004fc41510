//! What an operator does to pools and namespaces beside the faults: drawn from the seed alone.

use std::fmt;

use rng::Rng;
use types::Profile;

use crate::options::Options;
use crate::spaces::{CACHE, PASSING, mover};

/// Something that an operator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A pool of this code.
    CreatePool(Profile),
    /// That pool is to go.
    RemovePool,
    /// The namespace that comes and goes, in the pool that does or in the default one.
    CreateNamespace(Home),
    /// That namespace is to go.
    RemoveNamespace,
    /// Everything in one namespace is to go, and nothing else.
    Flush,
    /// This namespace moves to this pool, or turns back to it.
    Convert(&'static str, &'static str),
}

/// The pool of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// The default one.
    Default,
    /// The one that comes and goes.
    Passing,
}

impl Order {
    /// For counting.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::CreatePool(_) => "create pool",
            Self::RemovePool => "remove pool",
            Self::CreateNamespace(_) => "create namespace",
            Self::RemoveNamespace => "remove namespace",
            Self::Flush => "flush",
            Self::Convert(..) => "convert",
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreatePool(profile) => write!(f, "create pool of {profile}"),
            Self::CreateNamespace(Home::Passing) => write!(f, "create namespace in pool {}", PASSING.name),
            Self::Flush => write!(f, "flush {}", CACHE.name),
            Self::Convert(name, to) => write!(f, "convert {name} to {to}"),
            other => f.write_str(other.kind()),
        }
    }
}

/// What there is once all orders so far are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stock {
    /// The pool that comes and goes.
    pub pool: bool,
    /// The namespace that does, and where.
    pub namespace: Option<Home>,
}

impl Stock {
    /// After `order`.
    pub fn after(self, order: Order) -> Self {
        match order {
            Order::CreatePool(_) => Self { pool: true, ..self },
            Order::RemovePool => Self { pool: false, ..self },
            Order::CreateNamespace(home) => Self { namespace: Some(home), ..self },
            Order::RemoveNamespace => Self { namespace: None, ..self },
            Order::Flush | Order::Convert(..) => self,
        }
    }

    /// What leaves nothing of it.
    pub fn clearing(self) -> Vec<Order> {
        let namespace = self.namespace.map(|_| Order::RemoveNamespace);
        namespace.into_iter().chain(self.pool.then_some(Order::RemovePool)).collect()
    }
}

/// An endless sequence of orders.
#[derive(Clone, Debug)]
pub struct Orders {
    rng: Rng,
    codes: Vec<Profile>,
    stock: Stock,
    /// Whether nobody has used the pool yet.
    is_fresh: bool,
    /// What moves, and whether it was to be in the second of its pools at last.
    mover: &'static str,
    pools: [&'static str; 2],
    is_away: bool,
}

/// The purpose of the random numbers drawn here: schedules of faults are what they were before there were orders.
const PURPOSE: u64 = 0x6368_616f_7302;
/// Per cent of the orders that are flushes.
const FLUSHES: u64 = 25;
/// Per cent of the orders by which a namespace moves.
const CONVERSIONS: u64 = 25;

impl Orders {
    /// Those that belong to the options' seed, where the default pool's code bears so many losses.
    pub fn new(options: &Options, losses: u16) -> Self {
        let losses = u32::from(losses.max(1));
        // Also one that bears less than the default pool's.
        let codes = [Profile::rs(2, 1), Profile::rep(losses + 1), Profile::rs(2, losses)];
        let fits = |profile: &Profile| profile.n() <= usize::from(options.nodes);
        let codes = codes.into_iter().flatten().filter(fits).collect();
        let (rng, stock) = (Rng::new(options.seed, PURPOSE), Stock::default());
        let (mover, pools) = mover(options);
        Self { rng, codes, stock, is_fresh: false, mover: mover.name, pools, is_away: false }
    }

    fn draw(&mut self) -> Order {
        if self.rng.below(100) < CONVERSIONS {
            self.is_away = !self.is_away;
            return Order::Convert(self.mover, self.pools[usize::from(self.is_away)]);
        }
        let (is_flush, other_home, again) =
            (self.rng.below(100) < FLUSHES, self.rng.once_in(2), self.rng.once_in(2));
        let code = if self.codes.is_empty() { None } else { Some(self.rng.pick(&self.codes)) };
        match (self.stock, code) {
            (Stock { namespace: Some(_), .. }, _) if !is_flush => Order::RemoveNamespace,
            (Stock { pool: true, namespace: None }, _) if self.is_fresh => {
                Order::CreateNamespace(Home::Passing)
            }
            (Stock { pool: true, namespace: None }, _) if !is_flush && !again => Order::RemovePool,
            (Stock { pool: true, namespace: None }, _) if !is_flush && !other_home => {
                Order::CreateNamespace(Home::Passing)
            }
            (Stock { pool: false, namespace: None }, Some(code)) if !is_flush && again => {
                Order::CreatePool(code)
            }
            (Stock { namespace: None, .. }, _) if !is_flush => Order::CreateNamespace(Home::Default),
            _ => Order::Flush,
        }
    }
}

impl Iterator for Orders {
    type Item = Order;

    fn next(&mut self) -> Option<Order> {
        let order = self.draw();
        self.stock = self.stock.after(order);
        let is_about_others = matches!(order, Order::Convert(..));
        self.is_fresh = matches!(order, Order::CreatePool(_)) || self.is_fresh && is_about_others;
        Some(order)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn drawn(seed: u64, nodes: u16) -> Vec<Order> {
        Orders::new(&Options { seed, nodes, ..Options::default() }, 2).take(400).collect()
    }

    #[test]
    fn a_seed_is_a_sequence_of_orders() {
        assert_eq!(drawn(7, 7), drawn(7, 7));
        assert_ne!(drawn(7, 7), drawn(8, 7));
    }

    #[test]
    fn nothing_is_made_twice_or_removed_before_it_is_there_or_in_use() {
        for seed in 0..20 {
            let (mut stock, mut at) = (Stock::default(), None);
            for order in drawn(seed, 7) {
                match order {
                    Order::CreatePool(_) => assert!(!stock.pool),
                    Order::RemovePool => assert!(stock.pool && stock.namespace.is_none()),
                    Order::CreateNamespace(home) => {
                        assert!(stock.namespace.is_none() && (stock.pool || home == Home::Default));
                    }
                    Order::RemoveNamespace => assert!(stock.namespace.is_some()),
                    Order::Flush => (),
                    Order::Convert(..) => {
                        assert_ne!(at.replace(order), Some(order), "each time to the other pool");
                    }
                }
                stock = stock.after(order);
            }
            assert_eq!(stock.clearing().into_iter().fold(stock, Stock::after), Stock::default());
        }
    }

    #[test]
    fn every_kind_comes_and_codes_fit_the_nodes() {
        let kinds: BTreeSet<&str> = drawn(1, 7).iter().map(Order::kind).collect();
        assert_eq!(kinds.len(), 6, "{kinds:?}");
        let codes = |nodes| -> BTreeSet<String> {
            let code = |order: &Order| {
                if let Order::CreatePool(code) = order { Some(code.to_string()) } else { None }
            };
            drawn(1, nodes).iter().filter_map(code).collect()
        };
        assert_eq!(codes(7), BTreeSet::from(["rep(3)", "rs(2+1)", "rs(2+2)"].map(str::to_owned)));
        assert_eq!(codes(3), BTreeSet::from(["rep(3)", "rs(2+1)"].map(str::to_owned)));
        assert!(codes(1).is_empty() && drawn(1, 1).contains(&Order::CreateNamespace(Home::Default)));
    }
}
