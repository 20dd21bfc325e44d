//! The allocator of the binary: mimalloc, and where half a megabyte after the other was allocated,
//! once somebody has asked for that (`--enable-pprof`). Off, it costs a load and a branch a call.
//! Specification: core.md 1.8 (heap profiles). `unsafe`: an allocator is.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mimalloc::MiMalloc;

/// Bytes between two samples of a thread, on average; Go's default.
pub const RATE: usize = 512 * 1024;
/// Deepest stack that is kept.
const DEPTH: usize = 64;
/// Counters of sampled addresses; a power of two.
const SLOTS: usize = 1 << 16;

static ON: AtomicBool = AtomicBool::new(false);
/// How many live samples have an address of this hash: most frees end here.
static PRESENT: [AtomicU16; SLOTS] = [const { AtomicU16::new(0) }; SLOTS];
static SITES: Mutex<Option<HeapSites>> = Mutex::new(None);

thread_local! {
    /// Bytes until this thread takes a sample.
    static LEFT: Cell<i64> = const { Cell::new(0) };
    /// State of this thread's random numbers; 0: none yet.
    static RANDOM: Cell<u64> = const { Cell::new(0) };
    /// This thread is in here: what it allocates now is not sampled.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// mimalloc with samples.
pub struct Sampling;

/// What was allocated at one place, each number scaled up from its samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HeapAmounts {
    pub alloc_objects: f64,
    pub alloc_bytes: f64,
    pub inuse_objects: f64,
    pub inuse_bytes: f64,
}

type HeapStack = Box<[usize]>;

#[derive(Default)]
struct HeapSites {
    numbers: HashMap<HeapStack, usize>,
    amounts: Vec<HeapAmounts>,
    /// Address of a live sample to its site and size.
    live: HashMap<usize, (usize, usize)>,
}

// SAFETY: every call is passed to mimalloc with the same arguments, and its answer is returned
// unchanged; what is done besides does not touch the memory, and does not unwind.
unsafe impl GlobalAlloc for Sampling {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about `layout` is the one that is needed.
        let place = unsafe { MiMalloc.alloc(layout) };
        allocated(place, layout.size());
        place
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let place = unsafe { MiMalloc.alloc_zeroed(layout) };
        allocated(place, layout.size());
        place
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        freed(place);
        // SAFETY: the caller got `place` from us with this layout, so mimalloc gave it.
        unsafe { MiMalloc.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        freed(place);
        // SAFETY: as above, and the caller's promise about `size` is the one that is needed.
        let place = unsafe { MiMalloc.realloc(place, layout, size) };
        allocated(place, size);
        place
    }
}

/// Takes samples from now on.
pub fn start() {
    ON.store(true, Relaxed);
}

/// Every place of an allocation that was sampled: its stack, innermost call first, and amounts.
pub fn sites() -> Vec<(Vec<usize>, HeapAmounts)> {
    let was_inside = INSIDE.replace(true);
    let copy = {
        let sites = lock();
        let all = sites.iter().flat_map(|sites| &sites.numbers);
        let amounts = |number: usize| sites.as_ref().map(|sites| sites.amounts[number]);
        all.filter_map(|(stack, &number)| Some((stack.to_vec(), amounts(number)?))).collect()
    };
    INSIDE.set(was_inside);
    copy
}

#[inline]
fn allocated(place: *mut u8, size: usize) {
    if ON.load(Relaxed) && !place.is_null() {
        count(place as usize, size);
    }
}

#[inline]
fn freed(place: *mut u8) {
    if ON.load(Relaxed) && PRESENT[slot(place as usize)].load(Relaxed) != 0 {
        forget(place as usize);
    }
}

fn slot(place: usize) -> usize {
    // Fibonacci hashing: the low bits of an address say little.
    let mixed = (place as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 48) as usize & (SLOTS - 1)
}

fn count(place: usize, size: usize) {
    let left = LEFT.get() - i64::try_from(size).unwrap_or(i64::MAX);
    LEFT.set(left);
    if left < 0 && !INSIDE.replace(true) {
        // The first distance of a thread is drawn before its first sample.
        if RANDOM.get() != 0 {
            sample(place, size);
        }
        LEFT.set(distance());
        INSIDE.set(false);
    }
}

/// Bytes until the next sample: exponentially distributed, so that no pattern of sizes escapes.
fn distance() -> i64 {
    let mut state = RANDOM.get();
    if state == 0 {
        // Different for each thread: the address of its own variable.
        state = RANDOM.with(|cell| std::ptr::from_ref(cell) as u64) | 1;
    }
    // xorshift64: enough for a distance.
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    RANDOM.set(state);
    let uniform = ((state >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    (-uniform.ln() * RATE as f64) as i64
}

/// The thread is `INSIDE`. The stack is captured before the lock is taken: capturing takes locks too.
fn sample(place: usize, size: usize) {
    let (mut stack, mut depth) = ([0; DEPTH], 0);
    backtrace::trace(|frame| {
        stack[depth] = frame.ip() as usize;
        depth += 1;
        depth < DEPTH
    });
    let mut sites = lock();
    let sites = sites.get_or_insert_default();
    let number = sites.number(&stack[..depth]);
    sites.amounts[number].allocate(size);
    if sites.live.insert(place, (number, size)).is_none() {
        PRESENT[slot(place)].fetch_add(1, Relaxed);
    }
}

fn forget(place: usize) {
    // What is freed inside was allocated inside, so it has no sample.
    if INSIDE.replace(true) {
        return;
    }
    if let Some(sites) = lock().as_mut()
        && let Some((number, size)) = sites.live.remove(&place)
    {
        sites.amounts[number].free(size);
        PRESENT[slot(place)].fetch_sub(1, Relaxed);
    }
    INSIDE.set(false);
}

fn lock() -> MutexGuard<'static, Option<HeapSites>> {
    SITES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HeapSites {
    fn number(&mut self, stack: &[usize]) -> usize {
        if let Some(&number) = self.numbers.get(stack) {
            return number;
        }
        let number = self.amounts.len();
        self.amounts.push(HeapAmounts::default());
        self.numbers.insert(stack.into(), number);
        number
    }
}

impl HeapAmounts {
    fn allocate(&mut self, size: usize) {
        let weight = weight(size);
        self.alloc_objects += weight;
        self.alloc_bytes += weight * size as f64;
        self.inuse_objects += weight;
        self.inuse_bytes += weight * size as f64;
    }

    fn free(&mut self, size: usize) {
        self.inuse_objects -= weight(size);
        self.inuse_bytes -= weight(size) * size as f64;
    }
}

/// How many allocations of this size a sample stands for: one over the chance to be sampled.
fn weight(size: usize) -> f64 {
    1.0 / (1.0 - (-(size.max(1) as f64) / RATE as f64).exp())
}

/// The name of the function that has called the allocator is the first of interest.
pub(crate) fn is_ours(function: &str) -> bool {
    const OURS: [&str; 4] = ["backtrace::", "::heap::", "__rust_", "__rustc::"];
    OURS.iter().any(|part| function.contains(part))
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;

    use super::*;

    /// All tests of this crate run on it.
    #[global_allocator]
    static ALLOCATOR: Sampling = Sampling;

    #[inline(never)]
    fn hoard(n_blocks: usize, size: usize) -> Vec<Vec<u8>> {
        (0..n_blocks).map(|_| vec![1; size]).collect()
    }

    /// What functions of this name have allocated.
    fn of(function: &str) -> HeapAmounts {
        let mut sum = HeapAmounts::default();
        for (stack, amounts) in sites() {
            let mut found = false;
            for address in stack {
                backtrace::resolve(address.saturating_sub(1) as *mut c_void, |symbol| {
                    found |= symbol.name().is_some_and(|name| name.to_string().contains(function));
                });
            }
            if found {
                sum.alloc_bytes += amounts.alloc_bytes;
                sum.inuse_bytes += amounts.inuse_bytes;
            }
        }
        sum
    }

    #[test]
    fn samples_tell_what_is_allocated_and_what_is_still_in_use() {
        start();
        let megabytes = |bytes: f64| bytes / f64::from(1 << 20);
        let blocks = hoard(4096, 64 * 1024);
        let full = of("heap::tests::hoard");
        // 256 MiB are some 500 samples: ten standard deviations are 45%.
        assert!((140.0..370.0).contains(&megabytes(full.inuse_bytes)), "{full:?}");
        drop(blocks);
        let empty = of("heap::tests::hoard");
        assert!(megabytes(empty.inuse_bytes) < 1.0, "{empty:?}");
        assert!(megabytes(full.alloc_bytes) <= megabytes(empty.alloc_bytes), "{empty:?}");
    }

    #[test]
    fn many_threads_allocate_grow_and_free_while_sites_are_read() {
        start();
        let work = || {
            for round in 0..50 {
                let mut grown = Vec::new();
                (0..200_000_u32).for_each(|number| grown.push(number ^ round));
                assert_eq!(grown[100_000], 100_000 ^ round);
                let zeroed = vec![0_u8; 1 << 20];
                assert!(zeroed.iter().all(|&byte| byte == 0));
            }
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(work)));
            for _ in 0..20 {
                assert!(sites().iter().all(|(stack, _)| !stack.is_empty()));
            }
        });
    }

    #[test]
    fn a_sample_stands_for_more_of_what_is_small() {
        assert!((weight(RATE * 100) - 1.0).abs() < 1e-9);
        let small = weight(16) * 16.0;
        assert!((small / RATE as f64 - 1.0).abs() < 0.001, "{small}");
        let mean = (0..10_000).map(|_| distance() as f64).sum::<f64>() / 10_000.0;
        assert!((mean / RATE as f64 - 1.0).abs() < 0.1, "{mean}");
    }
}
