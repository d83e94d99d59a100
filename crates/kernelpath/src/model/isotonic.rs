//! Isotonic calibration: a step function that never falls, straight between its points.

use crate::model::calibrate::{Calibration, Row};

/// Pool adjacent violators: equal scores are one point, and neighbours in the wrong order become one block, whose p is
/// the share of positives in it.
pub(crate) fn fit_isotonic(mut rows: Vec<Row>) -> Calibration {
    struct Block {
        first: f64,
        last: f64,
        positives: f64,
        total: f64,
    }
    let share = |block: &Block| block.positives / block.total;

    rows.sort_by(|r, s| r.score.total_cmp(&s.score));
    let mut blocks: Vec<Block> = Vec::new();
    for tied in rows.chunk_by(|r, s| r.score == s.score) {
        let total = tied.iter().map(|r| r.weight).sum();
        let positives = tied.iter().filter(|r| r.positive).map(|r| r.weight).sum();
        let mut block = Block { first: tied[0].score, last: tied[0].score, positives, total };
        while let Some(before) = blocks.pop_if(|before| share(before) >= share(&block)) {
            block.first = before.first;
            block.positives += before.positives;
            block.total += before.total;
        }
        blocks.push(block);
    }
    let ends = |block: &Block| {
        let p = share(block).min(1.0);
        let last = (block.last != block.first).then_some((block.last, p));
        std::iter::once((block.first, p)).chain(last)
    };
    Calibration::Isotonic { points: blocks.iter().flat_map(ends).collect() }
}

pub(crate) fn interpolate(points: &[(f64, f64)], score: f64) -> f64 {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return f64::NAN };
    if score.is_nan() {
        return score;
    }
    let next = points.partition_point(|(x, _)| *x < score);
    if next == 0 {
        return first.1;
    }
    let ((x0, p0), Some(&(x1, p1))) = (points[next - 1], points.get(next)) else { return last.1 };
    // Two scores may be further apart than the largest number.
    let unit = if (x1 - x0).is_finite() { 1.0 } else { 0.5 };
    let part = (unit * score - unit * x0) / (unit * x1 - unit * x0);
    (p0 + part * (p1 - p0)).min(p1)
}
