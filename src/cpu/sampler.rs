//! The timer, and the handler of its signal. `unsafe`: calls of the C library, and registers of the
//! interrupted thread.
//!
//! The handler may interrupt anything, an allocation too. It allocates nothing, waits for no lock, and
//! leaves `errno` as it was.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use framehop::{
    CacheNative, MustNotAllocateDuringUnwind, UnwindRegsNative, Unwinder, UnwinderNative,
};

use super::modules::modules;
use super::stack::StackReader;
use super::{CpuSamples, HERTZ};

/// Deepest stack that is kept.
const DEPTH: usize = 128;
/// Depth that room is made for, on average.
const MEAN_DEPTH: usize = 48;
/// Most addresses that room is made for: 32 MiB.
const MOST_ADDRESSES: usize = 4 << 20;

/// `None`: no profile is taken.
static SAMPLER: Mutex<Option<Sampler>> = Mutex::new(None);
/// Samples that came while another thread took one.
static N_MISSED: AtomicUsize = AtomicUsize::new(0);

/// All that a sample needs, made beforehand.
struct Sampler {
    unwinder: UnwinderNative<Vec<u8>, MustNotAllocateDuringUnwind>,
    cache: CacheNative<MustNotAllocateDuringUnwind>,
    stack: StackReader,
    samples: CpuSamples,
}

/// Takes samples from now on. `Err`: a profile is being taken, or the system refuses one.
pub(super) fn start(time: Duration) -> Result<(), String> {
    let sampler = Sampler::new(time).map_err(|error| format!("no sampler: {error}"))?;
    let mut current = lock();
    if current.is_some() {
        return Err("another CPU profile is being taken".to_owned());
    }
    install_handler()?;
    N_MISSED.store(0, Relaxed);
    set_timer(1_000_000 / HERTZ)?;
    *current = Some(sampler);
    Ok(())
}

/// Ends the profile and returns its samples; none if no profile was being taken.
pub(super) fn stop() -> CpuSamples {
    if let Err(error) = set_timer(0) {
        tracing::warn!(error, "the timer of CPU profiles goes on");
    }
    let sampler = lock().take();
    let mut samples = sampler.map(|sampler| sampler.samples).unwrap_or_default();
    samples.n_lost += N_MISSED.load(Relaxed);
    samples
}

fn lock() -> MutexGuard<'static, Option<Sampler>> {
    SAMPLER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sampler {
    fn new(time: Duration) -> std::io::Result<Self> {
        let mut unwinder = UnwinderNative::new();
        modules()?.into_iter().for_each(|module| unwinder.add_module(module));
        let n_threads = available_parallelism().map_or(1, usize::from);
        let seconds = usize::try_from(time.as_secs() + 1).unwrap_or(1);
        let n_samples = seconds.saturating_mul(HERTZ as usize).saturating_mul(n_threads);
        let n_addresses = n_samples.saturating_mul(MEAN_DEPTH).min(MOST_ADDRESSES);
        let samples = CpuSamples {
            addresses: Vec::with_capacity(n_addresses),
            ends: Vec::with_capacity(n_samples.min(MOST_ADDRESSES)),
            n_lost: 0,
        };
        let cache = CacheNative::new_in();
        Ok(Self { unwinder, cache, stack: StackReader::new()?, samples })
    }

    /// Notes the stack of a thread with these registers. Called by the handler.
    fn sample(&mut self, pc: u64, registers: UnwindRegsNative) {
        let CpuSamples { addresses, ends, n_lost } = &mut self.samples;
        if addresses.capacity() < addresses.len() + DEPTH || ends.len() == ends.capacity() {
            *n_lost += 1;
            return;
        }
        self.stack.forget();
        let stack = &mut self.stack;
        let mut read = |address| stack.read(address);
        let mut frames = self.unwinder.iter_frames(pc, registers, &mut self.cache, &mut read);
        for _ in 0..DEPTH {
            let Ok(Some(frame)) = frames.next() else { break };
            addresses.push(frame.address_for_lookup());
        }
        ends.push(addresses.len());
    }
}

/// Installs the handler of SIGPROF, once. It stays: a late signal would end the process.
fn install_handler() -> Result<(), String> {
    static FIRST: Once = Once::new();
    let mut result = Ok(());
    FIRST.call_once(|| {
        // SAFETY: zero is a valid value of each field: no flags, an empty set of signals.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: `action` is complete, and its handler has the signature that SA_SIGINFO promises.
        let code = unsafe { libc::sigaction(libc::SIGPROF, &raw const action, ptr::null_mut()) };
        if code != 0 {
            result = Err(std::io::Error::last_os_error().to_string());
        }
    });
    result
}

/// Lets SIGPROF come each time that the process has used this much CPU time; 0: never.
fn set_timer(micros: u32) -> Result<(), String> {
    // SAFETY: zero is a valid value of each field: a timer that does not run.
    let mut timer: libc::itimerval = unsafe { mem::zeroed() };
    timer.it_interval.tv_usec = micros.into();
    timer.it_value = timer.it_interval;
    // SAFETY: `timer` is complete and lives during the call.
    let code = unsafe { setitimer(libc::ITIMER_PROF, &raw const timer, ptr::null_mut()) };
    if code == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().to_string()) }
}

// glibc and musl name the type of the first argument differently in the crate libc.
unsafe extern "C" {
    fn setitimer(which: c_int, new: *const libc::itimerval, old: *mut libc::itimerval) -> c_int;
}

extern "C" fn on_signal(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the address of the thread's own variable; the kernel hands a context to this kind of
    // handler, which lives until it returns.
    let (errno, context) =
        unsafe { (libc::__errno_location(), context.cast::<libc::ucontext_t>()) };
    // SAFETY: as above.
    let (saved, (pc, registers)) = unsafe { (*errno, registers(&*context)) };
    match SAMPLER.try_lock() {
        Ok(mut sampler) => {
            if let Some(sampler) = sampler.as_mut() {
                sampler.sample(pc, registers);
            }
        }
        Err(_) => drop(N_MISSED.fetch_add(1, Relaxed)),
    }
    // SAFETY: as above.
    unsafe { *errno = saved };
}

/// The instruction that was interrupted, and what its callers are found with.
#[cfg(target_arch = "x86_64")]
fn registers(context: &libc::ucontext_t) -> (u64, UnwindRegsNative) {
    let register = |number: c_int| context.uc_mcontext.gregs[number as usize].cast_unsigned();
    let pc = register(libc::REG_RIP);
    (pc, UnwindRegsNative::new(pc, register(libc::REG_RSP), register(libc::REG_RBP)))
}

/// The instruction that was interrupted, and what its callers are found with.
#[cfg(target_arch = "aarch64")]
fn registers(context: &libc::ucontext_t) -> (u64, UnwindRegsNative) {
    let of_thread = &context.uc_mcontext;
    let (frame, link) = (of_thread.regs[29], of_thread.regs[30]);
    (of_thread.pc, UnwindRegsNative::new(link, of_thread.sp, frame))
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::Instant;

    use super::super::RunningProfile;
    use super::*;

    #[inline(never)]
    fn burn_cpu(n_samples: usize) -> u64 {
        let (start, mut sum) = (Instant::now(), 0_u64);
        let n_taken = || lock().as_ref().map_or(usize::MAX, |sampler| sampler.samples.ends.len());
        while n_taken() < n_samples && start.elapsed() < Duration::from_secs(60) {
            for _ in 0..1000 {
                // Allocations, which a sample may interrupt.
                let block: Vec<u64> = (0..black_box(1000)).collect();
                sum = sum.wrapping_add(block.iter().sum());
            }
        }
        sum
    }

    fn has_function(stack: &[u64], function: &str) -> bool {
        stack.iter().any(|&address| {
            let mut is_there = false;
            backtrace::resolve(address as *mut c_void, |symbol| {
                is_there |= symbol.name().is_some_and(|name| name.to_string().contains(function));
            });
            is_there
        })
    }

    #[test]
    fn samples_lead_from_the_innermost_call_to_the_test() {
        let time = Duration::from_secs(2);
        let profile = RunningProfile::start(time).unwrap();
        assert!(RunningProfile::start(time).unwrap_err().contains("another CPU profile"));
        // Other tests use the processor, too, and have samples.
        let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(|| burn_cpu(200))).collect();
        threads.into_iter().for_each(|thread| assert_ne!(thread.join().unwrap(), 0));
        let samples = profile.finish();
        let stacks = samples.stacks().filter(|stack| has_function(stack, "burn_cpu"));
        let (mut n, mut n_whole) = (0, 0);
        for stack in stacks {
            n += 1;
            n_whole += usize::from(has_function(stack, "samples_lead_from"));
        }
        assert!(10 <= n, "{n} of {} samples", samples.ends.len());
        // Most stacks are found to their end.
        assert!(n <= 2 * n_whole, "{n_whole} of {n}");
        // One that is dropped makes place for the next.
        drop(RunningProfile::start(time).unwrap());
        drop(RunningProfile::start(time).unwrap());
    }
}
