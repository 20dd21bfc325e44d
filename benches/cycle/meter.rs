//! What a cycle costs: wall and CPU time, allocations, and the peak of memory of the process.

use std::alloc::{GlobalAlloc, Layout};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use anyhow::Context;
use mimalloc::MiMalloc;

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
    pub(crate) alloc_count: u64,
    pub(crate) alloc_bytes: u64,
}

/// Runs `work` and says what it cost.
///
/// # Errors
/// The CPU time cannot be read.
pub(crate) fn cost_of<T>(work: impl FnOnce() -> T) -> anyhow::Result<(T, Cost)> {
    let cpu = cpu_nanos()?;
    let (count, bytes, start) = (COUNT.load(Relaxed), BYTES.load(Relaxed), Instant::now());
    let result = work();
    let wall_nanos = start.elapsed().as_nanos() as u64;
    let (alloc_count, alloc_bytes) = (COUNT.load(Relaxed) - count, BYTES.load(Relaxed) - bytes);
    let cpu_nanos = cpu_nanos()?.saturating_sub(cpu);
    Ok((result, Cost { wall_nanos, cpu_nanos, alloc_count, alloc_bytes }))
}

/// CPU time of all threads that live.
fn cpu_nanos() -> anyhow::Result<u64> {
    let mut sum = 0;
    for thread in fs::read_dir("/proc/self/task").context("cannot list the threads")? {
        let path = thread?.path().join("schedstat");
        let text = fs::read_to_string(&path).context("cannot read the CPU time")?;
        let on_cpu = text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        sum += on_cpu.with_context(|| format!("no CPU time: {}", path.display()))?;
    }
    Ok(sum)
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
