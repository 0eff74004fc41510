//! Numbered places that are used again, each time under a new number: who looks for what was there finds nothing.

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
    /// Keeps what `make` makes of the number under which it is found, and taken out again.
    pub(crate) fn insert_with(&mut self, make: impl FnOnce(u64) -> T) -> &T {
        let index = self.free.pop().unwrap_or_else(|| self.grow());
        let place = &mut self.places[index as usize];
        let number = u64::from(place.generation) << 32 | u64::from(index);
        place.value.insert(make(number))
    }

    /// The value, if it is still there.
    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        let place = self.places.get(number as u32 as usize)?;
        place.value.as_ref().filter(|_| u64::from(place.generation) == number >> 32)
    }

    /// Takes the value out, if it is still there.
    pub(crate) fn take(&mut self, number: u64) -> Option<T> {
        let index = number as u32;
        let place = self.places.get_mut(index as usize)?;
        if u64::from(place.generation) != number >> 32 {
            return None;
        }
        // An empty place is free already: it must not come onto that list twice.
        let value = place.value.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index);
        Some(value)
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
        let index = u32::try_from(self.places.len()).expect("fewer than 2^32 connections are open");
        self.places.push(Place { generation: 0, value: None });
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(slab: &mut Slab<(u64, char)>, value: char) -> u64 {
        slab.insert_with(|number| (number, value)).0
    }

    #[test]
    fn a_number_finds_its_value_until_that_is_taken() {
        let mut slab = Slab::default();
        let (a, b) = (insert(&mut slab, 'a'), insert(&mut slab, 'b'));
        assert_eq!((slab.get(a), slab.get(b)), (Some(&(a, 'a')), Some(&(b, 'b'))));
        assert_eq!((slab.take(a), slab.take(a)), (Some((a, 'a')), None));
        let c = insert(&mut slab, 'c');
        assert_ne!(a, c);
        assert_eq!((slab.get(a), slab.get(c)), (None, Some(&(c, 'c'))));
        assert_eq!(slab.take(a), None);
        assert_eq!((slab.take(c), slab.take(b), slab.iter().count()), (Some((c, 'c')), Some((b, 'b')), 0));
    }
}
