//! The loop over C: order, leaps between distant C's, warm starts, certificates, and the retry when rounding hid a gap.

use crate::certify::ledger::{Judge, Ledger, Solution};
use crate::certify::record::Status;
use crate::error::Result;
use crate::numeric::parallel;
use crate::numeric::steps::{leaps, rising};
use crate::observe::Control;
use crate::solver::engine::{Engine, Goal, Job};

/// The problems of a group on their way from the smallest C to the largest.
pub(crate) struct Sweep<E: Engine> {
    engine: E,
    /// Positions of the group's problems in the ledger.
    problems: Vec<usize>,
    /// Positions of the C's, in rising order, and how many of them are done.
    order: Vec<usize>,
    done: usize,
    /// The last solutions with their C, the newest first. The last is the constant model, at C = 0.
    past: Vec<(f64, Vec<E::Point>)>,
    /// Solutions of a group that is certified at its end.
    solved: Vec<Solution>,
}

impl<E: Engine> Sweep<E> {
    /// `engine` must be that of these problems.
    pub fn new(mut engine: E, problems: Vec<usize>, cs: &[f64]) -> Result<Self> {
        let past = vec![(0.0, engine.constants()?)];
        Ok(Self { engine, problems, order: rising(cs), done: 0, past, solved: Vec::new() })
    }

    /// How many C's are done.
    pub fn done(&self) -> usize {
        self.done
    }

    /// The first problem of the group.
    pub fn first(&self) -> usize {
        self.problems[0]
    }

    /// Whether nothing is left to do: every C is done, or the time is over. The first C is always solved.
    pub fn is_over(&self, control: &Control) -> bool {
        self.done == self.order.len() || self.done > 0 && control.out_of_time()
    }

    /// The solutions that are not certified yet.
    pub fn into_solutions(self) -> Vec<Solution> {
        self.solved
    }

    /// Solves the next C, or the next C's that the engine takes together. Certifies them, unless the group is certified
    /// at its end.
    pub fn advance<J: Judge>(&mut self, ledger: &Ledger<J>, control: &Control) -> Result<()> {
        // An engine whose start is optimal may not ask, and there may be thousands of such C's.
        control.check()?;
        let end = (self.done + self.engine.at_once()).min(self.order.len());
        let places = self.order[self.done..end].to_vec();
        let cs: Vec<f64> = places.iter().map(|&k| ledger.cs[k]).collect();
        self.leap(cs[0], control)?;
        let mut jobs = self.solved_at(&cs, Goal::Answer)?;
        if E::ALONE {
            let solutions: Vec<Solution> = (0..jobs.len()).map(|at| self.solution(&jobs, at, &places)).collect();
            self.solved.extend(solutions);
        } else {
            self.settle(ledger, &places, &mut jobs, control)?;
        }
        self.remember(jobs);
        if self.done == 0 {
            control.first_models(self.problems.len());
        }
        self.done = end;
        control.advance(places.len() * self.problems.len());
        Ok(())
    }

    /// Solves the C's between the last one and `c`, roughly, as long as that helps.
    fn leap(&mut self, c: f64, control: &Control) -> Result<()> {
        let Some(leap) = self.engine.leap(self.past[0].0) else { return Ok(()) };
        for between in leaps(leap.from, c, leap.longest).take_while(|between| *between < c) {
            control.check()?;
            if control.out_of_time() || self.engine.is_final(self.past[0].0, &self.past[0].1) {
                break;
            }
            let jobs = self.solved_at(&[between], Goal::OnTheWay)?;
            // Where all problems stall, they would stall at larger C's, too.
            let stalled = jobs.iter().all(|job| self.engine.outcome(&job.point).status == Status::Stalled);
            self.remember(jobs);
            if stalled {
                break;
            }
        }
        Ok(())
    }

    /// The problems at these C's, solved from where the last solutions lead: those of the first C, then of the next one.
    fn solved_at(&mut self, cs: &[f64], goal: Goal) -> Result<Vec<Job<E::Point>>> {
        let (engine, past, group) = (&self.engine, &self.past, self.problems.len());
        let start = |at: usize| {
            let known: Vec<(f64, &E::Point)> = past.iter().map(|(c, points)| (*c, &points[at % group])).collect();
            Job { c: cs[at / group], point: engine.start(&known, cs[at / group]) }
        };
        let mut jobs = parallel::map(0..cs.len() * group, start);
        self.engine.solve(&mut jobs, goal)?;
        Ok(jobs)
    }

    fn remember(&mut self, jobs: Vec<Job<E::Point>>) {
        let mut jobs = jobs.into_iter().peekable();
        while let Some(c) = jobs.peek().map(|job| job.c) {
            let of_c = jobs.by_ref().take(self.problems.len()).map(|job| job.point).collect();
            self.past.insert(0, (c, of_c));
        }
        self.past.truncate(self.engine.remembers());
    }

    fn solution(&self, jobs: &[Job<E::Point>], at: usize, places: &[usize]) -> Solution {
        let point = &jobs[at].point;
        let (coef, b) = self.engine.solution(point);
        let (problem, c) = (self.problems[at % self.problems.len()], places[at / self.problems.len()]);
        Solution { problem, c, coef, b, f: None, outcome: self.engine.outcome(point) }
    }

    /// Certifies the solutions. If rounding hid a gap, the engine goes on from the f that the certificate recomputed.
    fn settle<J: Judge>(
        &mut self,
        ledger: &Ledger<J>,
        places: &[usize],
        jobs: &mut [Job<E::Point>],
        control: &Control,
    ) -> Result<()> {
        let mut pending: Vec<usize> = (0..jobs.len()).collect();
        for attempt in 1..=self.engine.attempts() {
            let solutions = pending.iter().map(|&at| self.solution(jobs, at, places)).collect();
            let mut batch = ledger.recomputed(solutions)?;
            let open =
                (jobs.iter_mut().enumerate()).filter_map(|(at, job)| Some((pending.binary_search(&at).ok()?, job)));
            let taken = parallel::map(open, |(k, job)| self.engine.take(&mut job.point, job.c, batch.f(k), batch.b(k)));
            for (k, taken) in taken.into_iter().enumerate() {
                if let Some(taken) = taken {
                    batch.replace(k, taken);
                }
            }
            let mut short = Vec::new();
            ledger.settle(batch, |k, judged| {
                let at = pending[k];
                let point = &mut jobs[at].point;
                let ended = matches!(self.engine.outcome(point).status, Status::Converged | Status::Stalled);
                self.engine.learn(point, judged);
                if judged.record.certificate.gap() > ledger.tol() && ended {
                    short.push(at);
                }
            })?;
            if short.is_empty() || attempt == self.engine.attempts() || control.out_of_time() {
                break;
            }
            let mut again: Vec<Job<E::Point>> = short.iter().map(|&at| jobs[at].clone()).collect();
            self.engine.retry();
            self.engine.solve(&mut again, Goal::Answer)?;
            for (&at, job) in short.iter().zip(again) {
                jobs[at] = job;
            }
            pending = short;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::Mutex;

    use crate::certify::certificate::Certificate;
    use crate::certify::ledger::{Judged, Keeps, Model, Problem};
    use crate::certify::record::{Outcome, record};
    use crate::solver::engine::Leap;

    /// The answer to every problem is its C. The engine notes what it is asked.
    struct Noting<'a> {
        problems: usize,
        at_once: usize,
        seen: &'a Mutex<Vec<String>>,
    }

    #[derive(Clone)]
    struct Number {
        value: f64,
        attempts: usize,
    }

    impl Engine for Noting<'_> {
        type Point = Number;

        fn at_once(&self) -> usize {
            self.at_once
        }

        fn leap(&self, last: f64) -> Option<Leap> {
            (self.at_once == 1).then_some(Leap { from: last.max(1.0), longest: 10.0 })
        }

        fn constants(&mut self) -> Result<Vec<Number>> {
            Ok(vec![Number { value: 0.0, attempts: 0 }; self.problems])
        }

        fn start(&self, past: &[(f64, &Number)], _: f64) -> Number {
            // Solutions come back as they were solved, the newest first.
            assert!(past.iter().all(|(c, point)| *c == point.value) && past.windows(2).all(|p| p[0].0 > p[1].0));
            past[0].1.clone()
        }

        fn solve(&mut self, jobs: &mut [Job<Number>], goal: Goal) -> Result<()> {
            let cs: Vec<String> = jobs.iter().map(|job| format!("{:.0}", job.c)).collect();
            self.seen.lock().unwrap().push(format!("{goal:?} {}", cs.join(" ")));
            for job in jobs {
                let attempts = if job.point.value == job.c { job.point.attempts + 1 } else { 1 };
                job.point = Number { value: job.c, attempts };
            }
            Ok(())
        }

        fn outcome(&self, _: &Number) -> Outcome {
            Outcome { status: Status::Converged, steps: 1 }
        }

        fn solution(&self, point: &Number) -> (Vec<f64>, Vec<f64>) {
            (vec![point.value, point.attempts as f64], vec![0.0])
        }

        fn attempts(&self) -> usize {
            3
        }
    }

    /// Finds fault with the first attempt of the second problem at C = 200.
    struct Strict;

    impl Judge for Strict {
        fn n(&self) -> usize {
            2
        }

        fn tol(&self) -> f64 {
            1e-3
        }

        fn values(&self, coefs: &[&[f64]], _: &Control) -> Result<Vec<Vec<f64>>> {
            Ok(coefs.iter().map(|coef| coef.to_vec()).collect())
        }

        fn judge(&self, models: &[Model], _: &Control) -> Result<Vec<Judged>> {
            let judged = |model: &Model| {
                assert_eq!(model.coef[0], model.c);
                let hides = model.c == 200.0 && model.weight[0] == 2.0 && model.coef[1] < 2.0;
                let certificate = Certificate { primal: 1.0, dual: if hides { 0.5 } else { 1.0 }, noise: 0.0 };
                let record = record(model.outcome, certificate, model.b.to_vec(), 1e-3);
                Judged { record, is_constant: false, image: Vec::new() }
            };
            Ok(models.iter().map(judged).collect())
        }
    }

    fn swept(cs: &[f64], at_once: usize) -> (Vec<String>, Vec<crate::certify::ledger::Kept>) {
        let (seen, control) = (Mutex::new(Vec::new()), Control::default());
        let problem = |weight: f64| Problem { weight: [weight, weight].into(), keeps: Keeps::Coefficients };
        let problems = [problem(1.0), problem(2.0)];
        let ledger = Ledger::new(&Strict, &problems, cs, &control);
        let engine = Noting { problems: 2, at_once, seen: &seen };
        let mut sweep = Sweep::new(engine, vec![0, 1], cs).unwrap();
        while !sweep.is_over(&control) {
            sweep.advance(&ledger, &control).unwrap();
        }
        let kept = ledger.close();
        (seen.into_inner().unwrap(), kept)
    }

    #[test]
    fn it_rises_leaps_and_tries_again_where_rounding_hid_a_gap() {
        let (seen, kept) = swept(&[200.0, 5.0, 2.0], 1);
        // From 5 to 200 in two steps; and once more the second problem alone.
        assert_eq!(seen, ["Answer 2 2", "Answer 5 5", "OnTheWay 32 32", "Answer 200 200", "Answer 200"]);
        for kept in &kept {
            assert_eq!(kept.coef.iter().map(|coef| coef[0]).collect::<Vec<_>>(), [200.0, 5.0, 2.0]);
            assert!(kept.records.iter().all(|record| record.status == Status::Converged));
        }
        assert_eq!([kept[0].coef[0][1], kept[1].coef[0][1]], [1.0, 2.0]);
    }

    #[test]
    fn several_cs_are_solved_together() {
        let (seen, kept) = swept(&[1.0, 2.0, 3.0, 200.0, 5.0], 3);
        assert_eq!(seen, ["Answer 1 1 2 2 3 3", "Answer 5 5 200 200", "Answer 200"]);
        assert_eq!(kept[1].coef.iter().map(|coef| coef[0]).collect::<Vec<_>>(), [1.0, 2.0, 3.0, 200.0, 5.0]);
    }
}
