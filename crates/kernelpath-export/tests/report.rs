//! Reports of every kind of model are pages that are whole, safe and small.

mod common;

use common::{Case, Data, classifiers, regressors};
use faer::Mat;
use kernelpath::{Array, Attribute, Classifier, LabelValue, Predictor, Rows, RowsBuf, SavedModel};
use kernelpath_export::report::{Labelled, Options, Truth, report};
use serde_json::json;

/// Elements that have no end.
const VOID: [&str; 3] = ["meta", "link", "br"];

/// Fails unless every element is closed in its order, attributes are quoted, and no id is there twice.
fn check(name: &str, page: &str) {
    let body = page.strip_prefix("<!DOCTYPE html>").unwrap_or_else(|| panic!("{name} is no page"));
    let (mut open, mut rest, mut ids) = (Vec::<String>::new(), body, Vec::new());
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "{name}: a lone > in {:?}", &rest[..at]);
        let end = rest[at..].find('>').unwrap_or_else(|| panic!("{name}: a tag without end"));
        let tag = &rest[at + 1..at + end];
        rest = &rest[at + end + 1..];
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(closed), "{name}: elements close in another order");
            continue;
        }
        let element = tag.split([' ', '/']).next().unwrap().to_string();
        assert!(element.chars().all(|c| c.is_ascii_alphanumeric()), "{name}: no element: {tag:?}");
        assert!(tag.matches('"').count().is_multiple_of(2), "{name}: quotes of {tag:?}");
        if let Some(id) = tag.split(" id=\"").nth(1) {
            ids.push(id.split('"').next().unwrap().to_string());
        }
        if element == "script" || element == "style" {
            let end = rest.find(&format!("</{element}>")).unwrap_or_else(|| panic!("{name}: {element} without end"));
            rest = &rest[end + element.len() + 3..];
        } else if !tag.ends_with('/') && !VOID.contains(&element.as_str()) {
            open.push(element);
        }
    }
    assert!(open.is_empty(), "{name}: left open: {open:?}");
    let n = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), n, "{name}: an id is there twice");
    assert!(!page.contains("NaN") && !page.contains("inf\""), "{name}: a number that is none");
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{name}: {outside}");
    }
    assert!(page.len() < 2_000_000, "{name}: {} bytes", page.len());
}

fn truth(data: &Data, width: usize) -> Truth<'_> {
    match &data.labels {
        Some(labels) => Truth::Labels(labels),
        None => Truth::Numbers { columns: data.numbers.len() / (data.x.len() / width), values: &data.numbers },
    }
}

fn with(case: &Case, data: &Data) -> String {
    let labelled =
        Labelled { x: Rows::from_slice(&data.x, case.width).unwrap(), truth: truth(data, case.width), weights: None };
    let options = Options { data_name: Some("a<b>.csv".into()), ..Options::default() };
    report(&case.model, Some(labelled), &options).unwrap()
}

fn alone(model: &SavedModel) -> String {
    report(model, None, &Options::default()).unwrap()
}

#[test]
fn every_model_has_a_whole_page() {
    for case in classifiers().into_iter().chain(regressors()) {
        let name = case.name;
        check(name, &alone(&case.model));
        let new = with(&case, &case.new);
        check(name, &new);
        assert!(new.contains("not recognised as the training rows"), "{name}");
        let trained = with(&case, &case.trained);
        check(name, &trained);
        let is_out_of_fold = trained.contains("(out of fold, at the chosen C)");
        assert_eq!(is_out_of_fold, name != "no folds", "{name}");
        assert_eq!(trained.contains("not how well it predicts"), name == "no folds", "{name}");
        let is_grid = case.model.attributes.get("gammas_").is_some_and(|gammas| match gammas {
            Attribute::Array(gammas) => gammas.entries.len() > 1,
            _ => false,
        });
        assert_eq!(new.contains("Score over C and γ"), is_grid, "{name}");
        let is_read = SavedModel::from_bytes(&case.model.to_bytes().unwrap()).unwrap();
        assert_eq!(alone(&is_read), alone(&case.model), "{name}: the file says something else");
    }
}

/// The state of the proof, and the verdict.
fn verdict(page: &str) -> (String, String) {
    let badge = page.split("<p class=\"badge ").nth(1).unwrap().split("</p>").next().unwrap();
    let state = badge.split("data-proof=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(page.matches("data-proof=").count(), 1);
    (state.into(), badge.split("</span> ").nth(1).unwrap().into())
}

#[test]
fn the_verdict_says_whether_it_was_recomputed() {
    for case in classifiers().into_iter().chain(regressors()) {
        let name = case.name;
        let (state, text) = verdict(&alone(&case.model));
        assert!(state == "recorded" && text.ends_with("as recorded in the file"), "{name}: {text}");
        let (state, text) = verdict(&with(&case, &case.new));
        assert!(state == "other-rows" && text.contains("not the training rows"), "{name}: {text}");
        let page = with(&case, &case.trained);
        let (state, text) = verdict(&page);
        let is_proved = !["indefinite", "too few steps"].contains(&name);
        assert_eq!(state, if is_proved { "verified" } else { "failed" }, "{name}: {text}");
        assert!(page.contains("The returned model, recomputed"), "{name}");
    }
}

#[test]
fn a_forged_model_is_called_proved_only_as_recorded() {
    let case = classifiers().remove(0);
    let own = &case.model.predictor;
    let forge = |factor: f64, gamma: f64| {
        let (mut kernel, vectors) = (own.kernel(), RowsBuf::copy_of(&own.vectors()));
        kernel.gamma *= gamma;
        let coef = Mat::from_fn(own.coef().nrows(), own.coef().ncols(), |i, m| factor * own.coef()[(i, m)]);
        let (vectors, outputs) = ((vectors, own.support().to_vec()), own.outputs.clone());
        let intercepts = own.intercepts().to_vec();
        let predictor = Predictor::new(kernel, vectors, own.width(), coef, intercepts, outputs).unwrap();
        let model = SavedModel { predictor, ..case.model.clone() };
        let read = SavedModel::from_bytes(&model.to_bytes().unwrap()).unwrap();
        Case { model: read, trained: case.trained.clone(), new: case.new.clone(), ..case }
    };
    for (factor, gamma) in [(-3.7, 1.0), (1.0, 2.0)] {
        let forged = forge(factor, gamma);
        let (state, text) = verdict(&alone(&forged.model));
        assert!(state == "recorded" && text.contains("proved optimal") && text.contains("as recorded"), "{text}");
        let page = with(&forged, &forged.trained);
        let (state, text) = verdict(&page);
        assert!(state == "failed" && text.contains("not proved") && page.contains("badge warn"), "{text}");
        assert_eq!(verdict(&with(&forged, &forged.new)).0, "other-rows");
        assert!(
            !alone(&forged.model).contains('✓') && !with(&forged, &forged.new).contains('✓') && !page.contains('✓')
        );
    }
}

#[test]
fn verdicts_are_those_of_the_gaps() {
    let cases = classifiers();
    let page = |name: &str| alone(&cases.iter().find(|case| case.name == name).unwrap().model);
    // 5 values of C, 3 folds and the refit; of several machines, each.
    assert!(page("binary").contains("All 20 models are proved optimal"));
    assert!(page("one against one").contains("All 60 models are proved optimal"));
    assert!(page("multinomial").contains("All 20 models are proved optimal"));
    assert!(page("grid").contains("All 240 models are proved optimal"));
    assert!(page("no folds").contains("1 model is proved optimal"));
    assert!(page("indefinite").contains("No proof: the kernel is indefinite"));
    let short = page("too few steps");
    assert!(short.contains("did not reach it") && short.contains("badge warn") && short.contains(">×</text>"));
}

#[test]
fn nothing_that_a_model_or_the_data_says_is_markup() {
    let mut case = classifiers().remove(0);
    let evil = "</script><script>alert('1')</script><img src=x onerror=alert(2)>\u{202e}";
    case.model.columns = Some(vec![evil.into(), evil.into()]);
    case.model.estimator = evil.into();
    case.model.machines[0].loss = evil.into();
    case.model.machines[0].status = evil.into();
    case.model.parameters.insert(evil.into(), json!({ "repr": evil }));
    case.model.parameters.insert("scoring".into(), json!(evil));
    case.model.parameters.insert("splitter".into(), json!({ "repr": evil }));
    case.model.parameters.insert("device".into(), json!(evil));
    case.model.attributes.insert("solver_".into(), json!(evil).into());
    case.model.attributes.insert("parts_".into(), json!({ "names": [evil] }).into());
    let labels: Vec<LabelValue> = (0..60)
        .map(|i| if i == 7 { LabelValue::Text(evil.into()) } else { case.new.labels.as_ref().unwrap()[i].clone() })
        .collect();
    let labelled =
        Labelled { x: Rows::from_slice(&case.new.x, 2).unwrap(), truth: Truth::Labels(&labels), weights: None };
    let options = Options { title: Some(evil.into()), data_name: Some(evil.into()), ..Options::default() };
    let page = report(&case.model, Some(labelled), &options).unwrap();
    assert!(!page.contains('\u{202e}'));
    assert!(!page.contains("<img") && page.matches("<script").count() == 1 && page.contains("&lt;img"));
    assert!(page.contains("no class of the model"));
    check("evil", &page.replace("src=x", ""));
}

#[test]
fn what_is_missing_or_misshapen_is_left_out() {
    for case in classifiers().into_iter().chain(regressors()).filter(|case| case.name.len() % 2 == 0) {
        for name in case.model.attributes.keys().cloned().collect::<Vec<_>>() {
            let mut model = case.model.clone();
            model.attributes.remove(&name);
            check(case.name, &alone(&model));
            for other in [
                Attribute::Value(json!(null)),
                Attribute::Value(json!([1, "a", { "float": "nan" }])),
                Attribute::Value(json!({ "names": 3, "is_joint": true })),
                Array::of_f64([2, 0, 3], Vec::new()).into(),
                Array::of_f64([3], vec![f64::NAN, f64::INFINITY, -1e300]).into(),
                Array::of_texts([2], ["a", "b"]).into(),
            ] {
                model.attributes.insert(name.clone(), other);
                check(case.name, &alone(&model));
            }
        }
        let mut model = case.model.clone();
        model.attributes.clear();
        model.parameters.clear();
        model.machines.clear();
        check(case.name, &alone(&model));
        let case = Case { model, ..case };
        check(case.name, &with(&case, &case.new));
    }
}

#[test]
fn truth_that_does_not_fit_is_refused() {
    let case = classifiers().remove(0);
    let x = Rows::from_slice(&case.new.x, 2).unwrap();
    let ask = |truth| {
        report(&case.model, Some(Labelled { x, truth, weights: None }), &Options::default()).unwrap_err().to_string()
    };
    let labels = case.new.labels.clone().unwrap();
    assert!(ask(Truth::Labels(&labels[1..])).contains("has length 59, but 60"));
    let strangers = vec![LabelValue::Whole(3); 60];
    assert!(ask(Truth::Labels(&strangers)).contains("no label is a class of the model: 3 is not among"));
    assert!(ask(Truth::Numbers { columns: 1, values: &[0.0; 60] }).contains("the model predicts labels"));
    let case = regressors().remove(0);
    let x = Rows::from_slice(&case.new.x, 2).unwrap();
    let ask = |truth| {
        report(&case.model, Some(Labelled { x, truth, weights: None }), &Options::default()).unwrap_err().to_string()
    };
    assert!(ask(Truth::Labels(&labels)).contains("the model predicts numbers"));
    assert!(ask(Truth::Numbers { columns: 2, values: &[0.0; 120] }).contains("length 2, but 1"));
    let mut holes = vec![0.0; 60];
    holes[4] = f64::NAN;
    assert!(ask(Truth::Numbers { columns: 1, values: &holes }).contains("NaN at row 4"));
}

#[test]
fn long_paths_and_many_classes_make_small_pages() {
    let mut model = classifiers().remove(0).model;
    let n = 10_000;
    let cs: Vec<f64> = (0..n).map(|k| 1e-3 * 1.001_f64.powi(k)).collect();
    let n = n as usize;
    let mut keep = |name: &str, array: Array| drop(model.attributes.insert(name.into(), array.into()));
    keep("lambdas_", Array::of_f64([n], cs.iter().map(|c| 0.5 / (90.0 * c)).collect()));
    keep("Cs_", Array::of_f64([n], cs));
    keep("scores_", Array::of_f64([5, n], (0..5 * n).map(|k| (k as f64).sin()).collect()));
    keep("gaps_", Array::of_f64([6, n], vec![1e-9; 6 * n]));
    keep("status_", Array::of_texts([6, n], vec!["converged"; 6 * n]));
    keep("n_iter_", Array::of_f64([6, n], vec![3.0; 6 * n]));
    keep("n_support_path_", Array::of_f64([n], vec![30.0; n]));
    model.attributes.insert("best_index_".into(), json!(7777).into());
    let page = alone(&model);
    check("long path", &page);
    assert!(
        page.len() < 600_000 && page.contains("All 60\u{202f}000 models") && page.contains("of 10\u{202f}000 values")
    );

    let x: Vec<f64> = (0..120).map(f64::from).collect();
    let labels: Vec<i32> = (0..120).map(|i| i / 2).collect();
    let model = Classifier::svm()
        .multi_class(kernelpath::MultiClass::OneVsRest)
        .cs([1.0, 10.0])
        .cv(2)
        .fit((&x[..], 1), &labels)
        .unwrap()
        .saved();
    let truth: Vec<LabelValue> = labels.iter().map(|label| LabelValue::Whole(i128::from(*label))).collect();
    let labelled = Labelled { x: Rows::from_slice(&x, 1).unwrap(), truth: Truth::Labels(&truth), weights: None };
    let page = report(&model, Some(labelled), &Options::default()).unwrap();
    check("many classes", &page);
    assert!(page.contains("24 largest of 60 classes") && page.len() < 600_000);
}
