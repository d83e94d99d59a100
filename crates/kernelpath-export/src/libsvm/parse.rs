//! A text becomes the parts of a model.

use crate::error::Result;
use crate::libsvm::header::{Header, Kind};
use crate::libsvm::lines::{Line, Lines, shown, wrong};
use kernelpath::Shape;

/// The parts of a file, as they stand there.
pub(crate) struct Parsed {
    pub header: Header,
    /// The coefficients of each vector, vector after vector, and the number of them that a vector has.
    pub coef: (Vec<f64>, usize),
    /// Where vectors begin in `columns` and `values`.
    pub starts: Vec<usize>,
    /// Columns, counted from 0.
    pub columns: Vec<usize>,
    /// Values, none of them 0.
    pub values: Vec<f64>,
    /// The columns of a precomputed kernel, one a vector, counted from 0.
    pub serials: Vec<usize>,
    /// One more than the largest column.
    pub width: usize,
}

/// The largest column that LIBSVM counts to.
const LARGEST_COLUMN: usize = i32::MAX as usize;

/// Reads a file. Memory grows with what is in the text, never with what it says about itself.
pub(crate) fn parsed(text: &[u8]) -> Result<Parsed> {
    let mut lines = Lines::new(text);
    let header = Header::read(&mut lines)?;
    if header.vectors == 0 {
        let problem = "the model has no support vectors, so that it does not say how many columns rows have";
        return wrong(lines.number(), problem);
    }
    let of_vector = if header.kind == Kind::Number { 1 } else { header.labels.len() - 1 };
    let mut parsed = Parsed {
        header,
        coef: (Vec::new(), of_vector),
        starts: vec![0],
        columns: Vec::new(),
        values: Vec::new(),
        serials: Vec::new(),
        width: 1,
    };
    let mut found = 0;
    for line in lines.by_ref() {
        let line = line?;
        if line.name().is_empty() {
            continue;
        }
        found += 1;
        if found > parsed.header.vectors {
            return wrong(line.number, format!("a support vector beyond the {} of total_sv", parsed.header.vectors));
        }
        parsed.read_vector(&line)?;
    }
    if found < parsed.header.vectors {
        let problem = format!("the file ends after {found} of {} support vectors", parsed.header.vectors);
        return wrong(lines.number(), problem);
    }
    Ok(parsed)
}

impl Parsed {
    fn read_vector(&mut self, line: &Line) -> Result<()> {
        let mut words = line.words();
        for _ in 0..self.coef.1 {
            match words.next() {
                Some(word) => self.coef.0.push(line.number(word)?),
                None => return wrong(line.number, format!("fewer than {} coefficients", self.coef.1)),
            }
        }
        if self.header.kernel.shape == Shape::Precomputed {
            return self.read_serial(line, words);
        }
        let mut last = 0;
        for word in words {
            let Some((index, value)) = word.split_once(':') else {
                return wrong(line.number, format!("{} is not of the form index:value", shown(word)));
            };
            let index = line.parsed::<usize>(index, "an index, which is a whole number")?;
            if index == 0 || index > LARGEST_COLUMN {
                return wrong(line.number, format!("the index {index} is not one of 1 to {LARGEST_COLUMN}"));
            }
            if index <= last {
                return wrong(line.number, format!("index {index} does not rise after {last}"));
            }
            last = index;
            let value = line.number(value)?;
            if value != 0.0 {
                self.columns.push(index - 1);
                self.values.push(value);
            }
        }
        self.width = self.width.max(last);
        self.starts.push(self.columns.len());
        Ok(())
    }

    /// The column of a vector in a precomputed kernel: `0:17`.
    fn read_serial<'a>(&mut self, line: &Line, words: impl Iterator<Item = &'a str>) -> Result<()> {
        let mut words = words;
        let serial = words.next().and_then(|word| word.strip_prefix("0:"));
        // LIBSVM writes it as a number with a point, if it likes.
        let serial = serial.and_then(|serial| serial.parse::<f64>().ok()).filter(|serial| serial.fract() == 0.0);
        match serial.filter(|serial| (1.0..=LARGEST_COLUMN as f64).contains(serial)) {
            Some(serial) => {
                self.serials.push(serial as usize - 1);
                self.width = self.width.max(serial as usize);
                self.starts.push(0);
                Ok(())
            }
            None => wrong(line.number, "a vector of a precomputed kernel is 0:i, its column i counted from 1"),
        }
    }
}
