//! Memory that was freed and that the allocator keeps.

#![allow(unsafe_code)]

/// Gives freed memory back to the system, above all that of opening a model: the allocator of glibc keeps
/// much of it for later, others give it back themselves. For programs that replace models.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: any thread may call it at any time; it takes the allocator's own locks and touches no memory in use.
    unsafe {
        libc::malloc_trim(0);
    }
}
