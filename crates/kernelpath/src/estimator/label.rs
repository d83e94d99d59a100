//! Labels of any type: what they are compared by, and what predictions return.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::error::{Error, Result};
use crate::model::label_value::LabelValue;

/// A label of a class: strings, integers, `bool`, and floats that are whole numbers.
///
/// A type of your own needs two methods:
///
/// ```
/// use kernelpath::{Classifier, Label, LabelValue};
///
/// #[derive(Debug, Clone, Copy, PartialEq)]
/// enum Iris { Setosa, Virginica }
///
/// impl Label for Iris {
///     type Owned = Self;
///     fn value(&self) -> LabelValue { LabelValue::Whole(*self as i128) }
///     fn owned(&self) -> Self { *self }
/// }
///
/// let x = [0.1, 0.2, 0.3, 0.4, 2.1, 2.2, 2.3, 2.4];
/// let labels = [[Iris::Setosa; 4], [Iris::Virginica; 4]].concat();
/// let model = Classifier::svm().cs([1.0]).cv(2).fit((&x[..], 1), &labels)?;
/// assert_eq!(model.predict((&[2.5][..], 1))?, [Iris::Virginica]);
/// # Ok::<(), kernelpath::Error>(())
/// ```
pub trait Label {
    /// What predictions return: the label itself, or for a borrowed string a `String`.
    type Owned: Clone + Debug;

    /// What the label is compared and sorted by. Labels of equal value are one class.
    fn value(&self) -> LabelValue;

    /// The label, to be kept.
    fn owned(&self) -> Self::Owned;
}

macro_rules! labels {
    ($($type:ty, $owned:ty, |$label:ident| $value:expr;)*) => {$(
        impl Label for $type {
            type Owned = $owned;

            fn value(&self) -> LabelValue {
                let $label = self;
                $value
            }

            fn owned(&self) -> $owned {
                <$owned>::from(self.clone())
            }
        }
    )*};
}

labels! {
    String, String, |text| LabelValue::Text(text.clone());
    &str, String, |text| LabelValue::Text((*text).into());
    bool, bool, |truth| LabelValue::Truth(*truth);
    f32, f32, |number| of_float(f64::from(*number));
    f64, f64, |number| of_float(*number);
    i8, i8, |number| LabelValue::Whole(i128::from(*number));
    i16, i16, |number| LabelValue::Whole(i128::from(*number));
    i32, i32, |number| LabelValue::Whole(i128::from(*number));
    i64, i64, |number| LabelValue::Whole(i128::from(*number));
    isize, isize, |number| LabelValue::Whole(*number as i128);
    u8, u8, |number| LabelValue::Whole(i128::from(*number));
    u16, u16, |number| LabelValue::Whole(i128::from(*number));
    u32, u32, |number| LabelValue::Whole(i128::from(*number));
    u64, u64, |number| LabelValue::Whole(i128::from(*number));
    usize, usize, |number| LabelValue::Whole(*number as i128);
}

/// What a file or another program gave, whatever its type.
impl Label for LabelValue {
    type Owned = Self;

    fn value(&self) -> LabelValue {
        self.clone()
    }

    fn owned(&self) -> Self {
        self.clone()
    }
}

fn of_float(number: f64) -> LabelValue {
    // Up to 2¹⁰⁰, far more than labels need, whole floats are integers without loss.
    let is_whole = number.fract() == 0.0 && number.abs() < 2f64.powi(100);
    if is_whole { LabelValue::Whole(number as i128) } else { LabelValue::Fraction(number) }
}

/// The classes among some labels, sorted, and the class of each row.
pub(crate) struct Encoded<L> {
    pub classes: Vec<L>,
    pub values: Vec<LabelValue>,
    pub class: Vec<usize>,
}

/// The classes among the labels of some rows.
pub(crate) fn encoded<L: Label>(labels: &[L], rows: impl Iterator<Item = usize>) -> Result<Encoded<L::Owned>> {
    // Classes are numbered as they appear, with the first row of each, and in the order of their values at the end.
    let mut number: BTreeMap<LabelValue, usize> = BTreeMap::new();
    let (mut first, mut class) = (Vec::new(), Vec::new());
    for row in rows {
        let value = labels[row].value();
        if let LabelValue::Fraction(number) = value {
            let problem = format!(
                "y has {number} at row {row}, which is no class: classes are whole numbers, strings or bools; for \
                 targets that are numbers use `Regressor`"
            );
            return Err(Error::Setting { call: ".fit(x, y)".into(), problem });
        }
        let own = *number.entry(value).or_insert_with(|| {
            first.push(row);
            first.len() - 1
        });
        class.push(own);
    }
    let classes = number.values().map(|&own| labels[first[own]].owned()).collect();
    let mut place = vec![0; first.len()];
    number.values().enumerate().for_each(|(at, &own)| place[own] = at);
    let values: Vec<LabelValue> = number.into_keys().collect();
    if let [only] = &values[..] {
        let problem = format!("y has one class, {only}, and at least 2 are needed; add rows of another class");
        return Err(Error::Setting { call: ".fit(x, y)".into(), problem });
    }
    for class in &mut class {
        *class = place[*class];
    }
    Ok(Encoded { classes, values, class })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_sorted_by_value() {
        let all = |n: usize| 0..n;
        let of = encoded(&[10, 9, -1, 9], all(4)).unwrap();
        assert_eq!((of.classes, of.class), (vec![-1, 9, 10], vec![2, 1, 0, 1]));
        let of = encoded(&["b", "a", "b"], all(3)).unwrap();
        assert_eq!((of.classes, of.class), (vec!["a".to_string(), "b".to_string()], vec![1, 0, 1]));
        let of = encoded(&[true, false], all(2)).unwrap();
        assert_eq!(of.classes, [false, true]);
        let of = encoded(&[0.0, -0.0, 2.0, -3.0], all(4)).unwrap();
        assert_eq!((of.classes, of.class), (vec![-3.0, 0.0, 2.0], vec![1, 1, 2, 0]));
    }

    #[test]
    fn rows_that_do_not_count_have_no_class() {
        let of = encoded(&[5u8, 7, 6, 5], [1, 3].into_iter()).unwrap();
        assert_eq!((of.classes, of.class), (vec![5, 7], vec![1, 0]));
    }

    #[test]
    fn numbers_that_are_no_classes_are_named() {
        for bad in [0.5, f64::NAN, f64::INFINITY] {
            let message = encoded(&[1.0, bad], 0..2).err().unwrap().to_string();
            assert!(message.contains(&format!("y has {bad} at row 1")) && message.contains("Regressor"), "{message}");
        }
        let message = encoded(&["a", "a"], 0..2).err().unwrap().to_string();
        assert!(message.contains("one class, \"a\""), "{message}");
    }
}
