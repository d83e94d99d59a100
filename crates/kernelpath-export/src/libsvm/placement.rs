//! Which class a vector is listed under.
//!
//! A line of LIBSVM's file is a vector of one class, with a coefficient against each other class. A support vector of
//! ours has a coefficient in every machine. That of a row is not 0 only in machines of the row's class, so one line is
//! enough. A landmark may have a coefficient in each, and is then listed under several classes, each with its part.

use faer::MatRef;

use crate::libsvm::{machine_of, place_of};

/// A line of the file: a vector, and its coefficient against each other class.
pub(crate) struct Placed {
    /// The vector; `None`: a row of zeros, which is there for its number of columns.
    pub vector: Option<usize>,
    /// The class that it is listed under.
    pub class: usize,
    /// The coefficients, in the order of the other classes.
    pub coef: Vec<f64>,
}

/// The lines of vectors with a coefficient other than 0, class after class.
pub(crate) fn placements(coef: MatRef<f64>, classes: usize) -> Vec<Placed> {
    let pairs: Vec<(usize, usize)> = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j))).collect();
    let mut placed = Vec::new();
    for vector in 0..coef.nrows() {
        let mut left: Vec<usize> = (0..pairs.len()).filter(|&m| coef[(vector, m)] != 0.0).collect();
        while !left.is_empty() {
            let class = best_class(&left, &pairs, |m| coef[(vector, m)] > 0.0, classes);
            let mut own = vec![0.0; classes - 1];
            left.retain(|&m| {
                let (i, j) = pairs[m];
                debug_assert_eq!(machine_of(i, j, classes), m);
                if i == class || j == class {
                    own[place_of(if i == class { j } else { i }, class)] = coef[(vector, m)];
                }
                i != class && j != class
            });
            placed.push(Placed { vector: Some(vector), class, coef: own });
        }
    }
    placed.sort_by_key(|line| line.class);
    placed
}

/// The class with the most of these machines; of equal ones, the class whose sign most of the coefficients have, which
/// is the class of the row.
fn best_class(left: &[usize], pairs: &[(usize, usize)], is_positive: impl Fn(usize) -> bool, classes: usize) -> usize {
    let mut count = vec![(0, 0); classes];
    for &m in left {
        let (i, j) = pairs[m];
        count[i].0 += 1;
        count[j].0 += 1;
        count[if is_positive(m) { i } else { j }].1 += 1;
    }
    (0..classes).rev().max_by_key(|&class| count[class]).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    #[test]
    fn every_coefficient_is_listed_once() {
        // Machines (0, 1), (0, 2), (1, 2): a row of class 1, a row of class 2, a landmark, nothing.
        let coef = [[-1.0, 0.0, 2.0], [0.0, -3.0, 0.0], [1.0, 2.0, 3.0], [0.0; 3]];
        let placed = placements(Mat::from_fn(4, 3, |i, j| coef[i][j]).as_ref(), 3);
        let found: Vec<(usize, usize, Vec<f64>)> =
            placed.into_iter().map(|p| (p.vector.unwrap(), p.class, p.coef)).collect();
        assert_eq!(
            found,
            [(2, 0, vec![1.0, 2.0]), (0, 1, vec![-1.0, 2.0]), (2, 1, vec![0.0, 3.0]), (1, 2, vec![-3.0, 0.0]),]
        );
    }
}
