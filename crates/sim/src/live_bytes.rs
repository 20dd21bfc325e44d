//! The allocator of vcsim: mimalloc, and how many bytes each thread has allocated and not freed.
//! `unsafe`: an allocator is.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

use mimalloc::MiMalloc;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

/// mimalloc that counts bytes.
pub struct CountingAllocator;

/// Returns the bytes that this thread has allocated and not freed. 0 if another allocator is in use.
pub(crate) fn live_bytes() -> u64 {
    u64::try_from(LIVE.get()).unwrap_or_default()
}

fn add(size: usize, sign: i64) {
    // A thread that ends may still free.
    let _ended = LIVE.try_with(|live| live.set(live.get() + sign * size as i64));
}

// SAFETY: every call is passed to mimalloc with the same arguments, and its answer is returned
// unchanged; the counter does not allocate and does not unwind.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size(), 1);
        // SAFETY: the caller's promise about `layout` is the one that is needed.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size(), 1);
        // SAFETY: as above.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        add(layout.size(), -1);
        // SAFETY: the caller got `place` from us with this layout, so mimalloc gave it.
        unsafe { MiMalloc.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size, 1);
        add(layout.size(), -1);
        // SAFETY: as above, and `size` is the caller's.
        unsafe { MiMalloc.realloc(place, layout, size) }
    }
}
