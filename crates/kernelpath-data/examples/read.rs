//! Reads a file as often as asked, and prints what is in it and how long the fastest reading took.
//!
//! ```sh
//! cargo run --release -p kernelpath-data --example read -- data.libsvm 3
//! ```

use std::process::ExitCode;
use std::time::Instant;

use kernelpath_data::{Column, Control, CsvOptions, Options, TableRows, read};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(path) = arguments.first() else {
        eprintln!("usage: read FILE [TIMES]");
        return ExitCode::from(2);
    };
    let times = arguments.get(1).and_then(|times| times.parse().ok()).unwrap_or(1);
    let csv = CsvOptions { label: Some(Column::Place(-1)), ..CsvOptions::default() };
    let options = Options { csv, ..Options::default() };
    let mut fastest = f64::INFINITY;
    for _ in 0..times {
        let started = Instant::now();
        let table = match read(path.as_str(), &options, &Control::default()) {
            Ok(table) => table,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        };
        let seconds = started.elapsed().as_secs_f64();
        if seconds < fastest {
            let stored = match &table.rows {
                TableRows::Dense { values, .. } | TableRows::Sparse { values, .. } => values.len(),
            };
            println!("{seconds:.4} s: {} rows, {} columns, {stored} numbers", table.rows.nrows(), table.rows.ncols());
            fastest = seconds;
        }
    }
    println!("{fastest}");
    ExitCode::SUCCESS
}
