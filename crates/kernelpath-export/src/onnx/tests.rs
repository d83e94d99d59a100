//! Graphs are whole, and what cannot be expressed is refused. Their values are checked in ONNX Runtime, by the tests in
//! Python.

use std::collections::HashSet;

use faer::Mat;
use kernelpath::{
    Arrangement, Attributes, Calibration, CsrBuf, KernelFn, LabelValue, MultiClass, Odds, Outputs, Predictor, RowsBuf,
    SavedModel, Scaling, Shape,
};
use prost::Message;

use crate::error::Error;
use crate::onnx::proto::{GraphProto, ModelProto};
use crate::onnx::{Options, to_onnx};

const SHAPES: [Shape; 8] = [
    Shape::Rbf,
    Shape::Laplacian,
    Shape::Poly { degree: 3, coef0: 1.0 },
    Shape::Linear,
    Shape::Sigmoid { coef0: 0.5 },
    Shape::Matern32,
    Shape::Matern52,
    Shape::Precomputed,
];

fn saved(predictor: Predictor) -> SavedModel {
    SavedModel {
        estimator: "KernelSVC".into(),
        parameters: serde_json::Map::new(),
        columns: None,
        label_type: None,
        encoding: None,
        machines: Vec::new(),
        predictor,
        training: None,
        attributes: Attributes::new(),
    }
}

/// Five vectors of three columns, for any kernel and outputs.
fn model(shape: Shape, outputs: Outputs, functions: usize) -> SavedModel {
    let is_precomputed = shape == Shape::Precomputed;
    let vectors = Mat::from_fn(if is_precomputed { 0 } else { 5 }, 3, |i, j| (3 * i + j) as f64 / 7.0);
    let support = if is_precomputed { vec![0, 2, 3, 5, 6] } else { Vec::new() };
    let (width, coef) = (if is_precomputed { 7 } else { 3 }, Mat::from_fn(5, functions, |i, m| (i + m) as f64 - 2.0));
    let kernel = KernelFn::new(shape, 0.7).unwrap();
    let vectors = (RowsBuf::Dense(vectors), support);
    saved(Predictor::new(kernel, vectors, width, coef, vec![0.25; functions], outputs).unwrap())
}

fn classes(count: usize, multi_class: MultiClass, odds: Option<Odds>) -> (Outputs, usize) {
    let labels = (0..count).map(|label| LabelValue::Whole(label as i128)).collect();
    let arrangement = Arrangement::new(multi_class, count);
    let functions = arrangement.outputs();
    (Outputs::Classes { labels, arrangement, odds }, functions)
}

fn calibrated(maps: usize) -> Odds {
    let points = vec![(-1.0, 0.1), (0.5, 0.5), (2.0, 0.8)];
    let map = |m: usize| match m % 3 {
        0 => Calibration::Sigmoid { slope: 2.0, intercept: 0.1 },
        1 => Calibration::Temperature { slope: 1.5 },
        _ => Calibration::Isotonic { points: points.clone() },
    };
    Odds::Calibrated((0..maps).map(map).collect())
}

fn decoded(model: &SavedModel, is_single: bool) -> ModelProto {
    ModelProto::decode(&to_onnx(model, &Options { is_single }).unwrap()[..]).unwrap()
}

/// Every input of a node is an earlier output, an input or a constant, no name is given twice, and floats have one type.
fn check_graph(graph: &GraphProto, outside: &HashSet<String>, foreign: i32) {
    let mut known = outside.clone();
    let mut name = |text: &str| assert!(known.insert(text.to_string()), "{text:?} is there twice");
    graph.input.iter().for_each(|input| name(input.name()));
    for constant in &graph.initializer {
        name(constant.name());
        assert_ne!(constant.data_type(), foreign);
        let entries: i64 = constant.dims.iter().product();
        let size = if constant.data_type() == 1 { 4 } else { 8 };
        assert_eq!(constant.raw_data().len() as i64, size * entries, "{}", constant.name());
    }
    for node in &graph.node {
        let missing = node.input.iter().find(|input| !known.contains(*input));
        assert_eq!(missing, None, "{:?}", node.name);
        for attribute in &node.attribute {
            if let Some(inner) = &attribute.g {
                check_graph(inner, &known, foreign);
            }
        }
        for output in &node.output {
            assert!(known.insert(output.clone()), "{output:?} is there twice");
        }
    }
    assert!(graph.output.iter().all(|output| known.contains(output.name())));
}

#[test]
fn graphs_are_whole() {
    let mut outputs = vec![
        (Outputs::Numbers { is_one: true, rising: None }, 1),
        (Outputs::Numbers { is_one: false, rising: Some(vec![2, 0, 1]) }, 3),
        classes(2, MultiClass::OneVsOne, Some(Odds::Native)),
    ];
    for multi_class in [MultiClass::OneVsOne, MultiClass::OneVsRest] {
        outputs.push(classes(4, multi_class, None));
        let functions = Arrangement::new(multi_class, 4).outputs();
        outputs.push(classes(4, multi_class, Some(calibrated(functions))));
    }
    for shape in SHAPES {
        for (outputs, functions) in &outputs {
            let mut model = model(shape, outputs.clone(), *functions);
            model.predictor.scaling = Some(Scaling { shift: vec![1.0; 3], factor: vec![2.0; 3] });
            for is_single in [false, true] {
                let proto = decoded(&model, is_single);
                let foreign = if is_single { 11 } else { 1 };
                check_graph(proto.graph.as_ref().unwrap(), &HashSet::new(), foreign);
            }
        }
    }
}

#[test]
fn what_a_graph_cannot_express_is_refused() {
    let refused = |model: &SavedModel, is_single: bool, why: &str| {
        let error = to_onnx(model, &Options { is_single }).unwrap_err();
        assert!(matches!(error, Error::Refused { format: "ONNX", .. }));
        assert!(error.to_string().contains(why), "{error}");
    };
    let (outputs, functions) = classes(11, MultiClass::OneVsOne, Some(calibrated(55)));
    refused(&model(Shape::Rbf, outputs, functions), false, "all pairs of 11 classes");
    let (outputs, functions) = classes(11, MultiClass::OneVsOne, None);
    decoded(&model(Shape::Rbf, outputs, functions), false);

    let (mut outputs, functions) = classes(3, MultiClass::OneVsRest, None);
    let Outputs::Classes { labels, .. } = &mut outputs else { panic!("classes") };
    labels[2] = LabelValue::Text("three".into());
    refused(&model(Shape::Rbf, outputs.clone(), functions), false, "its label \"three\" does not go into one array");
    let Outputs::Classes { labels, .. } = &mut outputs else { panic!("classes") };
    labels[2] = LabelValue::Whole(1 << 63);
    refused(&model(Shape::Rbf, outputs, functions), false, "its label 9223372036854775808");

    let mut large = model(Shape::Rbf, Outputs::Numbers { is_one: true, rising: None }, 1);
    large.predictor.scaling = Some(Scaling { shift: vec![0.0; 3], factor: vec![1e39; 3] });
    refused(&large, true, "single precision");
    decoded(&large, false);
}

#[test]
fn what_takes_more_than_a_file_is_refused_before_it_takes_memory() {
    // Two entries in as many columns as an index can count.
    let width = 1 << 50;
    for shape in [Shape::Rbf, Shape::Laplacian, Shape::Linear, Shape::Poly { degree: 2, coef0: 0.0 }] {
        let vectors = CsrBuf::new(width, vec![0, 1, 2], vec![0, width - 1], vec![1.0, 2.0]).unwrap();
        let (kernel, outputs) = (KernelFn::new(shape, 1.0).unwrap(), Outputs::Numbers { is_one: true, rising: None });
        let parts = (RowsBuf::Csr(vectors), Vec::new());
        let predictor = Predictor::new(kernel, parts, width, Mat::full(2, 1, 1.0), vec![0.0], outputs).unwrap();
        let error = to_onnx(&saved(predictor), &Options::default()).unwrap_err();
        assert!(error.to_string().contains("a file of ONNX holds 2 GiB"), "{error}");
    }
}
