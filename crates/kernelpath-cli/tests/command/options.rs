//! Each option once: what it does is in the model, or in the JSON document.

use kernelpath::SavedModel;
use serde_json::{Value, json};

use crate::running::{Folder, Ran};

/// What is trained on, options, and where which value is: in the document, or (after `parameters`) in the model.
const OPTIONS: [(&str, &str, &str, &str); 44] = [
    ("rings.csv", "--kernel laplacian", "/kernel", "\"laplacian\""),
    ("rings.csv", "--kernel poly --degree 2 --coef0 1", "parameters/degree", "2"),
    ("rings.csv", "--kernel poly --coef0 0.5", "parameters/coef0", "0.5"),
    ("rings.csv", "--gamma 0.5,2", "/path/5/gamma", "2.0"),
    ("rings.csv", "--gamma 0.25", "/gamma", "0.25"),
    ("rings.csv", "--gamma auto-grid", "parameters/gamma", "\"auto-grid\""),
    ("rings.csv", "--gamma scale", "parameters/gamma", "\"scale\""),
    ("rings.csv", "--gamma sigest", "parameters/gamma", "\"sigest\""),
    ("rings.csv", "--cs 2,3", "/path/1/C", "3.0"),
    ("rings.csv", "--cs 1:100:3", "/path/2/C", "100.0"),
    ("rings.csv", "--n-cs 4", "parameters/Cs", "4"),
    ("rings.csv", "--folds 3", "parameters/cv", "3"),
    ("rings.csv", "--folds 0 --cs 1", "/score/0", "null"),
    ("rings.csv", "--loo", "parameters/cv", "\"loo\""),
    ("rings.csv", "--scoring balanced_accuracy", "/scoring", "\"balanced_accuracy\""),
    ("rings.csv", "--selection 1se", "parameters/selection", "\"1se\""),
    ("rings.csv", "--scale standard", "/scaled", "true"),
    ("rings.csv", "--scale -1:1", "/scaled", "true"),
    ("rings.csv", "--probability", "parameters/probability", "\"sigmoid\""),
    ("rings.csv", "--probability=isotonic", "parameters/probability", "\"isotonic\""),
    ("three.csv", "--multi-class ovr", "/machines/0/name", "\"\\\"ring 0\\\" against the rest\""),
    ("three.csv", "--task logistic --multi-class multinomial", "parameters/multi_class", "\"multinomial\""),
    ("three.csv", "--tune each", "parameters/tune", "\"each\""),
    ("rings.csv", "--class-weight balanced", "parameters/class_weight", "\"balanced\""),
    ("rings.csv", "--class-weight inner=2", "parameters/class_weight/items", "[[\"inner\",2.0]]"),
    ("rings.csv", "--task squared-svm", "/machines/0/loss", "\"squared_hinge\""),
    ("rings.csv", "--task logistic", "/machines/0/loss", "\"logistic\""),
    ("rings.csv", "--task dwd", "/machines/0/loss", "\"dwd\""),
    ("wave.csv", "--task quantile --tau 0.2,0.8", "/machines/1/constant", "0.8"),
    ("wave.csv", "--task quantile --taus 0.1,0.9 --noncrossing", "parameters/noncrossing", "\"sort\""),
    ("wave.csv", "--task svr --epsilon 0.25", "/machines/0/constant", "0.25"),
    ("wave.csv", "--task svr --epsilon auto", "parameters/epsilon", "\"auto\""),
    ("wave.csv", "--task ridge --scoring r2", "/scoring", "\"r2\""),
    ("wave.csv", "--task huber --delta 0.5", "/machines/0/constant", "0.5"),
    ("wave.csv", "--task expectile --tau 0.9", "/machines/0/constant", "0.9"),
    ("rings.csv", "--low-rank --landmarks uniform --n-landmarks 20", "parameters/landmarks", "\"uniform\""),
    ("rings.csv", "--low-rank --n-landmarks 20 --rank 10", "parameters/rank", "10"),
    ("rings.csv", "--device cpu --threads 1", "parameters/n_jobs", "1"),
    ("rings.csv", "--time-budget 60", "parameters/time_budget", "60.0"),
    ("rings.csv", "--seed 3", "parameters/random_state", "3"),
    ("rings.csv", "--tol 1e-4", "/tol", "0.0001"),
    ("rings.csv", "--max-iter 5000", "parameters/max_iter", "5000"),
    ("rings.csv", "--solver spectral", "parameters/solver", "\"spectral\""),
    ("rings.csv", "--dtype float64", "parameters/dtype", "\"float64\""),
];

#[test]
fn each_option_of_train_does_what_it_says() {
    let folder = Folder::new();
    for (data, options, place, expected) in OPTIONS {
        let few = if options.contains("cs ") { "" } else { "--cs 0.1,0.3,1,3,10" };
        let ran = folder.run(&format!("train {data} {few} --json -q -o m.kpath {options}")).ok();
        let found = match place.strip_prefix("parameters") {
            None => ran.json().pointer(place).cloned(),
            Some(place) => {
                let parameters = SavedModel::load(folder.path("m.kpath")).unwrap().parameters;
                Value::Object(parameters).pointer(place).cloned()
            }
        };
        let expected: Value = serde_json::from_str(expected).unwrap();
        assert_eq!(found, Some(expected), "{options}\n{}", ran.out);
        assert_eq!(ran.err, "", "{options}");
    }
}

#[test]
fn data_is_read_as_the_options_say() {
    let folder = Folder::new();
    let rows = "0;1.5;2;9;u\n1;0.5;1;9;v\n0;2.5;2;9;u\n1;0.25;1;9;v\n0;2.0;2;9;u\n1;0.1;1;9;v\n";
    folder.write("plain.txt", rows);
    let common = "--cs 1 --folds 2 -q --json";
    let read = |options: &str| folder.run(&format!("train plain.txt {common} {options}")).ok().json();
    let columns = |found: &Value| found["data"]["columns"].clone();
    let found = read("--label 0 --weight 2 --ignore 3,4 --header no --delimiter ; --format csv");
    assert_eq!((columns(&found), &found["classes"]), (json!(1), &json!([0, 1])));
    assert_eq!(columns(&read("--label first --ignore -1")), json!(3));
    assert_eq!(read("--label last")["classes"], json!(["u", "v"]));
    folder.write("named.tsv", &rows.replace(';', "\t").replacen('0', "kind\tp\tq\tr\ts\n0", 1));
    let found =
        folder.run(&format!("train named.tsv {common} --header yes --label kind --ignore s --format tsv")).ok().json();
    assert_eq!(found["data"]["names"], json!(["p", "q", "r"]));
    assert_eq!(found["data"]["label"], json!("kind"));
    folder.write("zero.libsvm", "1 qid:1 0:1\n2 qid:1 0:2\n1 qid:2 0:1.5\n2 qid:2 0:2.5\n");
    let found =
        folder.run(&format!("train zero.libsvm {common} --zero-based --ignore-qid --format libsvm")).ok().json();
    assert_eq!(columns(&found), json!(1));
}

/// The mean over the rows that are left out one by one weighs them, in the choice and in the table.
#[test]
fn rows_left_out_one_by_one_count_by_their_weights() {
    let folder = Folder::new();
    let row = |i: i32| {
        format!("{},{},{},{}\n", u8::from((i * 7) % 11 > 4), i % 5, (i * i) % 7, [0.05, 1.0, 20.0][i as usize % 3])
    };
    folder.write("weighted.csv", &format!("kind,p,q,w\n{}", (0..40).map(row).collect::<String>()));
    let read = |options: &str| {
        let words = format!("train weighted.csv --label kind --weight w --loo --cs 0.1,1,10 -q --json {options}");
        folder.run(&words).json()
    };
    let (ours, by_scorer) = (read("--gamma 0.5"), read("--gamma 0.5 --scoring accuracy"));
    let score = |found: &Value| found["score"][0].as_f64().unwrap();
    assert!((score(&ours) - score(&by_scorer)).abs() < 1e-12);
    assert_eq!(ours["C"], by_scorer["C"]);
    let path = ours["path"].as_array().unwrap();
    let chosen = path.iter().find(|place| place["chosen"] == json!(true)).unwrap();
    assert!((chosen["score"].as_f64().unwrap() - score(&ours)).abs() < 1e-12);
}

#[test]
fn tables_name_the_choice_and_its_proof() {
    let folder = Folder::new();
    let said = folder.run("train three.csv --cs 0.1:10:3 --gamma 0.5,1").ok().out;
    for expected in
        ["gamma", "best C", "support", "← chosen", "lower bound", "largest gap of all 108 models", "tol 1e-6"]
    {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let said = folder.run("train wave.csv --task ridge --cs 1e-2,1e-1").ok().err;
    assert!(said.contains("note: C = 0.1 is the largest") && said.contains("go higher with --cs"), "{said}");
}

#[test]
fn exit_statuses_say_what_kind_of_failure_it_was() {
    let folder = Folder::new();
    folder.write("bad.libsvm", "1 1:1\n2 3:1 2:1\n");
    folder.write("nothing", "");
    for (status, words, message) in [
        (1, "train missing.csv", "missing.csv"),
        (1, "train rings.csv -o no/such/folder/m.kpath", "no/such/folder"),
        (1, "predict missing.kpath rings.csv", "missing.kpath"),
        (2, "train", "<DATA>"),
        (2, "train rings.csv --unknown", "--unknown"),
        (2, "train rings.csv --cs 0", "no finite number > 0"),
        (2, "train rings.csv --gamma wide", "sigest"),
        (2, "train rings.csv --scale 1:0", "LOW < HIGH"),
        (2, "train rings.csv --rank 3", "--low-rank"),
        (2, "train rings.csv --loo --folds 3", "cannot be used with"),
        (2, "train rings.csv --device abacus", "abacus"),
        (2, "train rings.csv --task svm --tau 0.5", "--tau means nothing to --task svm"),
        (2, "train rings.csv --task ridge", "the label \"inner\" is no number"),
        (2, "train wave.csv", "--task ridge"),
        (2, "train rings.csv --kernel linear --gamma 1", "--gamma: the kernel linear has none"),
        (2, "train rings.csv --class-weight middle=2", "middle"),
        (2, "train rings.csv --class-weight inner", "LABEL=WEIGHT"),
        (2, "train rings.csv --time-budget -1", "--time-budget"),
        (2, "train rings.csv --folds 1000", "--folds: the number of folds must be between 2 and 80"),
        (2, "train rings.csv --tol 2", "--tol: "),
        (2, "train wave.csv --task huber --delta -1", "--delta: delta must be a finite number > 0, or auto"),
        (2, "train wave.csv --task quantile --tau 0.5,1.5", "--tau: levels must be between 0 and 1"),
        (2, "train wave.csv --task ridge --scoring accuracy", "--scoring: "),
        (2, "train rings.csv --folds 0", "--cs 1"),
        (2, "train rings.csv --label colour", "there is no column \"colour\""),
        (2, "train rings.csv -o model.txt", ".kpath"),
        (2, "train rings.csv --scale standard -o m.model", "--scale"),
        (2, "train rings.libsvm --label 0", "--label is for CSV files, and rings.libsvm was read as LIBSVM"),
        (2, "train rings.csv --zero-based", "--zero-based is for LIBSVM files"),
        (2, "train rings.csv --probability --folds 0 --cs 1", "such as --folds 5"),
        (2, "train bad.libsvm", "bad.libsvm:2: index 2 does not rise after 3"),
        (2, "train nothing", "no rows"),
        (2, "inspect rings.csv", "rings.csv"),
        (2, "convert rings.csv m.kpath", "rings.csv"),
        (2, "man unknown", "there is no command \"unknown\""),
        (2, "completions cobol", "cobol"),
        (2, "", "Usage"),
        (3, "train rings.csv --cs 10 --max-iter 1", "did not reach --tol (max_iter)"),
        (3, "train rings.csv --kernel sigmoid --gamma 1 --cs 1", "did not reach --tol"),
    ] {
        let ran = folder.run(words);
        assert_eq!(ran.status, status, "{words}\n{}{}", ran.out, ran.err);
        assert!(ran.err.contains(message), "{words}: {}", ran.err);
        assert!(!ran.err.contains("panicked") && !ran.err.contains('`'), "{words}: {}", ran.err);
    }
    let Ran { status, out, .. } = folder.run("--version");
    assert_eq!((status, &*out), (0, &*format!("kernelpath {}\n", env!("CARGO_PKG_VERSION"))));
    assert!(folder.run("train --help").ok().out.contains("--time-budget"));
    assert_eq!(folder.run("train rings.csv --cs 10 --max-iter 1 --json").json()["certified"], json!(false));
}

#[test]
fn models_are_inspected_converted_and_reported() {
    let folder = Folder::new();
    folder.run("train rings.csv --cs 1 -o m.kpath").ok();
    let said = folder.run("inspect m.kpath").ok().out;
    assert!(said.contains("KernelSVC") && said.contains("attributes/gaps_"), "{said}");
    let header = folder.run("inspect m.kpath --json").ok().json();
    assert_eq!(header["estimator"], json!("KernelSVC"));
    assert_eq!(header["outputs"]["classes"], json!(["inner", "outer"]));
    // The header is enough: what follows it is not read.
    let bytes = std::fs::read(folder.path("m.kpath")).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    std::fs::write(folder.path("cut.kpath"), &bytes[..header]).unwrap();
    folder.run("inspect cut.kpath").ok();
    assert_eq!(folder.run("predict cut.kpath rings.csv").status, 2);

    folder.run("train rings.libsvm --cs 1 -o n.kpath").ok();
    folder.run("convert n.kpath n.model").ok();
    folder.run("convert n.model back.kpath").ok();
    folder.run("convert n.kpath n.onnx").ok();
    folder.run("convert n.kpath half.onnx --float32").ok();
    assert_ne!(folder.run("convert n.onnx again.kpath").status, 0);
    assert_eq!(folder.run("convert n.kpath n.model --float32").status, 2);
    let labels = |model: &str| folder.run(&format!("predict {model} rings.libsvm")).ok().out;
    assert_eq!(labels("n.kpath"), labels("n.model"));
    assert_eq!(labels("n.kpath"), labels("back.kpath"));
    // Labels that are texts are none of LIBSVM's: a model that took time to train is kept all the same.
    let ran = folder.run("train rings.csv --cs 1 -o texts.model");
    assert!(ran.status == 2 && ran.err.contains("kept as texts.kpath"), "{}", ran.err);
    folder.run("predict texts.kpath rings.csv").ok();

    folder.run("report m.kpath -o page.html").ok();
    folder.run("report m.kpath rings.csv --title Rings").ok();
    assert!(folder.files().contains(&"m.html".to_string()));
    let ran = folder.run("train wave.csv --task ridge --cs 1 -o w.kpath -q").ok();
    assert_eq!(ran.err, "");
    folder.run("report w.kpath wave.csv").ok();
}

#[test]
fn devices_completions_and_manual_pages_are_printed() {
    let folder = Folder::new();
    assert!(folder.run("devices").ok().out.contains("cpu"));
    assert_eq!(folder.run("devices --json").ok().json()[0]["device"], json!("cpu"));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(folder.run(&format!("completions {shell}")).ok().out.contains("svm-predict"), "{shell}");
    }
    assert!(folder.run("man").ok().out.contains(".TH kernelpath 1"));
    assert!(folder.run("man train").ok().out.contains("\\-\\-time\\-budget"));
}
