//! A fit on low-rank features, K = ZZᵀ: the same models as on a kernel matrix, in rank dimensions.
//!
//! The features are made once, from the rows alone, outside the path and the folds.

use crate::certify::ledger::Kept;
use crate::certify::record::Record;
use crate::certify::reduced::OnFeatures;
use crate::data::units::Units;
use crate::device::Device;
use crate::error::Result;
use crate::fit::placed::Placed;
use crate::fit::request::{Request, Task};
use crate::fit::run::Ground;
use crate::fit::solved::{Found, Posed, SolveAll, Solved, solve_classes};
use crate::numeric::cholesky::Working;
use crate::numeric::design::{Accuracy, Design, Gathered};
use crate::nystrom::approximation::Nystrom;
use crate::nystrom::feature_kernel::FeatureKernel;
use crate::observe::Control;
use crate::path::schedule::Workers;

/// The features of all units, on a device.
pub(crate) struct WithFeatures<'a, T> {
    pub device: &'a dyn Device,
    pub design: Design<'a, T>,
    /// How far each feature may be from its exact value.
    pub errors: &'a [f64],
    /// What was subtracted from each feature.
    pub mean: &'a [f64],
    pub nystrom: &'a Nystrom,
    pub units: &'a Units,
    /// Most rows whose features may be copied at once.
    pub copied: usize,
    pub control: &'a Control,
}

/// All problems are one group.
const TOGETHER: Workers = Workers { all_threads: true, groups_are_small: true, certified_at_once: 1 };

impl<T: Working> WithFeatures<'_, T> {
    /// Converts b to features that keep their mean.
    fn uncentre(&self, record: &mut Record, w: &[f64]) {
        for (b, w) in record.b.iter_mut().zip(w.chunks_exact(self.mean.len().max(1))) {
            *b -= w.iter().zip(self.mean).map(|(w, mean)| w * mean).sum::<f64>();
        }
    }
}

impl<T: Working> Ground for WithFeatures<'_, T> {
    fn is_alone(&self, _: &Task) -> bool {
        false
    }

    fn keeps_values(&self, task: &Task) -> bool {
        task.loss().is_none()
    }

    fn solve(&self, request: &Request, task: &Task, placed: &Placed, posed: &Posed) -> Result<Found> {
        let (design, control, y) = (self.design, self.control, placed.targets(task));
        let problems = &posed.problems[..];
        let Some(loss) = task.loss() else {
            let kernel = FeatureKernel { design, errors: self.errors };
            let mut found = solve_classes(&kernel, request, (&y, task.outputs()), problems, TOGETHER, control)?;
            // From here on, the coefficients are the weights of the features.
            for coef in found.1[0].coef.iter_mut().filter(|coef| !coef.is_empty()) {
                *coef = kernel.weights(&coef.chunks_exact(y.len()).collect::<Vec<_>>(), control)?.concat();
            }
            return Ok(found);
        };
        let gathered = (y.len() < design.n()).then(|| design.gather(&placed.own, Accuracy::Double)).transpose()?;
        let design = gathered.as_ref().map_or(design, Gathered::design);
        let on = OnFeatures { design, errors: self.errors, loss, y: &y, settings: request.settings };
        let method = request.solver.method_on_features()?;
        let visit = SolveAll { judge: &on, problems, cs: request.cs, workers: TOGETHER, control };
        let kept = method.on_features(&on, self.device, (problems, self.copied), control, visit)?;
        Ok((method, kept, Vec::new()))
    }

    fn held_out(&self, request: &Request, solved: &Solved) -> Result<Vec<Vec<Vec<f64>>>> {
        let of_fold = |kept: &Kept, test: &[usize]| -> Result<Vec<Vec<f64>>> {
            let run: Vec<usize> = (0..kept.coef.len()).filter(|&c| !kept.coef[c].is_empty()).collect();
            if run.is_empty() {
                return Ok(vec![vec![f64::NAN; test.len()]; kept.coef.len()]);
            }
            let w: Vec<&[f64]> = run.iter().map(|&c| &kept.coef[c][..]).collect();
            let gathered = self.design.gather(&self.units.of(test), Accuracy::Double)?;
            let products = gathered.design().times(&w, Accuracy::Double, self.control)?;
            let mut f = vec![vec![f64::NAN; test.len()]; kept.coef.len()];
            for (&c, product) in run.iter().zip(products) {
                f[c] = product.into_iter().map(|f| f + kept.records[c].b[0]).collect();
            }
            Ok(f)
        };
        let splits = solved.folds.iter().zip(request.folds.splits());
        splits.map(|(kept, fold)| of_fold(kept, &fold.test)).collect()
    }

    fn coefficients(&self, task: &Task, solved: &Solved) -> Result<Vec<Vec<f64>>> {
        let (rank, landmarks) = (self.design.rank(), self.nystrom.map().nrows());
        let of_model = |w: &Vec<f64>| match w.len() {
            0 => vec![0.0; landmarks * task.outputs()],
            _ => w.chunks_exact(rank).flat_map(|w| self.nystrom.coefficients(w)).collect(),
        };
        Ok(solved.refit.coef.iter().map(of_model).collect())
    }

    fn finish_records(&self, _: &Placed, kept: &mut Kept) {
        for (record, w) in kept.records.iter_mut().zip(&kept.coef) {
            self.uncentre(record, w);
        }
    }
}
