//! Fitted models of every kind, with rows and what is true of them.

use kernelpath::{
    Bandwidth, Classifier, Control, Folds, Kernel, KernelFn, LabelValue, LowRank, Method, MultiClass, Quantiles,
    Regressor, Rows, SavedModel, Selection, Shape, Targets, Tune, kernel_matrix,
};

/// A model, the rows it was trained on, and other rows, both with `width` columns.
pub struct Case {
    pub name: &'static str,
    pub model: SavedModel,
    pub width: usize,
    pub trained: Data,
    pub new: Data,
}

/// Rows, and what is true of them.
#[derive(Clone)]
pub struct Data {
    pub x: Vec<f64>,
    pub labels: Option<Vec<LabelValue>>,
    pub numbers: Vec<f64>,
}

/// Points on rings that overlap a little: `classes` classes one after the other.
pub fn rings(n: usize, classes: usize, shift: f64) -> Vec<f64> {
    let row = |i: usize| {
        let (t, class) = (i as f64 + shift, i % classes);
        let radius = 1.0 + class as f64 + 0.8 * (7.0 * t).sin();
        [radius * (0.37 * t).cos(), radius * (0.37 * t).sin()]
    };
    (0..n).flat_map(row).collect()
}

fn label_of(i: usize, classes: usize) -> LabelValue {
    LabelValue::Text(["inner <script>alert(1)</script>", "middle & \"co\"", "outer 'ring'"][i % classes].into())
}

fn labelled(n: usize, classes: usize, shift: f64) -> Data {
    let labels = (0..n).map(|i| label_of(i, classes)).collect();
    Data { x: rings(n, classes, shift), labels: Some(labels), numbers: Vec::new() }
}

fn wave(n: usize, outputs: usize, shift: f64) -> Data {
    let x = rings(n, 3, shift);
    let target = |(i, row): (usize, &[f64])| {
        let y = row[0].sin() + 0.3 * row[1] + 0.3 * (11.0 * i as f64).sin();
        (0..outputs).map(move |k| y * (1.0 + k as f64)).collect::<Vec<_>>()
    };
    let numbers = x.chunks_exact(2).enumerate().flat_map(target).collect();
    Data { x, labels: None, numbers }
}

/// Classifiers of every kind.
pub fn classifiers() -> Vec<Case> {
    let kinds: Vec<(&'static str, usize, Classifier)> = vec![
        ("binary", 2, Classifier::svm().probability(Method::Sigmoid)),
        ("isotonic", 2, Classifier::squared_svm().probability(Method::Isotonic).selection(Selection::OneStandardError)),
        ("temperature", 2, Classifier::dwd().probability(Method::Temperature)),
        ("logistic", 2, Classifier::logistic()),
        ("one against one", 3, Classifier::svm().probability(Method::Sigmoid)),
        ("one against the rest", 3, Classifier::svm().multi_class(MultiClass::OneVsRest).tune(Tune::Each)),
        ("multinomial", 3, Classifier::multinomial()),
        ("grid", 3, Classifier::svm().gammas([0.1, 0.3, 1.0, 3.0])),
        ("grid of machines", 3, Classifier::svm().gammas([0.3, 1.0]).tune(Tune::Each)),
        ("linear", 2, Classifier::svm().kernel(Kernel::linear())),
        ("low rank", 2, Classifier::logistic().low_rank(LowRank::k_means(15))),
        ("landmarks that are rows", 2, Classifier::svm().low_rank(LowRank::rp_cholesky(15))),
        ("one fold", 2, Classifier::svm().leave_one_out()),
        ("indefinite", 2, {
            let shape = Shape::Sigmoid { coef0: -1.0 };
            Classifier::svm().kernel(Kernel { shape, bandwidth: Bandwidth::Value(0.5) })
        }),
        ("too few steps", 2, Classifier::svm().max_iter(1).tol(1e-13)),
    ];
    let mut cases: Vec<Case> =
        kinds.into_iter().map(|(name, classes, builder)| classified(name, classes, &builder)).collect();
    let builder = Classifier::svm().cs([1.0]).folds(Folds::None);
    cases.push(fitted("no folds", &builder, (labelled(90, 2, 0.0), labelled(60, 2, 0.5)), 2));
    cases.push(precomputed());
    cases
}

fn classified(name: &'static str, classes: usize, builder: &Classifier) -> Case {
    let builder = if name == "one fold" { builder.clone() } else { builder.clone().cv(3) };
    let data = (labelled(90, classes, 0.0), labelled(60, classes, 0.5));
    fitted(name, &builder.cs([0.01, 0.1, 1.0, 10.0, 100.0]), data, 2)
}

fn fitted(name: &'static str, builder: &Classifier, data: (Data, Data), width: usize) -> Case {
    let (trained, new) = data;
    let texts: Vec<String> = trained.labels.iter().flatten().map(text).collect();
    let model = builder.fit(Rows::from_slice(&trained.x, width).unwrap(), &texts).unwrap().saved();
    Case { name, model, width, trained, new }
}

fn text(value: &LabelValue) -> String {
    if let LabelValue::Text(text) = value { text.clone() } else { panic!("labels here are texts") }
}

fn precomputed() -> Case {
    let (trained, new) = (labelled(90, 2, 0.0), labelled(60, 2, 0.5));
    let kernel = KernelFn { shape: Shape::Rbf, gamma: 1.0 };
    let (a, b) = (Rows::from_slice(&trained.x, 2).unwrap(), Rows::from_slice(&new.x, 2).unwrap());
    let matrix = |x: Rows| kernel_matrix(&x, &a, &kernel, 1, &Control::default()).unwrap();
    let trained = Data { x: matrix(a), ..trained.clone() };
    let new = Data { x: matrix(b), ..new.clone() };
    let builder = Classifier::svm().kernel(Kernel { shape: Shape::Precomputed, bandwidth: Bandwidth::Scale }).cv(3);
    fitted("precomputed", &builder.cs([0.1, 1.0, 10.0]), (trained, new), 90)
}

/// Regressors of every kind, and quantiles.
pub fn regressors() -> Vec<Case> {
    let mut cases = Vec::new();
    let kinds = [
        ("svr", 1, Regressor::svr(0.05)),
        ("ridge", 1, Regressor::ridge()),
        ("huber", 2, Regressor::huber(0.3)),
        ("expectile", 2, Regressor::expectile(0.8).tune(Tune::Each)),
        ("targets and a grid", 2, Regressor::ridge().gammas([0.3, 1.0])),
    ];
    for (name, outputs, builder) in kinds {
        let (trained, new) = (wave(80, outputs, 0.0), wave(60, outputs, 0.5));
        let rows = Rows::from_slice(&trained.x, 2).unwrap();
        let builder = builder.n_cs(6).cv(3);
        let model = if outputs == 1 {
            builder.fit(rows, &trained.numbers).unwrap()
        } else {
            let columns = faer::MatRef::from_row_major_slice(&trained.numbers, 80, outputs);
            builder.fit(rows, Targets::Columns(columns)).unwrap()
        };
        cases.push(Case { name, model: model.saved(), width: 2, trained, new });
    }
    for (name, taus) in [("median", vec![0.5]), ("quantiles", vec![0.9, 0.1, 0.5])] {
        let (trained, new) = (wave(80, 1, 0.0), wave(60, 1, 0.5));
        let rows = Rows::from_slice(&trained.x, 2).unwrap();
        let builder = Quantiles::at(taus).n_cs(6).cv(3);
        let builder = if name == "quantiles" { builder.noncrossing() } else { builder };
        let model = builder.fit(rows, &trained.numbers).unwrap().saved();
        cases.push(Case { name, model, width: 2, trained, new });
    }
    cases
}
