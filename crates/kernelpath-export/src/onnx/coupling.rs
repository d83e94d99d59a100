//! Probabilities of classes that fit those of pairs best.
//!
//! ```text
//! p ∝ Q⁻¹ 1     Q_ii = Σ_k r_ki² + ε     Q_ij = −r_ij r_ji     r_ij = P(i against j)
//! ```
//!
//! (Wu, Lin and Weng 2004; `kernelpath::Odds` has the derivation). Where the pairs agree with each other, Q is singular
//! but for ε. The graph solves (Q + 11ᵀ) p = 1 instead, whose solution is a multiple of Q⁻¹1 by the formula of Sherman and
//! Morrison, and whose matrix is far from singular: elimination needs no pivots, and single precision is enough.

use crate::error::Result;
use crate::onnx::graph::{Graph, Value, refused};
use crate::onnx::proto::AttributeProto;

/// Most classes whose equations are written out, as the steps of elimination are.
const MOST_CLASSES: usize = 10;

/// ε, as in the library.
const COUPLING_RIDGE: f64 = 1e-12;

/// Probabilities of pairs are kept this far from 0 and 1, as in the library.
const LEAST_PAIRWISE: f64 = 1e-7;

/// Shares of the classes, none below 0, that are to be divided by their sum.
pub(crate) fn coupled(graph: &mut Graph, pairwise: &Value, pairs: &[(usize, usize)], classes: usize) -> Result<Value> {
    if classes > MOST_CLASSES {
        return refused(format!(
            "it couples the probabilities of all pairs of {classes} classes, and the equations are written out for at \
             most {MOST_CLASSES}; fit without probability=, or with multi_class=\"ovr\""
        ));
    }
    let won = won(graph, pairwise, pairs, classes)?;
    let system = system(graph, &won, classes)?;
    let solution = eliminated(graph, system, classes)?;
    let zero = graph.number("zero", 0.0)?;
    Ok(graph.apply("Max", &[&solution, &zero]))
}

/// r_ij at [row, i, j]; 0 where i = j.
fn won(graph: &mut Graph, pairwise: &Value, pairs: &[(usize, usize)], classes: usize) -> Result<Value> {
    let least = graph.number("least", LEAST_PAIRWISE)?;
    let most = graph.number("most", 1.0 - LEAST_PAIRWISE)?;
    let inner = graph.apply("Clip", &[pairwise, &least, &most]);
    // r_ij = r and r_ji = 1 − r.
    let places = classes * classes;
    let sign = |&(i, j): &(usize, usize), place: usize| {
        f64::from(i8::from(place == i * classes + j)) - f64::from(i8::from(place == j * classes + i))
    };
    let entries = pairs.iter().flat_map(|pair| (0..places).map(move |place| sign(pair, place)));
    let signs = graph.floats("pair_signs", &[pairs.len(), places], entries)?;
    let is_second = |place: usize| pairs.iter().any(|&(i, j)| place == j * classes + i);
    let ones = graph.floats("pair_ones", &[places], (0..places).map(|place| f64::from(u8::from(is_second(place)))))?;
    let won = graph.times(&inner, &signs);
    let won = graph.add(&won, &ones);
    let shape = graph.integers("square", &[0, classes as i64, classes as i64]);
    Ok(graph.apply("Reshape", &[&won, &shape]))
}

/// Q + 11ᵀ, with a last column of ones.
fn system(graph: &mut Graph, won: &Value, classes: usize) -> Result<Value> {
    let diagonal: Vec<f64> = (0..classes * classes).map(|k| f64::from(u8::from(k / classes == k % classes))).collect();
    let identity = graph.floats("identity", &[classes, classes], diagonal.into_iter())?;
    let ridge = graph.number("ridge", COUPLING_RIDGE)?;
    let one = graph.number("one", 1.0)?;
    let axes = vec![AttributeProto::ints("perm", &[0, 2, 1])];
    let lost = graph.apply_with("Transpose", &[won], axes);
    let products = graph.mul(won, &lost);
    let keep = vec![AttributeProto::ints("axes", &[2]), AttributeProto::int("keepdims", 1)];
    // Over k of r_ki.
    let squares = graph.apply_with("ReduceSumSquare", &[&lost], keep);
    let squares = graph.add(&squares, &ridge);
    let squares = graph.mul(&squares, &identity);
    let q = graph.sub(&squares, &products);
    let matrix = graph.add(&q, &one);
    let first = graph.integers("first", &[0]);
    let column = graph.take(&matrix, &first, 2);
    let nothing = graph.sub(&column, &column);
    let ones = graph.add(&nothing, &one);
    Ok(graph.apply_with("Concat", &[&matrix, &ones], vec![AttributeProto::int("axis", 2)]))
}

/// Gauss and Jordan: step k takes a multiple of row k from all other rows, so that column k has one entry left.
fn eliminated(graph: &mut Graph, system: Value, classes: usize) -> Result<Value> {
    let mut system = system;
    for k in 0..classes {
        let place = graph.integers("step", &[k as i64]);
        let others = graph.floats("others", &[classes, 1], (0..classes).map(|i| f64::from(u8::from(i != k))))?;
        let row = graph.take(&system, &place, 1);
        let pivot = graph.take(&row, &place, 2);
        let row = graph.div(&row, &pivot);
        let column = graph.take(&system, &place, 2);
        let column = graph.mul(&column, &others);
        let taken = graph.mul(&column, &row);
        system = graph.sub(&system, &taken);
    }
    let (mut diagonal, mut right) = (Vec::new(), graph.integers("last", &[classes as i64]));
    for k in 0..classes {
        let place = graph.integers("step", &[k as i64]);
        let row = graph.take(&system, &place, 1);
        let entry = graph.take(&row, &place, 2);
        diagonal.push(graph.without_axis(&entry, 2));
    }
    right = graph.take(&system, &right, 2);
    let right = graph.without_axis(&right, 2);
    let diagonal = graph.beside(&diagonal);
    Ok(graph.div(&right, &diagonal))
}
