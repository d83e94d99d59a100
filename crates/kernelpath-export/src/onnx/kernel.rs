//! The values of the functions: Σᵢ coef[i, m] k(x, vᵢ) + b_m.

use kernelpath::{Predictor, Rows, Shape};

use crate::error::Result;
use crate::onnx::graph::{Graph, Value};
use crate::onnx::proto::AttributeProto;

/// The values of all functions for the rows of `x`: a matrix with a column for each.
pub(crate) fn values(graph: &mut Graph, x: &Value, predictor: &Predictor) -> Result<Value> {
    let coef = predictor.coef();
    let (vectors, functions) = (coef.nrows(), coef.ncols());
    let (sums, intercepts) = if let Some(plane) = predictor.plane() {
        // ⟨x, w⟩ + b or, with a centre m, ⟨x − m, w⟩ + f(m).
        let axes = [predictor.width(), functions];
        graph.check_room(&axes)?;
        let weights = plane.weights();
        let entries = weights.row_iter().enumerate().flat_map(|(j, row)| {
            let factor = factor(predictor, j);
            row.iter().map(move |weight| weight * factor).collect::<Vec<f64>>()
        });
        let weights = graph.floats("weights", &axes, entries)?;
        let x = centred(graph, x, predictor)?;
        (graph.times(&x, &weights), predictor.centre().map_or(predictor.intercepts(), |centre| &centre.values))
    } else {
        let x = scaled(graph, x, predictor)?;
        let kernel = kernel(graph, &x, predictor)?;
        let entries = coef.row_iter().flat_map(|row| row.iter().copied());
        let coef = graph.floats("coefficients", &[vectors, functions], entries)?;
        (graph.times(&kernel, &coef), predictor.intercepts())
    };
    let intercepts = graph.floats("intercepts", &[functions], intercepts.iter().copied())?;
    Ok(graph.add(&sums, &intercepts))
}

/// x less the centre of a linear kernel, in columns before they are scaled: the weights have the factors of the scaling.
fn centred(graph: &mut Graph, x: &Value, predictor: &Predictor) -> Result<Value> {
    let Some(centre) = predictor.centre() else { return scaled(graph, x, predictor) };
    let shift = |(j, m): (usize, &f64)| match &predictor.scaling {
        None => *m,
        // A column whose factor is 0 has the centre 0.
        Some(scaling) if scaling.factor[j] == 0.0 => scaling.shift[j],
        Some(scaling) => scaling.shift[j] + m / scaling.factor[j],
    };
    let shift = graph.floats("centre", &[centre.point.len()], centre.point.iter().enumerate().map(shift))?;
    Ok(graph.sub(x, &shift))
}

/// Whether the kernel is a function of ⟨x, v⟩. Then what would multiply x, or the product, multiplies v, a constant.
///
/// ONNX Runtime makes a product of matrices and a number beside it one operator, which holds the number in single
/// precision even if all else is in double: no such number may stand there.
fn is_of_products(predictor: &Predictor) -> bool {
    matches!(predictor.kernel().shape, Shape::Linear | Shape::Poly { .. } | Shape::Sigmoid { .. })
}

/// (x − shift) · factor, if the model scales its rows; x − shift if the factors are those of the vectors.
fn scaled(graph: &mut Graph, x: &Value, predictor: &Predictor) -> Result<Value> {
    let Some(scaling) = &predictor.scaling else { return Ok(x.clone()) };
    let shift = graph.floats("scaling_shift", &[scaling.shift.len()], scaling.shift.iter().copied())?;
    let shifted = graph.sub(x, &shift);
    if is_of_products(predictor) {
        return Ok(shifted);
    }
    let factor = graph.floats("scaling_factor", &[scaling.factor.len()], scaling.factor.iter().copied())?;
    Ok(graph.mul(&shifted, &factor))
}

/// What multiplies column `j` of the vectors in a kernel of products.
fn factor(predictor: &Predictor, j: usize) -> f64 {
    predictor.scaling.as_ref().map_or(1.0, |scaling| scaling.factor[j])
}

fn for_each_entry(rows: &Rows, i: usize, mut visit: impl FnMut(usize, f64)) {
    match rows {
        Rows::Csr(sparse) => sparse.row(i).for_each(|(column, value)| visit(column, value)),
        dense => (0..dense.ncols()).for_each(|column| visit(column, dense.entry(i, column).unwrap_or(f64::NAN))),
    }
}

/// The kernel between the rows of `x` and the vectors.
fn kernel(graph: &mut Graph, x: &Value, predictor: &Predictor) -> Result<Value> {
    let kernel = predictor.kernel();
    let (gamma, vectors) = (kernel.gamma, predictor.vectors());
    Ok(match kernel.shape {
        Shape::Precomputed => {
            let columns: Vec<i64> = predictor.support().iter().map(|column| *column as i64).collect();
            let columns = graph.integers("columns", &columns);
            graph.take(x, &columns, 1)
        }
        Shape::Linear => products(graph, x, predictor, 1.0)?,
        Shape::Poly { degree, coef0 } => {
            let inner = line_of_products(graph, x, predictor, coef0)?;
            let degree = graph.number("degree", f64::from(degree))?;
            graph.apply("Pow", &[&inner, &degree])
        }
        Shape::Sigmoid { coef0 } => {
            let inner = line_of_products(graph, x, predictor, coef0)?;
            graph.apply("Tanh", &[&inner])
        }
        Shape::Rbf => {
            let distances = squared_distances(graph, x, &vectors)?;
            exp_of_multiple(graph, &distances, -gamma)?
        }
        Shape::Laplacian => {
            let distances = absolute_distances(graph, x, &vectors)?;
            exp_of_multiple(graph, &distances, -gamma)?
        }
        Shape::Matern32 => {
            let a = scaled_distances(graph, x, &vectors, (6.0 * gamma).sqrt())?;
            let one = graph.number("one", 1.0)?;
            let factor = graph.add(&one, &a);
            let decay = exp_of_multiple(graph, &a, -1.0)?;
            graph.mul(&factor, &decay)
        }
        Shape::Matern52 => {
            let a = scaled_distances(graph, x, &vectors, (10.0 * gamma).sqrt())?;
            let (one, three) = (graph.number("one", 1.0)?, graph.number("three", 3.0)?);
            let square = graph.mul(&a, &a);
            let third = graph.div(&square, &three);
            let factor = graph.add(&one, &a);
            let factor = graph.add(&factor, &third);
            let decay = exp_of_multiple(graph, &a, -1.0)?;
            graph.mul(&factor, &decay)
        }
    })
}

/// γ⟨x, v⟩.
fn products(graph: &mut Graph, x: &Value, predictor: &Predictor, gamma: f64) -> Result<Value> {
    let columns = transposed(graph, &predictor.vectors(), |j, value| gamma * factor(predictor, j) * value)?;
    Ok(graph.times(x, &columns))
}

/// γ⟨x, v⟩ + c.
fn line_of_products(graph: &mut Graph, x: &Value, predictor: &Predictor, coef0: f64) -> Result<Value> {
    let products = products(graph, x, predictor, predictor.kernel().gamma)?;
    let coef0 = graph.number("coef0", coef0)?;
    Ok(graph.add(&products, &coef0))
}

/// exp(factor · values).
fn exp_of_multiple(graph: &mut Graph, values: &Value, factor: f64) -> Result<Value> {
    let factor = graph.number("factor", factor)?;
    let multiple = graph.mul(values, &factor);
    Ok(graph.apply("Exp", &[&multiple]))
}

/// factor · ‖x − v‖.
fn scaled_distances(graph: &mut Graph, x: &Value, vectors: &Rows, factor: f64) -> Result<Value> {
    let squares = squared_distances(graph, x, vectors)?;
    let distances = graph.apply("Sqrt", &[&squares]);
    let factor = graph.number("factor", factor)?;
    Ok(graph.mul(&distances, &factor))
}

/// The vectors as columns of a matrix, each entry turned by `of` its column.
fn transposed(graph: &mut Graph, vectors: &Rows, of: impl Fn(usize, f64) -> f64) -> Result<Value> {
    let (rows, columns) = (vectors.nrows(), vectors.ncols());
    let entries = (0..columns).flat_map(|j| (0..rows).map(move |i| (i, j)));
    graph.floats("vectors", &[columns, rows], entries.map(|(i, j)| of(j, vectors.entry(i, j).unwrap_or(f64::NAN))))
}

/// ‖x − v‖² = ‖x‖² − 2⟨x, v⟩ + ‖v‖², not below 0. Rows and vectors are first shifted by the mean of the vectors, which
/// leaves distances as they are and saves their digits.
fn squared_distances(graph: &mut Graph, x: &Value, vectors: &Rows) -> Result<Value> {
    let (rows, columns) = (vectors.nrows(), vectors.ncols());
    graph.check_room(&[columns, rows])?;
    let mut mean = vec![0.0; columns];
    for i in 0..rows {
        for_each_entry(vectors, i, |column, value| mean[column] += value / rows as f64);
    }
    if graph.is_single() {
        // What is subtracted from the vectors is what the graph subtracts from rows.
        for mean in &mut mean {
            *mean = f64::from(*mean as f32);
        }
    }
    let shift = graph.floats("mean", &[columns], mean.iter().copied())?;
    let x = graph.sub(x, &shift);
    let keep = vec![AttributeProto::ints("axes", &[1]), AttributeProto::int("keepdims", 1)];
    let of_x = graph.apply_with("ReduceSumSquare", &[&x], keep);
    let is_single = graph.is_single();
    // What the graph multiplies is what is squared here.
    let shifted = |j: usize, value: f64| {
        let shifted = value - mean[j];
        if is_single { f64::from(shifted as f32) } else { shifted }
    };
    let negative = transposed(graph, vectors, |j, value| -2.0 * shifted(j, value))?;
    let products = graph.times(&x, &negative);
    let of_vector = |i: usize| (0..columns).map(|j| shifted(j, vectors.entry(i, j).unwrap_or(f64::NAN)).powi(2)).sum();
    let of_vectors = graph.floats("squares", &[1, rows], (0..rows).map(of_vector))?;
    let sum = graph.add(&of_x, &products);
    let sum = graph.add(&sum, &of_vectors);
    let zero = graph.number("zero", 0.0)?;
    Ok(graph.apply("Max", &[&sum, &zero]))
}

/// ‖x − v‖₁, column after column, so that no more than one value for each row and vector is in memory.
fn absolute_distances(graph: &mut Graph, x: &Value, vectors: &Rows) -> Result<Value> {
    let (rows, columns) = (vectors.nrows(), vectors.ncols());
    let entries = (0..columns).flat_map(|j| (0..rows).map(move |i| (i, j)));
    let by_column =
        graph.floats("vectors", &[columns, rows], entries.map(|(i, j)| vectors.entry(i, j).unwrap_or(f64::NAN)))?;
    let shape = graph.apply("Shape", &[x]);
    let first = graph.integers("first", &[0]);
    let of_x = graph.take(&shape, &first, 0);
    let of_vectors = graph.integers("vectors_count", &[rows as i64]);
    let shape = graph.apply_with("Concat", &[&of_x, &of_vectors], vec![AttributeProto::int("axis", 0)]);
    let zero = graph.number("zero", 0.0)?;
    let start = graph.apply("Expand", &[&zero, &shape]);

    let mut body = Graph::new("add_a_column", "body_", graph.is_single());
    let sums = body.input("sums", &[None, Some(rows)], "");
    let x_column = body.input("x_column", &[None], "");
    let v_column = body.input("v_column", &[Some(rows)], "");
    let x_column = body.with_axis(&x_column, 1);
    let difference = body.sub(&x_column, &v_column);
    let size = body.apply("Abs", &[&difference]);
    let next = body.add(&sums, &size);
    let float = body.float();
    body.output(&next, "next_sums", float, &[None, Some(rows)], "");
    let attributes = vec![
        AttributeProto::graph("body", body.finish()),
        AttributeProto::int("num_scan_inputs", 2),
        AttributeProto::ints("scan_input_axes", &[1, 0]),
    ];
    Ok(graph.apply_with("Scan", &[&start, x, &by_column], attributes))
}
