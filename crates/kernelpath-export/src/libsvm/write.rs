//! The text of a model file.

use kernelpath::{Rows, Shape};

use crate::libsvm::expressible::{Form, Meaning};
use crate::libsvm::number::push_number;
use crate::libsvm::placement::{Placed, placements};

impl Form<'_> {
    /// The text of the file.
    pub fn written(&self) -> String {
        let (mut lines, classes) = match &self.meaning {
            Meaning::Classes { labels, .. } => (placements(self.predictor.coef(), labels.len()), labels.len()),
            Meaning::Number => (self.lines_of_numbers(), 2),
        };
        // Who reads the file takes the last column of its vectors for the last column of rows.
        if self.columns_of(&lines) < self.predictor.width() {
            lines.insert(0, Placed { vector: None, class: 0, coef: vec![0.0; classes - 1] });
        }
        let mut out = String::new();
        self.write_header(&mut out, &lines, classes);
        out.push_str("SV\n");
        for line in &lines {
            for coef in &line.coef {
                push_number(&mut out, *coef);
                out.push(' ');
            }
            self.write_vector(&mut out, line.vector);
            out.push('\n');
        }
        out
    }

    fn lines_of_numbers(&self) -> Vec<Placed> {
        let coef = self.predictor.coef();
        let line = |vector| Placed { vector: Some(vector), class: 0, coef: vec![coef[(vector, 0)]] };
        (0..coef.nrows()).map(line).filter(|line| line.coef[0] != 0.0).collect()
    }

    fn write_header(&self, out: &mut String, lines: &[Placed], classes: usize) {
        let mut line = |name: &str, values: &mut dyn Iterator<Item = String>| {
            out.push_str(name);
            for value in values {
                out.push(' ');
                out.push_str(&value);
            }
            out.push('\n');
        };
        let one = |value: &str| std::iter::once(value.to_string());
        let number = |value: f64| {
            let mut out = String::new();
            push_number(&mut out, value);
            out
        };
        let is_number = matches!(self.meaning, Meaning::Number);
        line("svm_type", &mut one(if is_number { "epsilon_svr" } else { "c_svc" }));
        let kernel = self.predictor.kernel();
        let (name, degree, coef0) = match kernel.shape {
            Shape::Poly { degree, coef0 } => ("polynomial", Some(degree), Some(coef0)),
            Shape::Sigmoid { coef0 } => ("sigmoid", None, Some(coef0)),
            // The names of the others are the same.
            other => (other.name(), None, None),
        };
        line("kernel_type", &mut one(name));
        if let Some(degree) = degree {
            line("degree", &mut one(&degree.to_string()));
        }
        if kernel.shape.uses_gamma() {
            line("gamma", &mut one(&number(kernel.gamma)));
        }
        if let Some(coef0) = coef0 {
            line("coef0", &mut one(&number(coef0)));
        }
        line("nr_class", &mut one(&classes.to_string()));
        line("total_sv", &mut one(&lines.len().to_string()));
        line("rho", &mut self.intercepts().into_iter().map(|b| number(0.0 - b)));
        if let Meaning::Classes { labels, sigmoids } = &self.meaning {
            line("label", &mut labels.iter().map(ToString::to_string));
            if let Some(sigmoids) = sigmoids {
                line("probA", &mut sigmoids.iter().map(|(a, _)| number(*a)));
                line("probB", &mut sigmoids.iter().map(|(_, b)| number(*b)));
            }
            let count = |class| lines.iter().filter(|line| line.class == class).count();
            line("nr_sv", &mut (0..classes).map(|class| count(class).to_string()));
        }
    }

    /// b of each function Σᵢ cᵢ k(vᵢ, x) + b. LIBSVM has no centre of rows: there, b is such that the function is right at the
    /// centre, whatever Σc misses of 0.
    fn intercepts(&self) -> Vec<f64> {
        let (predictor, coef) = (self.predictor, self.predictor.coef());
        let Some(centre) = predictor.centre() else { return predictor.intercepts().to_vec() };
        let mut intercepts = centre.values.clone();
        for vector in 0..coef.nrows() {
            let mut product = 0.0;
            self.for_each_entry(vector, |column, value| product += centre.point[column] * value);
            intercepts.iter_mut().enumerate().for_each(|(m, b)| *b -= coef[(vector, m)] * product);
        }
        intercepts
    }

    /// The entries of a vector that are not 0, columns counted from 1; of a precomputed kernel its column, as entry 0.
    fn write_vector(&self, out: &mut String, vector: Option<usize>) {
        let mut entry = |column: usize, value: f64| {
            out.push_str(&column.to_string());
            out.push(':');
            push_number(out, value);
            out.push(' ');
        };
        let width = self.predictor.width();
        match vector {
            _ if self.predictor.kernel().shape == Shape::Precomputed => {
                entry(0, vector.map_or(width, |vector| self.predictor.support()[vector] + 1) as f64);
            }
            None => entry(width, 0.0),
            Some(vector) => self.for_each_entry(vector, |column, value| entry(column + 1, value)),
        }
    }

    fn for_each_entry(&self, vector: usize, mut visit: impl FnMut(usize, f64)) {
        match self.predictor.vectors() {
            Rows::Csr(sparse) => {
                sparse.row(vector).filter(|(_, value)| *value != 0.0).for_each(|(column, value)| visit(column, value));
            }
            dense => {
                let row = (0..dense.ncols()).map(|column| (column, dense.entry(vector, column).unwrap_or(f64::NAN)));
                row.filter(|(_, value)| *value != 0.0).for_each(|(column, value)| visit(column, value));
            }
        }
    }

    /// The columns that rows have by what these lines say.
    fn columns_of(&self, lines: &[Placed]) -> usize {
        let mut columns = 0;
        for vector in lines.iter().filter_map(|line| line.vector) {
            if self.predictor.kernel().shape == Shape::Precomputed {
                columns = columns.max(self.predictor.support()[vector] + 1);
            } else {
                self.for_each_entry(vector, |column, _| columns = columns.max(column + 1));
            }
        }
        columns
    }
}
