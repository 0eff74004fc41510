//! How the C library's allocator treats the buffers of connections.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub use glibc::keep_buffers;

/// Other allocators are left as they are.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep_buffers() {}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    #![allow(unsafe_code)] // `mallopt` has no safe name.

    /// Buffers of links and of values on their way are as long as this at most, or live long.
    const REUSED_BYTES: libc::c_int = 4 << 20;
    /// What a heap keeps at its end once that is free.
    const KEPT_AT_END: libc::c_int = 8 << 20;

    /// Buffers that come and go are used again, instead of being mapped, cleared by the kernel and unmapped each time. Reads of
    /// 1 MB cost a tenth to a fifth less CPU that way: each MB had some 40 page faults.
    pub fn keep_buffers() {
        for (name, value) in [(libc::M_MMAP_THRESHOLD, REUSED_BYTES), (libc::M_TRIM_THRESHOLD, KEPT_AT_END)] {
            // SAFETY: it changes how much the allocator keeps, and nothing that anybody has been given.
            let is_set = unsafe { libc::mallopt(name, value) };
            debug_assert_eq!(is_set, 1, "within the allocator's bounds");
        }
    }
}
