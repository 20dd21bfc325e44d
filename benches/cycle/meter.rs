//! What a cycle costs: wall and CPU time, page faults, allocations, and the peak of memory of the process.

use std::alloc::{GlobalAlloc, Layout};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use anyhow::Context;
use mimalloc::MiMalloc;
use rustix::time::{ClockId, clock_gettime};

static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// The allocator of the scheduler, counting.
pub(crate) struct Counting;

fn count(size: usize) {
    COUNT.fetch_add(1, Relaxed);
    BYTES.fetch_add(size as u64, Relaxed);
}

#[allow(unsafe_code, reason = "a global allocator cannot be written without")]
// SAFETY: every call is passed on unchanged to an allocator that keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        unsafe { MiMalloc.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { MiMalloc.dealloc(block, layout) }
    }
}

/// What was spent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) wall_nanos: u64,
    pub(crate) cpu_nanos: u64,
    pub(crate) n_faults: u64,
    pub(crate) alloc_count: u64,
    pub(crate) alloc_bytes: u64,
}

/// Runs `work` and says what it cost.
///
/// # Errors
/// The page faults cannot be read.
pub(crate) fn cost_of<T>(work: impl FnOnce() -> T) -> anyhow::Result<(T, Cost)> {
    let faults = n_faults()?;
    let (count, bytes) = (COUNT.load(Relaxed), BYTES.load(Relaxed));
    let (start, cpu) = (Instant::now(), cpu_nanos());
    let result = work();
    let (cpu_nanos, wall_nanos) = (cpu_nanos() - cpu, start.elapsed().as_nanos() as u64);
    let (alloc_count, alloc_bytes) = (COUNT.load(Relaxed) - count, BYTES.load(Relaxed) - bytes);
    let n_faults = n_faults()? - faults;
    Ok((result, Cost { wall_nanos, cpu_nanos, n_faults, alloc_count, alloc_bytes }))
}

/// CPU time of the process, by a clock that is exact when it is read.
fn cpu_nanos() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Pages that the process touched for the first time, or again after it gave them back.
fn n_faults() -> anyhow::Result<u64> {
    let text = fs::read_to_string("/proc/self/stat").context("cannot read the page faults")?;
    // Behind the name of the program, which may have blanks, the eighth field.
    let fields = text.rsplit(')').next().into_iter().flat_map(str::split_whitespace);
    fields.skip(7).find_map(|word| word.parse().ok()).context("no page faults in /proc/self/stat")
}

/// Most memory that the process ever had, in KiB.
///
/// # Errors
/// The kernel does not say.
pub(crate) fn peak_rss_kib() -> anyhow::Result<u64> {
    let text = fs::read_to_string("/proc/self/status").context("cannot read the memory")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number.and_then(|word| word.parse().ok()).context("no VmHWM in /proc/self/status")
}
