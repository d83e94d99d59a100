//! How much memory there is, and how to take it so that running out of it is an error and not the end of the process.
//!
//! Three rules keep a fit from being aborted by a failed allocation:
//!
//! 1. A fit is planned: what it will take is compared with what is [`available`] before anything is allocated.
//! 2. Large blocks (the kernel matrix, features, factors, eigenvectors) are taken by the functions of this module,
//!    which return an error, and which leave a cushion (`CUSHION` bytes) of a limit of the process to others.
//! 3. Vectors with one number per row are taken by `Vec`, which cannot report a failure. They are counted in the plan,
//!    and live off that cushion.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Limit, Result};
use crate::numeric::threads;

/// Memory that this process may still take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Available {
    /// In bytes.
    pub bytes: u64,
    /// What bounds these bytes.
    pub limit: Limit,
}

/// Memory that this process may still take, where the system tells: the least of what the machine has free and what
/// the limits of the process and of its container leave.
pub fn available() -> Option<Available> {
    let of = |bytes: Option<u64>, limit| bytes.map(|bytes| Available { bytes, limit });
    let machine = of(read("/proc/meminfo").and_then(|text| free_of_machine(&text)), Limit::Machine);
    let container = of(left_in_container(), Limit::Container);
    [machine, container, left_to_process()].into_iter().flatten().min_by_key(|available| available.bytes)
}

/// Bytes of memory that this process may still take, where the system tells.
pub fn available_memory() -> Option<u64> {
    available().map(|available| available.bytes)
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The number in the line that begins with `key`.
fn number_after(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse().ok())
}

/// Bytes that can be had without swapping, from the text of `/proc/meminfo`.
fn free_of_machine(meminfo: &str) -> Option<u64> {
    number_after(meminfo, "MemAvailable:").map(|kilobytes| kilobytes * 1024)
}

/// Pages of address space and of data in use, from the text of `/proc/self/statm`.
fn in_use(statm: &str) -> Option<(u64, u64)> {
    let mut numbers = statm.split_whitespace().map(str::parse);
    let size = numbers.next()?.ok()?;
    let data = numbers.nth(4)?.ok()?;
    Some((size, data))
}

/// What the limits of the process itself leave; `None` if it has no limits.
#[cfg(target_os = "linux")]
fn left_to_process() -> Option<Available> {
    let limit = |resource| {
        let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the call writes into `limit` and nowhere else.
        let asked = unsafe { libc::getrlimit(resource, &raw mut limit) };
        (asked == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
    };
    let (space, data) = (limit(libc::RLIMIT_AS), limit(libc::RLIMIT_DATA));
    space.or(data)?;
    // SAFETY: asks for a constant of the system.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    let (size_used, data_used) = in_use(&read("/proc/self/statm")?)?;
    let left = |limit: Option<u64>, used: u64, kind| {
        limit.map(|limit| Available { bytes: limit.saturating_sub(used * page), limit: kind })
    };
    let both = [left(space, size_used, Limit::AddressSpace), left(data, data_used, Limit::Data)];
    both.into_iter().flatten().min_by_key(|available| available.bytes)
}

#[cfg(not(target_os = "linux"))]
fn left_to_process() -> Option<Available> {
    None
}

/// Where the files of a control group lie, and their names.
struct Groups {
    root: PathBuf,
    limit: &'static str,
    used: &'static str,
    /// The line of `memory.stat` with the files kept in memory, which count as used but give way.
    cached: &'static str,
    /// The group of this process, below the root.
    own: PathBuf,
}

/// The control groups with a say on memory, from the text of `/proc/self/cgroup`. Each group has a line
/// `hierarchy:controllers:path`, or in version 2 `0::path`.
fn groups(cgroup: &str) -> Vec<Groups> {
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, ':');
        let (hierarchy, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let own = PathBuf::from(path.trim_start_matches('/'));
        if hierarchy == "0" && controllers.is_empty() {
            let (limit, used, cached) = ("memory.max", "memory.current", "inactive_file ");
            Some(Groups { root: "/sys/fs/cgroup".into(), limit, used, cached, own })
        } else if controllers.split(',').any(|controller| controller == "memory") {
            let (limit, used, cached) = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ");
            Some(Groups { root: "/sys/fs/cgroup/memory".into(), limit, used, cached, own })
        } else {
            None
        }
    };
    cgroup.lines().filter_map(of_line).collect()
}

/// What a control group may still take, from the texts of its files; `None` if it has no limit ("max").
fn left_in_group(limit: &str, used: &str, stat: &str, cached: &str) -> Option<u64> {
    let (limit, used): (u64, u64) = (limit.trim().parse().ok()?, used.trim().parse().ok()?);
    Some(limit.saturating_sub(used.saturating_sub(number_after(stat, cached).unwrap_or(0))))
}

impl Groups {
    /// The least that the group of this process, or any group around it, may still take.
    fn left(&self) -> Option<u64> {
        let of_group = |group: &Path| {
            let file = |name: &str| read(self.root.join(group).join(name));
            let stat = file("memory.stat").unwrap_or_default();
            left_in_group(&file(self.limit)?, &file(self.used)?, &stat, self.cached)
        };
        // Inside a container, the path may be the one on the host, and only the root of it is there.
        self.own.ancestors().filter_map(of_group).min()
    }
}

fn left_in_container() -> Option<u64> {
    groups(&read("/proc/self/cgroup")?).iter().filter_map(Groups::left).min()
}

/// Bytes of a limit of the process that large blocks leave to small vectors, which cannot fail gracefully. With less,
/// such a vector may abort the process; with more, fits that would fit are refused.
const CUSHION: u64 = 48 << 20;

/// Blocks of fewer bytes are taken without a look at the limits: reading the limits costs some microseconds.
const SMALL_BLOCK: usize = 256 << 10;

/// Held while a thread looks at what is left and takes it: one thread at a time.
static TAKING: Mutex<()> = Mutex::new(());

/// Whether a limit of the process leaves room for `bytes` bytes and the cushion.
pub(crate) fn has_room(bytes: u64) -> bool {
    left_to_process().is_none_or(|left| bytes.saturating_add(CUSHION) <= left.bytes)
}

/// Fails if the process has reached its limit of memory: then even a copy of a few targets would end it.
pub fn check_cushion() -> Result<()> {
    if has_room(0) { Ok(()) } else { Err(out_of_memory(CUSHION, "the data of a fit")) }
}

/// Allocates, if the cushion remains.
fn take<R>(bytes: usize, allocate: impl FnOnce() -> Option<R>) -> Option<R> {
    if bytes < SMALL_BLOCK || left_to_process().is_none() {
        return allocate();
    }
    let _one_at_a_time = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if has_room(bytes as u64) { allocate() } else { None }
}

/// A lack of memory: the bytes needed, and what there is instead. The need is stated so that it is never less than what
/// is available.
#[derive(Clone, Copy)]
pub(crate) struct Shortage {
    pub need: u64,
    /// `u64::MAX` where the system does not tell.
    pub available: u64,
    pub limit: Limit,
}

impl Shortage {
    /// Why `need` bytes could not be had.
    pub fn of(need: u64) -> Self {
        let Some(Available { bytes: available, limit }) = available() else {
            return Self { need, available: u64::MAX, limit: Limit::Machine };
        };
        let of_process = matches!(limit, Limit::AddressSpace | Limit::Data);
        let need = if of_process && need <= available { need.saturating_add(CUSHION) } else { need };
        Self { need, available, limit }
    }

    /// Fails if `need` bytes are more than there are, or cannot be reserved for a moment. Nothing remains allocated.
    pub fn check(need: u64) -> std::result::Result<(), Self> {
        if available().is_some_and(|available| need > available.bytes) || !can_reserve(need) {
            return Err(Self::of(need));
        }
        Ok(())
    }

    /// As an error on a block.
    fn error(self, what: &'static str, way_out: &'static str) -> Error {
        let Self { need, available, limit } = self;
        Error::Allocation { what, need, available, limit, way_out }
    }
}

fn can_reserve(bytes: u64) -> bool {
    let Ok(bytes) = usize::try_from(bytes) else { return false };
    let mut trial: Vec<u8> = Vec::new();
    take(bytes, || trial.try_reserve_exact(bytes).ok()).is_some()
}

/// Fails, before anything is allocated, if there are no `need` bytes for `what`.
pub(crate) fn check(need: u64, what: &'static str, way_out: &'static str) -> Result<()> {
    Shortage::check(need).map_err(|shortage| shortage.error(what, way_out))
}

/// The way out that errors name when a solver runs out of memory.
pub(crate) const FEWER_ROWS: &str = "use fewer rows, or `.low_rank(…)`";

/// The error that `bytes` bytes for `what` could not be had.
pub(crate) fn out_of_memory(bytes: u64, what: &'static str) -> Error {
    Shortage::of(bytes).error(what, FEWER_ROWS)
}

fn failed<T>(length: usize, what: &'static str) -> impl FnOnce() -> Error {
    move || out_of_memory((length as u64).saturating_mul(size_of::<T>() as u64), what)
}

/// Types for which all-zero bytes are the number 0.
///
/// # Safety
/// All-zero bytes must be the number 0 of the type.
pub unsafe trait Zeroable: Copy {}

// SAFETY: all-zero bytes are 0 in these types.
unsafe impl Zeroable for f32 {}

unsafe impl Zeroable for f64 {}

unsafe impl Zeroable for i16 {}

/// Zeros whose pages the system hands out when they are first written, by whichever thread writes;
/// `None` when there is no memory.
pub(crate) fn zeroed<T: Zeroable>(length: usize) -> Option<Vec<T>> {
    let layout = std::alloc::Layout::array::<T>(length).ok()?;
    if layout.size() == 0 {
        return Some(Vec::new());
    }
    take(layout.size(), || {
        // SAFETY: the layout is that of `length` entries and not empty; all-zero bits are 0.
        #[allow(clippy::same_length_and_capacity)]
        unsafe {
            let start = std::alloc::alloc_zeroed(layout).cast::<T>();
            if !start.is_null() && layout.size() >= LARGE_BLOCK {
                prefer_large_pages(start.cast(), layout.size());
            }
            (!start.is_null()).then(|| Vec::from_raw_parts(start, length, length))
        }
    })
}

/// As [`zeroed`], with an error that says what the zeros are for.
pub(crate) fn zeros<T: Zeroable>(length: usize, what: &'static str) -> Result<Vec<T>> {
    zeroed(length).ok_or_else(failed::<T>(length, what))
}

/// An empty vector with room for `length` entries.
pub(crate) fn with_room<T>(length: usize, what: &'static str) -> Result<Vec<T>> {
    let mut out = Vec::new();
    reserve(&mut out, length, what)?;
    Ok(out)
}

/// Makes room for `more` further entries. If there is the memory, the room is at least doubled, so that a vector that
/// grows often is seldom copied.
pub(crate) fn reserve<T>(out: &mut Vec<T>, more: usize, what: &'static str) -> Result<()> {
    if out.capacity() - out.len() >= more {
        return Ok(());
    }
    let least = more.saturating_add(out.len());
    let bytes = |length: usize| length.saturating_mul(size_of::<T>());
    take(bytes(least.max(2 * out.capacity())), || out.try_reserve(more).ok())
        .or_else(|| take(bytes(least), || out.try_reserve_exact(more).ok()))
        .ok_or_else(failed::<T>(least, what))
}

/// Fails if a limit of the process leaves no room for `bytes` bytes, which other code is about to take.
pub(crate) fn check_block(bytes: usize, what: &'static str) -> Result<()> {
    if bytes < SMALL_BLOCK || has_room(bytes as u64) { Ok(()) } else { Err(failed::<u8>(bytes, what)()) }
}

/// A matrix of these entries, column after column.
pub(crate) fn matrix<T>(
    rows: usize,
    columns: usize,
    what: &'static str,
    entry: impl FnMut(usize, usize) -> T,
) -> Result<Mat<T>> {
    let length = rows.saturating_mul(columns);
    let mut out = Mat::new();
    // A column may be padded to the next multiple of a few numbers.
    let bytes = length.saturating_add(columns.saturating_mul(64 / size_of::<T>().max(1)));
    take(bytes.saturating_mul(size_of::<T>()), || out.try_reserve(rows, columns).ok())
        .ok_or_else(failed::<T>(length, what))?;
    out.resize_with(rows, columns, entry);
    Ok(out)
}

/// Blocks of at least this many bytes are to lie in large pages.
const LARGE_BLOCK: usize = 4 << 20;

/// Asks the system for large pages: rows that lie far apart are then found without a walk through page tables.
fn prefer_large_pages(start: *mut u8, size: usize) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let skip = start.align_offset(PAGE);
        // SAFETY: advice on pages inside the block, which changes nothing that a program could see.
        unsafe { libc::madvise(start.add(skip).cast(), (size - skip) / PAGE * PAGE, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, size);
}

/// Address space of a thread's stack: the default of Rust's threads.
const STACK: u64 = 2 << 20;

/// Address space that the C library's allocator sets aside for a new thread, if there is enough.
const ARENA: u64 = 64 << 20;

/// Address space that faer's products take in each thread: room for two copies of what the last caches of the machine
/// hold. Where the system does not tell their size, the size is taken for that of a server.
fn product_space() -> u64 {
    let cache = Path::new("/sys/devices/system/cpu/cpu0/cache/index3");
    let size = read(cache.join("size")).and_then(|text| bytes_of(&text)).unwrap_or(64 << 20);
    let sharing = read(cache.join("shared_cpu_list")).map_or(1, |text| count_of(&text));
    let processors =
        read("/proc/cpuinfo").map_or(1, |text| text.lines().filter(|l| l.starts_with("processor")).count());
    2 * (size / sharing.max(1) as u64 * processors.max(1) as u64).max(size)
}

/// A size such as 32768K.
fn bytes_of(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, unit) = match text.char_indices().next_back()? {
        (at, 'K') => (&text[..at], 1 << 10),
        (at, 'M') => (&text[..at], 1 << 20),
        (at, 'G') => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// How many numbers a list such as 0-3,8 names.
fn count_of(list: &str) -> usize {
    let part = |part: &str| -> Option<usize> {
        let mut ends = part.trim().split('-').map(str::parse::<usize>);
        let first = ends.next()?.ok()?;
        let last = ends.next().and_then(std::result::Result::ok).unwrap_or(first);
        Some(last.saturating_sub(first) + 1)
    };
    list.split(',').filter_map(part).sum()
}

/// Bytes of a limit of the process that a new thread takes before it does anything useful; 0 if there is no limit.
pub(crate) fn space_of_thread() -> u64 {
    match left_to_process() {
        None => 0,
        Some(Available { limit: Limit::Data, .. }) => STACK + product_space(),
        Some(_) => STACK + ARENA + product_space(),
    }
}

/// Fails if a limit of the process has no room for the stack of one more thread.
pub fn check_thread() -> Result<()> {
    if has_room(STACK) { Ok(()) } else { Err(Shortage::of(STACK).error("the stack of a thread", "raise the limit")) }
}

/// A pool of threads to work on. [`threads::count`] says how many it has.
///
/// Under a limit of the process, all address space that the threads take for themselves is taken here, so that what is
/// available afterwards is for the fit.
pub fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    let what = "the stacks and the work space of the threads";
    let way_out = "use fewer threads (n_jobs=1), or raise the limit";
    let limited = left_to_process().is_some();
    // The allocator does without an arena where there is no space for it.
    let of_thread = if limited { STACK + product_space() } else { 0 };
    let enough = |threads: usize| {
        let need = threads as u64 * of_thread;
        if limited && !has_room(need) { Err(Shortage::of(need).error(what, way_out)) } else { Ok(()) }
    };
    let threads = threads::count(threads);
    enough(threads)?;
    let built = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|k| format!("kernelpath-{k}")).build();
    let pool = built.map_err(|error| Error::Threads { threads, reason: error.to_string() })?;
    if limited {
        // One thread after the other, each with a look at what the earlier ones have left.
        let warmed = Mutex::new(());
        let outcomes = pool.broadcast(|_| {
            let _one_at_a_time = warmed.lock().unwrap_or_else(PoisonError::into_inner);
            enough(1)?;
            multiply_once();
            Ok(())
        });
        outcomes.into_iter().collect::<Result<()>>()?;
    }
    Ok(pool)
}

/// Makes a product that is large enough for faer to take its work space in this thread, which keeps it.
fn multiply_once() {
    const ORDER: usize = 64;
    let (a, mut out) = (Mat::<f64>::zeros(ORDER, ORDER), Mat::<f64>::zeros(ORDER, ORDER));
    matmul(out.as_mut(), Accum::Replace, a.as_ref(), a.as_ref(), 1.0, Par::Seq);
    std::hint::black_box(&out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_has_free_is_read() {
        let text =
            "MemTotal:       65842488 kB\nMemFree:         1234 kB\nMemAvailable:   41943040 kB\nBuffers: 1 kB\n";
        assert_eq!(free_of_machine(text), Some(41_943_040 * 1024));
        assert_eq!(free_of_machine("MemTotal: 5 kB\n"), None);
        assert_eq!(free_of_machine("MemAvailable: many kB\n"), None);
    }

    #[test]
    fn what_the_process_uses_is_read() {
        assert_eq!(in_use("81251 4530 2110 701 0 23918 0\n"), Some((81_251, 23_918)));
        assert_eq!(in_use("81251 4530"), None);
        assert_eq!(in_use(""), None);
    }

    #[test]
    fn control_groups_of_both_versions_are_found() {
        let found = |text: &str| -> Vec<(PathBuf, PathBuf, &str)> {
            groups(text).into_iter().map(|groups| (groups.root, groups.own, groups.limit)).collect()
        };
        let unified = found("0::/user.slice/app.scope\n");
        assert_eq!(unified, [("/sys/fs/cgroup".into(), "user.slice/app.scope".into(), "memory.max")]);
        let old = found("9:name=systemd:/\n4:memory,hugetlb:/docker/a:b\n3:cpuset:/\n");
        assert_eq!(old, [("/sys/fs/cgroup/memory".into(), "docker/a:b".into(), "memory.limit_in_bytes")]);
        assert_eq!(found("4:memory:/\n0::/\n").len(), 2);
        assert!(found("").is_empty() && found("nonsense\n").is_empty());
        // From the group itself up to the root.
        let own = PathBuf::from("a/b");
        assert_eq!(own.ancestors().collect::<Vec<_>>(), [Path::new("a/b"), Path::new("a"), Path::new("")]);
    }

    #[test]
    fn files_that_give_way_do_not_count_as_used() {
        let stat = "anon 7000\nactive_file 5\ninactive_file 300\n";
        assert_eq!(left_in_group("10000\n", "8000\n", stat, "inactive_file "), Some(2300));
        assert_eq!(left_in_group("10000\n", "8000\n", "", "inactive_file "), Some(2000));
        assert_eq!(left_in_group("7000\n", "8000\n", "", "inactive_file "), Some(0));
        assert_eq!(left_in_group("max\n", "8000\n", stat, "inactive_file "), None);
        // In version 1 the plain name counts only the group's own files, and a huge number stands for no limit.
        let stat = "inactive_file 1\ntotal_inactive_file 300\n";
        assert_eq!(left_in_group("10000", "8000", stat, "total_inactive_file "), Some(2300));
        assert!(left_in_group("9223372036854771712", "8000", stat, "total_inactive_file ").unwrap() > 1 << 60);
    }

    #[test]
    fn sizes_and_lists_of_caches_are_read() {
        assert_eq!((bytes_of("32768K\n"), bytes_of("2M"), bytes_of("512")), (Some(32 << 20), Some(2 << 20), Some(512)));
        assert_eq!((bytes_of(""), bytes_of("K"), bytes_of("3X")), (None, None, None));
        assert_eq!((count_of("0-3,8\n"), count_of("5"), count_of("")), (5, 1, 0));
    }

    #[test]
    fn what_cannot_be_had_is_an_error() {
        let huge = 1 << 55;
        assert!(zeroed::<f64>(huge).is_none() && zeroed::<f64>(usize::MAX).is_none());
        for error in [
            zeros::<f32>(huge, "the test").unwrap_err(),
            with_room::<f64>(huge, "the test").unwrap_err(),
            matrix(1 << 30, 1 << 30, "the test", |_, _| 0.0).map(|_| ()).unwrap_err(),
            check(1 << 60, "the test", "ask for less").unwrap_err(),
        ] {
            let message = error.to_string();
            assert!(message.contains("the test") && message.contains("GB"), "{message}");
        }
    }

    #[test]
    fn what_can_be_had_is_had() {
        assert_eq!(zeroed::<f64>(0), Some(Vec::new()));
        assert_eq!(zeros::<i16>(5, "the test").unwrap(), [0; 5]);
        assert!(with_room::<f64>(1 << 20, "the test").unwrap().capacity() >= 1 << 20);
        let a = matrix(3, 2, "the test", |i, j| (10 * i + j) as f64).unwrap();
        assert_eq!((a.nrows(), a.ncols(), a[(2, 1)]), (3, 2, 21.0));
        assert_eq!(matrix(0, 0, "the test", |_, _| 0.0).unwrap().nrows(), 0);
        check(1 << 20, "the test", "ask for less").unwrap();
        assert!(Shortage::check(1 << 20).is_ok());
    }

    #[test]
    fn a_shortage_never_needs_less_than_there_is_under_a_limit() {
        // Without a limit of the process the block itself is stated; `Error` then says that it could not be allocated.
        let Shortage { need, available, .. } = Shortage::of(1 << 60);
        assert_eq!(need, 1 << 60);
        assert!(available == u64::MAX || available < need);
    }

    #[test]
    fn pools_have_as_many_threads_as_asked_for() {
        assert_eq!(pool(3).unwrap().current_num_threads(), 3);
        assert!(pool(0).unwrap().current_num_threads() >= 1);
    }
}
