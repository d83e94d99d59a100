//! A driver without a device: it records what it is asked for. With it, tests see matrices that no test could multiply, and
//! a device whose memory others take.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::device::Device;
use crate::device::cpu::Cpu;
use crate::device::gpu::accelerator::Accelerator;
use crate::device::gpu::launcher::{Arg, Facts, Failure, Launcher, Product, Width};
use crate::device::gpu::machine::COPY_BYTES;
use crate::device::gpu::panels::Panels;
use crate::device::matrix::Matrix;
use crate::error::{Error, Result};
use crate::observe::Control;

type Outcome<T> = std::result::Result<T, Failure>;

const GIB: u64 = 1 << 30;

struct Pretended {
    facts: Facts,
    free: AtomicU64,
    /// Flops of each product.
    products: Mutex<Vec<f64>>,
    /// Cancelled by the product of this number.
    cancelled: Option<(usize, Arc<Control>)>,
    /// What an eigendecomposition waits for; without it there is none.
    decomposed: Option<Mutex<Receiver<Outcome<()>>>>,
}

impl Launcher for Pretended {
    type Memory = ();

    fn facts(&self) -> &Facts {
        &self.facts
    }
    fn free(&self) -> Outcome<Option<u64>> {
        Ok(Some(self.free.load(Relaxed)))
    }
    fn allocate(&self, _: u64) -> Outcome<()> {
        Ok(())
    }
    fn upload(&self, _: &[u8], (): &(), _: u64) -> Outcome<()> {
        Ok(())
    }
    fn download(&self, (): &(), _: u64, _: &mut [u8]) -> Outcome<()> {
        Ok(())
    }
    fn launch(&self, _: &'static str, _: [usize; 2], _: &[Arg<()>]) -> Outcome<()> {
        Ok(())
    }
    fn wait(&self) -> Outcome<()> {
        Ok(())
    }
    fn product(&self, product: &Product<()>) -> Outcome<bool> {
        let mut products = self.products.lock().unwrap();
        products.push(2.0 * product.size.iter().map(|&size| size as f64).product::<f64>());
        if let Some((number, control)) = &self.cancelled
            && *number == products.len()
        {
            control.cancel();
        }
        Ok(true)
    }
    fn eigen_rows(&self) -> usize {
        if self.decomposed.is_some() { 32_000 } else { 0 }
    }
    fn eigen(&self, _: Width, _: usize, (): &(), (): &(), (): &()) -> Outcome<()> {
        self.decomposed.as_ref().map_or(Ok(()), |decomposed| decomposed.lock().unwrap().recv().unwrap())
    }
}

fn pretended() -> Pretended {
    let facts = Facts { memory: 100 * GIB, free: 100 * GIB, largest: 20 * GIB, ..Facts::default() };
    let (free, products) = (AtomicU64::new(facts.free), Mutex::default());
    Pretended { facts, free, products, cancelled: None, decomposed: None }
}

fn device(launcher: Pretended) -> Accelerator<Pretended> {
    Accelerator::new(launcher, "a test".into(), None)
}

impl Accelerator<Pretended> {
    fn matrix(&self, width: Width, rows: usize, columns: usize) -> Matrix {
        Panels::new(&self.machine, width, rows, columns).unwrap().wrap()
    }

    fn products(&self) -> Vec<f64> {
        std::mem::take(&mut self.machine.launcher.products.lock().unwrap())
    }
}

#[test]
fn a_product_of_large_matrices_is_cut_into_parts_that_do_not_take_long() {
    let (n, columns) = (20_000, 300);
    for is_processor in [false, true] {
        let device = device(Pretended { facts: Facts { is_processor, ..pretended().facts }, ..pretended() });
        let stride = device.machine.stride_of_pace();
        for width in [Width::Single, Width::Double] {
            let (a, b) = (device.matrix(width, n, n), device.matrix(Width::Double, n, columns));
            for transposed in [false, true] {
                let control = Control::default();
                let multiplied =
                    if transposed { device.transposed_times(&a, &b, &control) } else { device.times(&a, &b, &control) };
                assert_eq!(multiplied.map(|product| (product.rows, product.columns)).ok(), Some((n, columns)));
                let products = device.products();
                assert!(products.iter().all(|flops| *flops <= stride), "{width:?} {transposed}: {products:?}");
                // All of it, in no more parts than that takes.
                let all = 2.0 * (n * n * columns) as f64;
                assert!((products.iter().sum::<f64>() - all).abs() <= 1e-9 * all, "{width:?} {transposed}");
                assert!(products.len() as f64 <= 2.0 * all / stride + 2.0, "{} parts", products.len());
            }
        }
    }
}

#[test]
fn an_interruption_ends_a_product_before_its_next_part() {
    for transposed in [false, true] {
        let control = Arc::new(Control::default());
        let device = device(Pretended { cancelled: Some((3, control.clone())), ..pretended() });
        let (a, b) = (device.matrix(Width::Single, 20_000, 20_000), device.matrix(Width::Double, 20_000, 300));
        let used = device.machine.used();
        let multiplied =
            if transposed { device.transposed_times(&a, &b, &control) } else { device.times(&a, &b, &control) };
        assert_eq!(multiplied.err(), Some(Error::Interrupted));
        assert_eq!((device.products().len(), device.machine.used()), (3, used));
    }
}

#[test]
fn each_plan_looks_at_the_memory_that_is_free() {
    let (device, control) = (device(pretended()), Control::default());
    let others_take =
        |bytes: u64| device.machine.launcher.free.store(100 * GIB - bytes - device.machine.used(), Relaxed);
    let plan = |bytes: u64| device.survey().and_then(|()| device.check_room(bytes, &control));
    assert_eq!(plan(80 * GIB), Ok(()));
    let parts = device.machine.work_bytes();
    others_take(60 * GIB);
    let need = 80 * GIB + device.machine.products_bytes();
    let error = plan(80 * GIB);
    let free = device.machine.left();
    assert_eq!(error, Err(Error::DeviceMemory { device: "a test".into(), need, free }));
    assert!(free > 35 * GIB && free <= 36 * GIB, "{free}");
    assert_eq!(plan(30 * GIB), Ok(()));
    // A budget is also what may be taken, whatever was planned.
    assert!(device.machine.allocate::<f64>((5 * GIB / 8) as usize).is_ok());
    others_take(99 * GIB);
    device.survey().unwrap();
    assert!(device.machine.allocate::<f64>((5 * GIB / 8) as usize).is_err());
    // The memory of this process is part of its budget.
    let held = device.machine.allocate::<f64>((2 * GIB / 8) as usize);
    assert!(held.is_err());
    others_take(0);
    device.survey().unwrap();
    let before = device.machine.budget();
    let held = device.machine.allocate::<f64>((2 * GIB / 8) as usize).unwrap();
    others_take(0);
    device.survey().unwrap();
    assert_eq!((device.machine.budget(), device.machine.left()), (before, before - 2 * GIB));
    drop(held);
    // Parts, and with them sums, are the same whatever is free.
    assert_eq!(device.machine.work_bytes(), parts);
}

#[test]
fn a_plan_waits_for_the_decomposition_of_an_interrupted_fit() {
    let (send, receive) = channel();
    let device = device(Pretended { decomposed: Some(Mutex::new(receive)), ..pretended() });
    let (n, control) = (1000, Control::default());
    let matrix = device.matrix(Width::Double, n, n);
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(60));
            control.cancel();
        });
        device.eigh(matrix, &control).err()
    });
    assert_eq!(ended, Some(Error::Interrupted));
    // Its matrix is still in use.
    let used = device.machine.used();
    assert!(used >= 8 * (n * n) as u64, "{used}");
    let all = device.machine.budget() - device.machine.products_bytes();
    let limited = Control::new(Some(Duration::from_millis(120)));
    assert!(matches!(device.check_room(all, &limited), Err(Error::DeviceMemory { .. })));
    assert_eq!(device.check_room(all, &control), Err(Error::Interrupted));
    let started = Instant::now();
    let ready: Result<()> = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            send.send(Ok(())).unwrap();
        });
        device.check_room(all, &Control::default())
    });
    assert_eq!((ready, device.machine.used()), (Ok(()), 0));
    assert!(started.elapsed() >= Duration::from_millis(100));
    // What nothing will free is not waited for.
    assert!(matches!(device.check_room(2 * all, &Control::default()), Err(Error::DeviceMemory { .. })));
}

#[test]
fn a_decomposition_that_fails_gives_its_memory_back() {
    let (send, receive) = channel();
    let device = device(Pretended { decomposed: Some(Mutex::new(receive)), ..pretended() });
    for failure in [Failure::Memory, Failure::of("cusolverDnDsyevd")("it did not converge".into())] {
        send.send(Err(failure.clone())).unwrap();
        let error = device.eigh(device.matrix(Width::Double, 50, 50), &Control::default()).err().unwrap();
        match failure {
            Failure::Memory => assert!(matches!(error, Error::DeviceMemory { .. }), "{error}"),
            _ => assert!(error.to_string().contains("did not converge"), "{error}"),
        }
        assert_eq!(device.machine.used(), 0);
    }
}

#[test]
fn the_host_keeps_no_matrix_where_the_device_decomposes_it() {
    let (n, matrix) = (10_000, 800_000_000);
    let (_, receive) = channel();
    let able = device(Pretended { decomposed: Some(Mutex::new(receive)), ..pretended() });
    assert_eq!(able.host_decomposition_bytes(n), COPY_BYTES as u64);
    assert_eq!(able.host_decomposition_bytes(100), 80_000);
    let unable = device(pretended());
    assert!(unable.host_decomposition_bytes(n) >= 3 * matrix);
    assert!(Cpu.host_decomposition_bytes(n) >= 3 * matrix);
}
