//! Who computes the codes of long chunks: the calling thread, or an accelerator that it was given.
//!
//! An accelerator may refuse anything, for any reason, at any time; then the calling thread does it. The bytes are the same, so a caller
//! need not know.

use std::fmt;
use std::sync::Arc;

use crate::{Code, CodeError, Plan, kernel};

/// Something beside the processor that combines chunks: `outputs = matrix * sources`, as [`Kernel::combine`](crate::Kernel::combine).
///
/// Every method says whether it has done it. If not, the outputs hold anything. What is wrong with the chunks it need not say: it
/// refuses, and the processor says so.
pub trait Accelerator: fmt::Debug + Send + Sync {
    /// [`Code::encode`].
    fn encode(&self, code: &Code, data: &[&[u8]], parity: &mut [&mut [u8]]) -> bool;

    /// [`Plan::run`].
    fn reconstruct(&self, plan: &Plan, sources: &[&[u8]], outputs: &mut [&mut [u8]]) -> bool;

    /// The rows of `coefficients`, one for each output.
    fn combine(&self, coefficients: &[u8], sources: &[&[u8]], outputs: &mut [&mut [u8]]) -> bool;

    /// What it has done so far.
    fn work(&self) -> Work;

    /// Its name, as operators know it.
    fn name(&self) -> String;
}

/// What an accelerator has done, and what was left to the processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Operations that it has done.
    pub done: u64,
    /// Bytes of their sources.
    pub bytes: u64,
    /// Operations that the processor has done instead.
    pub left: u64,
    /// Times that it has failed.
    pub faults: u64,
}

/// Whoever computes. By default the calling thread.
#[derive(Clone, Debug, Default)]
pub struct Coder(Option<Arc<dyn Accelerator>>);

/// The calling thread.
pub static PROCESSOR: Coder = Coder(None);

impl Coder {
    /// `accelerator` where it does it, else the calling thread.
    #[must_use]
    pub fn with(accelerator: Arc<dyn Accelerator>) -> Self {
        Self(Some(accelerator))
    }

    /// The accelerator, if there is one.
    #[must_use]
    pub fn accelerator(&self) -> Option<&dyn Accelerator> {
        self.0.as_deref()
    }

    /// [`Code::encode`].
    ///
    /// # Errors
    /// As there.
    pub fn encode(&self, code: &Code, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<(), CodeError> {
        match &self.0 {
            Some(other) if other.encode(code, data, parity) => Ok(()),
            _ => code.encode(data, parity),
        }
    }

    /// [`Plan::run`].
    ///
    /// # Errors
    /// As there.
    pub fn reconstruct(
        &self,
        plan: &Plan,
        sources: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        match &self.0 {
            Some(other) if other.reconstruct(plan, sources, outputs) => Ok(()),
            _ => plan.run(sources, outputs),
        }
    }

    /// [`Kernel::combine`](crate::Kernel::combine).
    ///
    /// # Errors
    /// As there.
    pub fn combine(
        &self,
        coefficients: &[u8],
        sources: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        match &self.0 {
            Some(other) if other.combine(coefficients, sources, outputs) => Ok(()),
            _ => kernel().combine(coefficients, sources, outputs),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Spoils the outputs of what it refuses, which is every second operation.
    #[derive(Debug, Default)]
    struct Fickle(AtomicU64);

    impl Fickle {
        fn may(&self, outputs: &mut [&mut [u8]], does: impl FnOnce(&mut [&mut [u8]])) -> bool {
            let is_done = self.0.fetch_add(1, Ordering::Relaxed) % 2 == 1;
            outputs.iter_mut().for_each(|output| output.fill(0xa5));
            if is_done {
                does(outputs);
            }
            is_done
        }
    }

    impl Accelerator for Fickle {
        fn encode(&self, code: &Code, data: &[&[u8]], parity: &mut [&mut [u8]]) -> bool {
            self.may(parity, |parity| code.encode(data, parity).unwrap())
        }

        fn reconstruct(&self, plan: &Plan, sources: &[&[u8]], outputs: &mut [&mut [u8]]) -> bool {
            self.may(outputs, |outputs| plan.run(sources, outputs).unwrap())
        }

        fn combine(&self, coefficients: &[u8], sources: &[&[u8]], outputs: &mut [&mut [u8]]) -> bool {
            self.may(outputs, |outputs| kernel().combine(coefficients, sources, outputs).unwrap())
        }

        fn work(&self) -> Work {
            Work { done: self.0.load(Ordering::Relaxed) / 2, ..Work::default() }
        }

        fn name(&self) -> String {
            "fickle".to_owned()
        }
    }

    #[test]
    fn what_an_accelerator_refuses_the_processor_does_with_the_same_bytes() {
        let coder = Coder::with(Arc::new(Fickle::default()));
        let code = Code::rs(2, 2).unwrap();
        let data: [&[u8]; 2] = [b"some", b"more"];
        let encode = |coder: &Coder| {
            let (mut p, mut q) = ([0; 4], [0; 4]);
            coder.encode(&code, &data, &mut [&mut p, &mut q]).unwrap();
            [p, q]
        };
        let parity = encode(&PROCESSOR);
        let plan = code.plan(&[2, 3], &[0, 1]).unwrap();
        for _ in 0..2 {
            assert_eq!(encode(&coder), parity);
        }
        for _ in 0..2 {
            let (mut a, mut b) = ([0; 4], [0; 4]);
            coder.reconstruct(&plan, &[&parity[0], &parity[1]], &mut [&mut a, &mut b]).unwrap();
            assert_eq!([&a[..], &b[..]], data);
        }
        for _ in 0..2 {
            let mut p = [0; 4];
            coder.combine(code.row(0), &data, &mut [&mut p]).unwrap();
            assert_eq!(p, parity[0]);
        }
        assert_eq!(coder.accelerator().map(|other| other.work().done), Some(3));
        assert!(PROCESSOR.accelerator().is_none());
    }

    #[test]
    fn what_is_wrong_with_chunks_the_processor_says() {
        let coder = Coder::with(Arc::new(Fickle::default()));
        let code = Code::rs(2, 1).unwrap();
        assert!(coder.encode(&code, &[b"some"], &mut [&mut [0; 4]]).is_err());
    }
}
