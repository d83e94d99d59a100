//! scratch
use kernelpath::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let p: usize = a[2].parse().unwrap();
    let lmin: f64 = a[3].parse().unwrap();
    let lmax: f64 = a[4].parse().unwrap();
    let folds: usize = a[5].parse().unwrap();
    let raw = std::fs::read(&a[1]).unwrap();
    let v: Vec<f64> = raw.chunks_exact(8).map(|c| f64::from_le_bytes(c.try_into().unwrap())).collect();
    let n = v.len() / (p + 1);
    let y: Vec<f64> = (0..n).map(|i| v[i * (p + 1)]).collect();
    let x: Vec<f64> = (0..n).flat_map(|i| v[i * (p + 1) + 1..(i + 1) * (p + 1)].to_vec()).collect();
    let c = |l: f64| 1.0 / (2.0 * n as f64 * l);
    let folds = if folds > 1 { Folds::stratified(&y, folds, 0).unwrap() } else { Folds::Splits(vec![Fold { train: (0..n).filter(|i| i % 10 != 0).collect(), test: (0..n).step_by(10).collect() }]) };
    let svc = Svc::builder().cs(logspace(c(lmax), c(lmin), 50)).folds(folds).fit((x.as_slice(), p), &y).unwrap();
    let path = svc.path();
    for (k, c) in path.cs.iter().enumerate() {
        let mean = svc.scores().iter().map(|f| f[k]).sum::<f64>() / svc.scores().len() as f64;
        let worst = path.records.iter().map(|r| r[k].certificate.gap()).fold(0.0, f64::max);
        let steps: usize = path.records.iter().map(|r| r[k].steps).sum();
        println!("{c:>12.6} {mean:>9.4} {worst:>10.1e} {steps:>8}");
    }
    println!("n {n} gamma {} worst {:.1e} kernel {:.2} paths {:.2}", svc.model().kernel().gamma, path.worst_gap(), path.kernel_seconds, path.path_seconds);
}
