//! What an arena asks of the operating system: address space, and memory behind parts of it.
//!
//! Miri, which finds wrong uses of memory, knows no `mprotect`: there the space is plain memory (`cargo xtask test miri`).

#![allow(unsafe_code)]

#[cfg(not(miri))]
pub(crate) use kernel::{advise_huge, allow, forbid, give_back, populate, release, reserve, resident};
#[cfg(miri)]
pub(crate) use plain::{advise_huge, allow, forbid, give_back, populate, release, reserve, resident};

#[cfg(not(miri))]
mod kernel {
    use std::io;
    use std::ptr::NonNull;

    /// `len` bytes of address space, without access rights; nothing stands behind them.
    pub(crate) fn reserve(len: usize) -> io::Result<NonNull<u8>> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches no existing memory.
        let mapping = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0) };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(mapping.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))
    }

    /// Makes what [`reserve`] has given readable and writable.
    ///
    /// # Safety
    /// As for all below: the range lies in what [`reserve`] has given, on boundaries of pages.
    pub(crate) unsafe fn allow(at: *mut u8, len: usize) -> io::Result<()> {
        // SAFETY: the caller's.
        check(unsafe { libc::mprotect(at.cast(), len, libc::PROT_READ | libc::PROT_WRITE) })
    }

    /// Takes the access rights back.
    ///
    /// # Safety
    /// As for [`allow`]; nobody uses it.
    pub(crate) unsafe fn forbid(at: *mut u8, len: usize) -> io::Result<()> {
        // SAFETY: the caller's.
        check(unsafe { libc::mprotect(at.cast(), len, libc::PROT_NONE) })
    }

    /// Lets large pages stand behind the range.
    ///
    /// # Safety
    /// As for [`allow`].
    pub(crate) unsafe fn advise_huge(at: *mut u8, len: usize) -> io::Result<()> {
        // SAFETY: the caller's.
        check(unsafe { libc::madvise(at.cast(), len, libc::MADV_HUGEPAGE) })
    }

    /// Brings the memory that is to stand behind the range, all at once: touched page by page, it costs a fault for each.
    ///
    /// # Safety
    /// As for [`allow`]; the range is readable and writable.
    pub(crate) unsafe fn populate(at: *mut u8, len: usize) -> io::Result<()> {
        // SAFETY: the caller's; what is there already is not changed.
        check(unsafe { libc::madvise(at.cast(), len, libc::MADV_POPULATE_WRITE) })
    }

    /// Gives the memory behind the range back; it reads as zero then.
    ///
    /// # Safety
    /// As for [`allow`]; nobody uses it.
    pub(crate) unsafe fn give_back(at: *mut u8, len: usize) -> io::Result<()> {
        // SAFETY: the caller's.
        check(unsafe { libc::madvise(at.cast(), len, libc::MADV_DONTNEED) })
    }

    /// For each page of the range, whether memory stands behind it (bit 0).
    ///
    /// # Safety
    /// As for [`allow`]; there is an entry of `pages` for each page.
    pub(crate) unsafe fn resident(at: *mut u8, len: usize, pages: &mut [u8]) -> io::Result<()> {
        // SAFETY: the caller's.
        check(unsafe { libc::mincore(at.cast(), len, pages.as_mut_ptr()) })
    }

    /// The end of what [`reserve`] has given.
    ///
    /// # Safety
    /// It is all of it, and nobody uses it.
    pub(crate) unsafe fn release(mapping: NonNull<u8>, len: usize) {
        // SAFETY: the caller's.
        unsafe { libc::munmap(mapping.as_ptr().cast(), len) };
    }

    fn check(done: libc::c_int) -> io::Result<()> {
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(miri)]
mod plain {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::io;
    use std::ptr::NonNull;

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, types::PAGE_BYTES).expect("a length that can be")
    }

    pub(crate) fn reserve(len: usize) -> io::Result<NonNull<u8>> {
        // SAFETY: the length is not zero.
        NonNull::new(unsafe { alloc_zeroed(layout(len)) }).ok_or_else(io::Error::last_os_error)
    }

    pub(crate) unsafe fn allow(_: *mut u8, _: usize) -> io::Result<()> {
        Ok(())
    }

    pub(crate) unsafe fn forbid(_: *mut u8, _: usize) -> io::Result<()> {
        Ok(())
    }

    pub(crate) unsafe fn advise_huge(_: *mut u8, _: usize) -> io::Result<()> {
        Ok(())
    }

    pub(crate) unsafe fn populate(_: *mut u8, _: usize) -> io::Result<()> {
        Ok(())
    }

    pub(crate) unsafe fn give_back(at: *mut u8, len: usize) -> io::Result<()> {
        // SAFETY: the caller's: the range is ours, and nobody uses it.
        unsafe { at.write_bytes(0, len) };
        Ok(())
    }

    pub(crate) unsafe fn resident(_: *mut u8, _: usize, _: &mut [u8]) -> io::Result<()> {
        Err(io::Error::other("Miri does not say"))
    }

    pub(crate) unsafe fn release(mapping: NonNull<u8>, len: usize) {
        // SAFETY: the caller's: it is all that `reserve` has given.
        unsafe { dealloc(mapping.as_ptr(), layout(len)) };
    }
}
