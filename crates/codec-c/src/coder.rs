//! A code that is ready to run: the matrix, the plans that were used last, and where to compute.

use std::num::NonZeroUsize;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use codec::{Code, CodeError, Family, MAX_ROLES, PlanCache, Scheme};
use codec_cuda::Place;

use crate::status::Failure;

/// Chunks of a multiple of this many bytes suit everyone: Ceph's `isa` and `jerasure` pad to it as well. Any length works.
pub const ALIGNMENT: usize = 32;
/// Plans that are kept: the losses of a few failures at once, for every role in turn.
const PLANS: usize = 256;

/// Where to compute. The bytes are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// On the processor, by the calling thread. No driver is looked for.
    Processor,
    /// On a card where that was measured to be faster, else on the processor.
    Auto,
    /// On a card where there is one, even if it is slower: for tests and comparisons.
    Card,
}

impl FromStr for Where {
    type Err = Failure;

    fn from_str(name: &str) -> Result<Self, Failure> {
        match name {
            "processor" => Ok(Self::Processor),
            "auto" => Ok(Self::Auto),
            "card" => Ok(Self::Card),
            _ => {
                Err(Failure::Name(format!("no place is called '{name}': there are processor, auto and card")))
            }
        }
    }
}

/// A code, for any number of threads.
#[derive(Debug)]
pub struct Coder {
    plans: PlanCache,
    place: Where,
    on_card: AtomicU64,
}

impl Coder {
    /// The Reed-Solomon code of a family: `rs`, `lch`, `isal-cauchy`, ...
    ///
    /// # Errors
    /// `Name` for an unknown family, `Code` for numbers that there is no code for.
    pub fn of_family(name: &str, k: u32, m: u32) -> Result<Self, Failure> {
        let family = match name {
            "rs" => Family::CauchyXor,
            other => other.parse::<Family>().map_err(|error| Failure::Name(error.to_string()))?,
        };
        Ok(Self::of(Code::of_family(family, roles(k), roles(m))?))
    }

    /// The code of a scheme: `rs(3+2)`, `lrc(12,2,2)`, `xor(4+1)`, ...
    ///
    /// # Errors
    /// `Name` if it is not understood, `Code` for numbers that there is no code for.
    pub fn of_scheme(text: &str) -> Result<Self, Failure> {
        let scheme: Scheme = text.parse().map_err(|error| Failure::Name(format!("{error}")))?;
        Ok(Self::of(Code::of(scheme)?))
    }

    fn of(code: Code) -> Self {
        Self { plans: PlanCache::new(code, PLANS), place: Where::Processor, on_card: AtomicU64::new(0) }
    }

    /// Computes there from now on.
    pub fn set_place(&mut self, place: Where) {
        self.place = place;
    }

    /// How many operations a card has done.
    #[must_use]
    pub fn on_card(&self) -> u64 {
        self.on_card.load(Ordering::Relaxed)
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> &Code {
        self.plans.code()
    }

    /// How long a chunk of an object of `object_len` bytes is: a `k`th of it, rounded up to a multiple of `alignment`.
    ///
    /// # Errors
    /// `Length` if that is no number, or `alignment` is 0.
    pub fn chunk_len(&self, object_len: usize, alignment: usize) -> Result<usize, Failure> {
        let share = object_len.div_ceil(self.code().k());
        let padded = if alignment == 0 { None } else { share.checked_next_multiple_of(alignment) };
        padded.ok_or_else(|| {
            Failure::Length(format!("no chunk length for {object_len} bytes in multiples of {alignment}"))
        })
    }

    /// Computes all parities.
    ///
    /// # Errors
    /// As [`Code::encode`].
    pub fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<(), Failure> {
        match self.card() {
            None => self.code().encode(data, parity)?,
            Some(card) => self.count(card.encode(self.code(), data, parity)?),
        }
        Ok(())
    }

    /// Computes the chunks of the roles `wanted` from those of the roles `present`. Chunks that are not needed are not read.
    ///
    /// # Errors
    /// As [`Code::reconstruct`].
    pub fn decode(
        &self,
        present: &[(usize, &[u8])],
        wanted: &mut [(usize, &mut [u8])],
    ) -> Result<(), Failure> {
        let Some(card) = self.card() else { return Ok(self.plans.reconstruct(present, wanted)?) };
        let roles: Vec<usize> = present.iter().map(|(role, _)| *role).collect();
        let missing: Vec<usize> = wanted.iter().map(|(role, _)| *role).collect();
        let plan = self.plans.plan(&roles, &missing)?;
        let chunk = |role: &usize| present.iter().find(|(other, _)| other == role).map(|(_, bytes)| *bytes);
        let sources: Vec<&[u8]> = plan.sources().iter().filter_map(chunk).collect();
        let mut outputs: Vec<&mut [u8]> = wanted.iter_mut().map(|(_, bytes)| &mut **bytes).collect();
        self.count(card.reconstruct(&plan, &sources, &mut outputs)?);
        Ok(())
    }

    /// Brings all parities up to date after data role `role` has changed by `delta`. Always on the processor, where it is faster.
    ///
    /// # Errors
    /// As [`Code::update`].
    pub fn apply_delta(&self, role: u32, delta: &[u8], parity: &mut [&mut [u8]]) -> Result<(), Failure> {
        Ok(self.code().update(roles(role), delta, parity)?)
    }

    /// The roles to read for having those of `wanted`: see [`Code::cheapest_reads`]. Without costs as few as possible.
    ///
    /// # Errors
    /// As there.
    pub fn reads(&self, available: &[(usize, u32)], wanted: &[usize]) -> Result<Vec<usize>, CodeError> {
        self.code().cheapest_reads(available, wanted)
    }

    /// The card, if this coder may use one. It is looked for at the first operation: by then a daemon has forked.
    fn card(&self) -> Option<&'static codec_cuda::Codec> {
        static AUTO: OnceLock<codec_cuda::Codec> = OnceLock::new();
        static ALWAYS: OnceLock<codec_cuda::Codec> = OnceLock::new();
        let open = || codec_cuda::Codec::new(0, NonZeroUsize::MIN);
        match self.place {
            Where::Processor => None,
            Where::Auto => Some(AUTO.get_or_init(open)),
            Where::Card => Some(ALWAYS.get_or_init(|| open().always_on_card())),
        }
        .filter(|card| card.device().is_ok())
    }

    fn count(&self, place: Place) {
        if place == Place::Card {
            self.on_card.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A count of roles, or the number of one. What does not fit is beyond what any code has.
pub fn roles(count: u32) -> usize {
    usize::try_from(count).unwrap_or(MAX_ROLES + 1)
}
