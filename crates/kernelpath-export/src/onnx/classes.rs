//! From the values of the machines to a class: decision values and predictions.

use kernelpath::Arrangement;

use crate::error::Result;
use crate::onnx::graph::{Graph, Value, refused};
use crate::onnx::proto::{AttributeProto, Element};

/// What a user compares: for two classes the value of each row, else a matrix with a column for each class.
pub(crate) fn decision(graph: &mut Graph, values: &Value, arrangement: &Arrangement) -> Result<Value> {
    match arrangement {
        Arrangement::Two => Ok(graph.without_axis(values, 1)),
        Arrangement::Pairs { pairs, classes } => votes(graph, values, pairs, *classes),
        Arrangement::Rest { .. } | Arrangement::Together { .. } => Ok(values.clone()),
        _ => refused("its machines are arranged in a way that this version does not know; install a newer one"),
    }
}

/// The place of the class of each row; of equal decision values, the first.
pub(crate) fn predicted(graph: &mut Graph, decision: &Value, arrangement: &Arrangement) -> Result<Value> {
    if *arrangement == Arrangement::Two {
        let zero = graph.number("zero", 0.0)?;
        let is_second = graph.apply("Greater", &[decision, &zero]);
        return Ok(graph.cast(&is_second, Element::Int64));
    }
    let attributes = vec![
        AttributeProto::int("axis", 1),
        AttributeProto::int("keepdims", 0),
        AttributeProto::int("select_last_index", 0),
    ];
    Ok(graph.apply_with("ArgMax", &[decision], attributes))
}

/// The number of machines that vote for a class, plus s / (3 (|s| + 1)), s being the sum of its machines' values for it.
///
/// With T[m, c] = 1 for the first class of machine m and −1 for the second, s = f T. With w = 1 where f > 0 and else 0,
/// the votes are w T, plus one for each machine of which c is the second class.
fn votes(graph: &mut Graph, values: &Value, pairs: &[(usize, usize)], classes: usize) -> Result<Value> {
    let sign = |(first, second): (usize, usize), class: usize| {
        f64::from(i8::from(class == first)) - f64::from(i8::from(class == second))
    };
    let entries = pairs.iter().flat_map(|pair| (0..classes).map(move |class| sign(*pair, class)));
    let turns = graph.floats("signs", &[pairs.len(), classes], entries)?;
    let second = |class: usize| pairs.iter().filter(|pair| pair.1 == class).count() as f64;
    let second = graph.floats("times_second", &[classes], (0..classes).map(second))?;
    let (zero, one, three) = (graph.number("zero", 0.0)?, graph.number("one", 1.0)?, graph.number("three", 3.0)?);

    let is_first = graph.apply("Greater", &[values, &zero]);
    let float = graph.float();
    let is_first = graph.cast(&is_first, float);
    let count = graph.times(&is_first, &turns);
    let count = graph.add(&count, &second);

    let sum = graph.times(values, &turns);
    let size = graph.apply("Abs", &[&sum]);
    let size = graph.add(&size, &one);
    let size = graph.mul(&size, &three);
    let squeezed = graph.div(&sum, &size);
    Ok(graph.add(&count, &squeezed))
}
