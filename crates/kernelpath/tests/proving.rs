//! A model by itself is proved anew from the rows of its fit, a forged one is found out, and other rows give no verdict.

use faer::Mat;
use kernelpath::{
    Bandwidth, Classifier, Control, CsrBuf, Kernel, KernelFn, Label, LabelValue, LowRank, MultiClass, Predictor,
    Quantiles, Recomputed, Regressor, Rows, RowsBuf, SavedModel, Scaling, Shape, Targets, TrainingRows, Truth,
    Verification, kernel_matrix,
};

const N: usize = 60;

fn points() -> Vec<f64> {
    (0..2 * N).map(|i| (0.7 * i as f64).sin() + (i / 2 % 3) as f64).collect()
}

fn classes(x: &[f64], count: usize) -> Vec<LabelValue> {
    let of = |(i, row): (usize, &[f64])| {
        let noise = usize::from(i % 11 == 0);
        ((row[0] + row[1]).max(0.0) as usize / 2 + noise) % count
    };
    x.chunks_exact(2).enumerate().map(of).map(|class| ["ham", "spam", "eggs"][class].value()).collect()
}

fn wave(x: &[f64]) -> Vec<f64> {
    x.chunks_exact(2).enumerate().map(|(i, row)| row[0].sin() + 0.2 * row[1] + 0.1 * (3.0 * i as f64).cos()).collect()
}

fn weights() -> Vec<f64> {
    (0..N).map(|i| (i % 4) as f64).collect()
}

/// A model, its rows, what is true of them, and its weights.
struct Case {
    name: &'static str,
    model: SavedModel,
    x: RowsBuf,
    labels: Option<Vec<LabelValue>>,
    numbers: Vec<f64>,
    columns: usize,
    weights: Option<Vec<f64>>,
}

impl Case {
    fn truth(&self) -> Truth<'_> {
        match &self.labels {
            Some(labels) => Truth::Labels(labels),
            None => Truth::Numbers { columns: self.columns, values: &self.numbers },
        }
    }

    fn verify(&self, model: &SavedModel) -> Verification {
        let weights = self.weights.as_deref();
        model.verify(self.x.view(), self.truth(), weights, None, 1, &Control::default()).unwrap()
    }
}

fn recomputed(found: Verification) -> Recomputed {
    match found {
        Verification::Recomputed(proof) => proof,
        other => panic!("{other:?}"),
    }
}

fn cases() -> Vec<Case> {
    let x = points();
    let rows = Rows::from_slice(&x, 2).unwrap();
    let mut cases = Vec::new();
    let classifiers: Vec<(&'static str, usize, Classifier, bool)> = vec![
        ("two classes", 2, Classifier::svm(), false),
        ("several γ", 2, Classifier::logistic().gammas([0.2, 1.0]), false),
        ("weights of rows", 2, Classifier::svm(), true),
        ("balanced", 2, Classifier::squared_svm().balanced(), true),
        ("class weights", 3, Classifier::svm().class_weight("spam", 4.0).class_weight("eggs", 0.5), true),
        ("one against one", 3, Classifier::dwd(), false),
        ("one against the rest", 3, Classifier::svm().multi_class(MultiClass::OneVsRest), true),
        ("multinomial", 3, Classifier::multinomial(), true),
        ("linear", 2, Classifier::svm().kernel(Kernel::linear()), false),
        ("landmarks", 2, Classifier::logistic().low_rank(LowRank::k_means(20)), true),
        ("landmarks that are rows", 3, Classifier::svm().low_rank(LowRank::uniform(25)), false),
    ];
    for (name, count, builder, is_weighted) in classifiers {
        let labels = classes(&x, count);
        let weights = is_weighted.then(weights);
        let mut builder = builder.cs([0.3, 3.0]).cv(2);
        if let Some(weights) = &weights {
            builder = builder.weights(weights.clone());
        }
        let model = builder.fit(rows, &labels).unwrap().saved();
        let (x, numbers) = (RowsBuf::copy_of(&rows), Vec::new());
        cases.push(Case { name, model, x, labels: Some(labels), numbers, columns: 1, weights });
    }
    let y = wave(&x);
    let both = Mat::from_fn(N, 2, |i, j| if j == 0 { y[i] } else { 100.0 - 7.0 * y[i] * y[i] });
    let numbers: Vec<f64> = (0..2 * N).map(|at| both[(at / 2, at % 2)]).collect();
    let regressors: Vec<(&'static str, SavedModel, Vec<f64>, usize)> = vec![
        ("quantiles", Quantiles::at([0.9, 0.1]).n_cs(3).cv(2).fit(rows, &y).unwrap().saved(), y.clone(), 1),
        ("svr", Regressor::svr(kernelpath::Extent::Auto).n_cs(3).cv(2).fit(rows, &y).unwrap().saved(), y.clone(), 1),
        (
            "ridge of targets",
            { Regressor::ridge().n_cs(3).cv(2).fit(rows, Targets::from(&both)).unwrap().saved() },
            numbers.clone(),
            2,
        ),
        (
            "svr of targets",
            { Regressor::svr(0.05).n_cs(3).cv(2).fit(rows, Targets::from(&both)).unwrap().saved() },
            numbers,
            2,
        ),
    ];
    for (name, model, numbers, columns) in regressors {
        cases.push(Case { name, model, x: RowsBuf::copy_of(&rows), labels: None, numbers, columns, weights: None });
    }

    // Sparse rows, a matrix of kernel values, and rows that the model scales.
    let stored: Vec<(usize, usize, f64)> = (0..N).map(|i| (i, [1, 700][i % 2], 1.0 + (i as f64).sin())).collect();
    let (columns, values) = (stored.iter().map(|s| s.1).collect(), stored.iter().map(|s| s.2).collect());
    let sparse = CsrBuf::new(1000, (0..=N).collect(), columns, values).unwrap();
    let labels = classes(&x, 2);
    let model = Classifier::svm().cs([1.0]).cv(2).fit(Rows::Csr(sparse.view()), &labels).unwrap().saved();
    let case = |name, model, x, labels: &Vec<LabelValue>| {
        let labels = Some(labels.clone());
        Case { name, model, x, labels, numbers: Vec::new(), columns: 1, weights: None }
    };
    cases.push(case("sparse", model, RowsBuf::Csr(sparse), &labels));
    let kernel = KernelFn::new(Shape::Rbf, 0.5).unwrap();
    let values = kernel_matrix(&rows, &rows, &kernel, 1, &Control::default()).unwrap();
    let matrix = Mat::from_fn(N, N, |i, j| values[i * N + j]);
    let given = Kernel { shape: Shape::Precomputed, bandwidth: Bandwidth::Value(1.0) };
    let model = Classifier::svm().kernel(given).cs([1.0]).cv(2).fit(&matrix, &labels).unwrap().saved();
    cases.push(case("precomputed", model, RowsBuf::Dense(matrix), &labels));
    let scaling = Scaling { shift: vec![0.5, -3.0], factor: vec![0.25, 7.0] };
    let scaled = scaling.apply(&rows).unwrap();
    let mut model = Classifier::svm().cs([1.0]).cv(2).fit(scaled.view(), &labels).unwrap().saved();
    model.predictor.scaling = Some(scaling);
    model.training = Some(TrainingRows::of(rows, Truth::Labels(&labels), None));
    cases.push(case("scaled", model, RowsBuf::copy_of(&rows), &labels));
    cases
}

/// The model with another predictor.
fn forged(model: &SavedModel, change: impl FnOnce(&mut Parts)) -> SavedModel {
    let own = &model.predictor;
    let mut parts = Parts {
        kernel: own.kernel(),
        vectors: RowsBuf::copy_of(&own.vectors()),
        coef: own.coef().to_owned(),
        intercepts: own.intercepts().to_vec(),
    };
    change(&mut parts);
    let Parts { kernel, vectors, coef, intercepts } = parts;
    let vectors = (vectors, own.support().to_vec());
    let mut predictor = Predictor::new(kernel, vectors, own.width(), coef, intercepts, own.outputs.clone()).unwrap();
    predictor.scaling.clone_from(&own.scaling);
    SavedModel { predictor, ..model.clone() }
}

struct Parts {
    kernel: KernelFn,
    vectors: RowsBuf,
    coef: Mat<f64>,
    intercepts: Vec<f64>,
}

#[test]
fn every_kind_of_model_is_verified_from_its_file() {
    for case in cases() {
        let read = SavedModel::from_bytes(&case.model.to_bytes().unwrap()).unwrap();
        let proof = recomputed(case.verify(&read));
        assert!(proof.is_verified(), "{}: {proof:?}", case.name);
        assert_eq!(proof.certificates.len(), case.model.machines.len(), "{}", case.name);
        for (certificate, machine) in proof.certificates.iter().zip(&case.model.machines) {
            let scale = machine.primal.abs().max(1e-300);
            assert!((certificate.primal - machine.primal).abs() <= 1e-6 * scale, "{}: {certificate:?}", case.name);
            assert!(certificate.gap() <= 2e-6, "{}: {certificate:?}", case.name);
        }
    }
}

#[test]
fn forged_models_are_found_out() {
    for case in cases() {
        let is_found_out = |what: &str, model: &SavedModel| {
            let proof = recomputed(case.verify(model));
            assert!(!proof.is_verified(), "{}: {what} passed: {proof:?}", case.name);
        };
        is_found_out(
            "coefficients times −3.7",
            &forged(&case.model, |parts| {
                parts.coef.col_iter_mut().for_each(|column| column.iter_mut().for_each(|c| *c *= -3.7));
            }),
        );
        is_found_out("another intercept", &forged(&case.model, |parts| parts.intercepts[0] += 0.3));
        if case.model.predictor.kernel().shape.uses_gamma() {
            is_found_out("another γ", &forged(&case.model, |parts| parts.kernel.gamma *= 3.0));
        }
        if let RowsBuf::Dense(_) = case.x
            && case.model.predictor.vectors().nrows() > 0
        {
            let other = forged(&case.model, |parts| {
                if let RowsBuf::Dense(vectors) = &mut parts.vectors {
                    vectors[(0, 0)] += 0.5;
                }
            });
            is_found_out("another support vector", &other);
        }
        let mut other = case.model.clone();
        other.machines[0].c *= 1e-6;
        is_found_out("a smaller C", &other);
    }
}

#[test]
fn a_forged_tolerance_is_stated_or_overruled() {
    let case = &cases()[0];
    let mut model = forged(&case.model, |parts| parts.intercepts[0] += 0.3);
    model.parameters.insert("tol".into(), serde_json::json!(0.999_999));
    let proof = recomputed(case.verify(&model));
    assert!(proof.tol > 0.99);
    let found = model.verify(case.x.view(), case.truth(), None, Some(1e-6), 1, &Control::default()).unwrap();
    assert!(!recomputed(found).is_verified());
    // A file that claims noise without end is not believed.
    let mut model = forged(&case.model, |parts| parts.intercepts[0] += 0.3);
    model.machines[0].noise = 1e9;
    assert!(!recomputed(case.verify(&model)).is_verified());
    for tol in [0.0, 1.0, f64::NAN, -1.0] {
        assert!(model.verify(case.x.view(), case.truth(), None, Some(tol), 1, &Control::default()).is_err());
    }
}

#[test]
fn coefficients_of_rows_that_a_machine_did_not_see_are_found_out() {
    let case = cases().into_iter().find(|case| case.name == "one against one").unwrap();
    let labels = case.labels.as_ref().unwrap();
    let support = case.model.predictor.support().to_vec();
    // Machine 0 learns from the first two classes, in the order of letters: eggs and ham.
    let k = support.iter().position(|row| labels[*row] == "spam".value()).unwrap();
    let proof = recomputed(case.verify(&forged(&case.model, |parts| parts.coef[(k, 0)] = 1e-3)));
    assert!(!proof.is_verified() && proof.contradiction.is_some_and(|text| text.contains("did not learn from")));
}

#[test]
fn other_rows_give_no_verdict() {
    for case in cases() {
        let n = case.x.view().nrows();
        let other = |x: &Rows, truth: Truth, weights: Option<&[f64]>| match case
            .model
            .verify(*x, truth, weights, None, 1, &Control::default())
            .unwrap()
        {
            Verification::OtherRows(difference) => difference,
            found => panic!("{}: {found:?}", case.name),
        };
        let weights: Vec<f64> =
            case.weights.clone().map_or_else(|| vec![2.0; n], |w| w.iter().map(|w| w + 1.0).collect());
        let told = other(&case.x.view(), case.truth(), Some(&weights));
        assert_eq!(told, "their weights are not those of the fit", "{}", case.name);
        if let (RowsBuf::Dense(x), Some(labels)) = (&case.x, &case.labels) {
            let mut labels = labels.clone();
            labels.swap(0, 1);
            labels[2] = labels[3].clone();
            let told = other(&case.x.view(), Truth::Labels(&labels), case.weights.as_deref());
            assert_eq!(told, "their labels are not those of the fit", "{}", case.name);
            let mut moved = x.clone();
            moved[(7, 1)] += 1e-12;
            let told = other(&Rows::from(&moved), case.truth(), case.weights.as_deref());
            assert_eq!(told, "their values are not those of the fit", "{}", case.name);
        }
    }
}

#[test]
fn a_model_without_digests_is_proved_by_rows_to_which_it_is_optimal() {
    for case in cases() {
        let mut model = case.model.clone();
        model.training = None;
        assert!(recomputed(case.verify(&model)).is_verified(), "{}", case.name);
        let Case { x: RowsBuf::Dense(x), .. } = &case else { continue };
        if case.name.contains("landmarks") || case.name == "precomputed" {
            continue;
        }
        let mut moved = x.clone();
        moved[(case.model.predictor.support()[0], 1)] += 0.1;
        let found = model.verify(&moved, case.truth(), case.weights.as_deref(), None, 1, &Control::default()).unwrap();
        assert!(matches!(&found, Verification::OtherRows(text) if text.contains("support vector")), "{found:?}");
    }
}

#[test]
fn what_cannot_be_verified_says_why() {
    let case = &cases()[4];
    let mut model = case.model.clone();
    model.parameters.insert("class_weight".into(), serde_json::json!({ "repr": "{'spam': 4}" }));
    assert!(matches!(case.verify(&model), Verification::Impossible(reason) if reason.contains("class weights")));
    model.machines.clear();
    assert!(matches!(case.verify(&model), Verification::Impossible(reason) if reason.contains("no C")));
    let mut model = case.model.clone();
    model.machines[0].loss = "zero-one".into();
    assert!(matches!(case.verify(&model), Verification::Impossible(reason) if reason.contains("zero-one")));
    let wrong = case.model.verify(case.x.view(), Truth::Labels(&[]), None, None, 1, &Control::default());
    assert!(wrong.unwrap_err().to_string().contains("length 0, but 60"));
}
