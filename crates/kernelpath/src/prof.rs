//! temp
#![allow(missing_docs)]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
pub static T: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];
pub static N: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];
pub const NAMES: [&str; 16] = ["smo","factor","extend","lu","triangular","add_rows","judge","start","certify","round-misc","qpnew","x","x","x","x","x"];
pub struct G(usize, std::time::Instant);
pub fn g(k: usize) -> G { G(k, std::time::Instant::now()) }
impl Drop for G { fn drop(&mut self) { T[self.0].fetch_add(self.1.elapsed().as_nanos() as u64, Relaxed); N[self.0].fetch_add(1, Relaxed); } }
pub fn print() { for k in 0..11 { eprintln!("{:>12} {:.3} s  {}", NAMES[k], T[k].load(Relaxed) as f64 * 1e-9, N[k].load(Relaxed)); } }
