//! Numbered places that are used again, each time under a new number: a late or repeated answer finds nothing.

/// A table of `T` under numbers that are unique for as long as 2^32 reuses of one place.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Keeps `value`; its number takes it out again.
    pub(crate) fn insert(&mut self, value: T) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| self.grow());
        let place = &mut self.places[index as usize];
        place.value = Some(value);
        u64::from(place.generation) << 32 | u64::from(index)
    }

    /// Takes the value out, if it is still there.
    pub(crate) fn take(&mut self, number: u64) -> Option<T> {
        let index = number as u32;
        let place = self.places.get_mut(index as usize)?;
        if u64::from(place.generation) != number >> 32 {
            return None;
        }
        let value = place.value.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index);
        Some(value)
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Memory of the table.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Place<T>>() + self.free.capacity() * size_of::<u32>()
    }

    /// All values, in no particular order of insertion.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|place| place.value.as_ref())
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn grow(&mut self) -> u32 {
        let index = u32::try_from(self.places.len()).expect("fewer than 2^32 requests are open");
        self.places.push(Place { generation: 0, value: None });
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_finds_its_value_once() {
        let mut slab = Slab::default();
        let a = slab.insert('a');
        let b = slab.insert('b');
        assert_eq!((slab.take(a), slab.take(a), slab.len()), (Some('a'), None, 1));
        let c = slab.insert('c');
        assert_ne!(a, c);
        assert_eq!((slab.take(a), slab.take(c), slab.take(b), slab.len()), (None, Some('c'), Some('b'), 0));
    }
}
