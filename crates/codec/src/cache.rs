//! A cache of plans: the same losses are repaired again and again, and solving takes longer than a small chunk.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::code::roles_of;
use crate::{Code, CodeError, MAX_ROLES, Plan};

/// The plans of one code that were used last, for any number of threads.
///
/// ```
/// use codec::{Code, PlanCache};
///
/// let cache = PlanCache::new(Code::rs(2, 1)?, 64);
/// let mut lost = [0; 3];
/// cache.reconstruct(&[(1, b"ABC"), (2, &[32; 3])], &mut [(0, &mut lost)])?;
/// assert_eq!(&lost, b"abc");
/// assert_eq!(cache.len(), 1);
/// # Ok::<(), codec::CodeError>(())
/// ```
#[derive(Debug)]
pub struct PlanCache {
    code: Code,
    capacity: usize,
    plans: Mutex<Plans>,
}

#[derive(Debug, Default)]
struct Plans {
    /// By the roles that are present and wanted, as [`Key`] writes them.
    entries: BTreeMap<Vec<u8>, Entry>,
    /// Counts uses: a clock that tells which was last.
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    plan: Arc<Plan>,
    last_use: u64,
}

impl PlanCache {
    /// A cache of at most `capacity` plans (at least one). A plan takes up to `n * n` bytes.
    #[must_use]
    pub fn new(code: Code, capacity: usize) -> Self {
        Self { code, capacity: capacity.max(1), plans: Mutex::default() }
    }

    /// The code whose plans are kept.
    #[must_use]
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// How many plans are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// [`Code::plan`], computed only if it is not kept. The one used longest ago makes room.
    ///
    /// # Errors
    /// As [`Code::plan`].
    pub fn plan(&self, present: &[usize], wanted: &[usize]) -> Result<Arc<Plan>, CodeError> {
        let mut buffer = [0; KEY_LEN];
        let Some(key) = write_key(&mut buffer, present, wanted) else {
            // More roles than there are: whatever is wrong with the lists, the code says it.
            return self.code.plan(present, wanted).map(Arc::new);
        };
        if let Some(plan) = self.lock().find(key) {
            return Ok(plan);
        }
        // Without the lock: two threads may work out the same plan, and neither waits for the other.
        let plan = Arc::new(self.code.plan(present, wanted)?);
        self.lock().insert(key, Arc::clone(&plan), self.capacity);
        Ok(plan)
    }

    /// [`Code::reconstruct`] with plans that are kept.
    ///
    /// # Errors
    /// As [`Code::reconstruct`].
    pub fn reconstruct(
        &self,
        present: &[(usize, &[u8])],
        wanted: &mut [(usize, &mut [u8])],
    ) -> Result<(), CodeError> {
        let (roles, missing) = roles_of(present, wanted);
        self.plan(&roles, &missing)?.run_among(present, wanted)
    }

    /// A thread that panicked in here left the map whole.
    fn lock(&self) -> MutexGuard<'_, Plans> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plans {
    fn find(&mut self, key: &[u8]) -> Option<Arc<Plan>> {
        self.uses += 1;
        let entry = self.entries.get_mut(key)?;
        entry.last_use = self.uses;
        Some(Arc::clone(&entry.plan))
    }

    fn insert(&mut self, key: &[u8], plan: Arc<Plan>, capacity: usize) {
        self.entries.insert(key.to_vec(), Entry { plan, last_use: self.uses });
        if self.entries.len() > capacity {
            // A search of them all takes less than the plan that was just worked out.
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.last_use);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| self.entries.remove(&key));
        }
    }
}

/// Longest key.
const KEY_LEN: usize = 2 * (MAX_ROLES + 1);

/// How many roles are present (in two bytes), these roles, and those wanted. `None` for roles that no code has, and for
/// more than all.
fn write_key<'a>(buffer: &'a mut [u8; KEY_LEN], present: &[usize], wanted: &[usize]) -> Option<&'a [u8]> {
    if present.len() > MAX_ROLES || wanted.len() > MAX_ROLES {
        return None;
    }
    let (count, roles) = buffer.split_first_chunk_mut()?;
    *count = u16::try_from(present.len()).ok()?.to_le_bytes();
    for (byte, role) in roles.iter_mut().zip(present.iter().chain(wanted)) {
        *byte = u8::try_from(*role).ok()?;
    }
    Some(&buffer[..2 + present.len() + wanted.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_computed_once_and_the_one_used_longest_ago_makes_room() {
        let cache = PlanCache::new(Code::rs(4, 2).unwrap(), 2);
        let first = cache.plan(&[1, 2, 3, 4], &[0]).unwrap();
        let second = cache.plan(&[0, 2, 3, 4], &[1]).unwrap();
        assert!(Arc::ptr_eq(&first, &cache.plan(&[1, 2, 3, 4], &[0]).unwrap()));
        cache.plan(&[0, 1, 3, 4], &[2]).unwrap();
        assert_eq!(cache.len(), 2);
        assert!(Arc::ptr_eq(&first, &cache.plan(&[1, 2, 3, 4], &[0]).unwrap()));
        assert!(!Arc::ptr_eq(&second, &cache.plan(&[0, 2, 3, 4], &[1]).unwrap()));
    }

    #[test]
    fn what_is_present_and_what_is_wanted_are_not_confused() {
        let cache = PlanCache::new(Code::rs(1, 3).unwrap(), 9);
        assert_eq!(cache.plan(&[0, 1], &[2, 3]).unwrap().outputs(), [2, 3]);
        assert_eq!(cache.plan(&[0], &[1, 2, 3]).unwrap().outputs(), [1, 2, 3]);
        assert_eq!(cache.len(), 2);
    }

    #[test]
    fn refusals_are_those_of_the_code_and_are_not_kept() {
        let cache = PlanCache::new(Code::rs(2, 1).unwrap(), 0);
        assert_eq!(cache.plan(&[0, 256], &[1]).unwrap_err(), CodeError::NoSuchRole { role: 256, limit: 3 });
        assert_eq!(cache.plan(&[0; 300], &[1]).unwrap_err(), CodeError::Duplicate { role: 0 });
        assert!(matches!(cache.plan(&[0], &[1]), Err(CodeError::Undetermined { .. })));
        assert!(cache.is_empty());
    }
}
