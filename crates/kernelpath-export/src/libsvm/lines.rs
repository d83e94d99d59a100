//! The lines of a text, and the words in them.

use std::str::FromStr;

use crate::error::{Error, Result};

/// Most characters of a file that an error repeats.
const SHOWN: usize = 40;

pub(crate) fn wrong<T>(line: usize, problem: impl Into<String>) -> Result<T> {
    Err(Error::Text { line, problem: problem.into() })
}

/// A word as an error shows it.
pub(crate) fn shown(word: &str) -> String {
    match word.char_indices().nth(SHOWN) {
        None => format!("{word:?}"),
        Some((end, _)) => format!("{:?}…", &word[..end]),
    }
}

/// The lines of a text, one after the other.
pub(crate) struct Lines<'a> {
    rest: Option<&'a [u8]>,
    number: usize,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Self { rest: Some(text), number: 0 }
    }

    /// The number of the line that came last, counted from 1.
    pub fn number(&self) -> usize {
        self.number.max(1)
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Result<Line<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest?;
        let end = rest.iter().position(|byte| *byte == b'\n');
        self.rest = end.map(|end| &rest[end + 1..]);
        self.number += 1;
        let number = self.number;
        Some(match std::str::from_utf8(&rest[..end.unwrap_or(rest.len())]) {
            Ok(text) => Ok(Line { number, text }),
            Err(_) => wrong(number, "these bytes are no text; is it a model file of LIBSVM?"),
        })
    }
}

/// A line with its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    pub number: usize,
    pub text: &'a str,
}

impl<'a> Line<'a> {
    /// Its first word; empty if there is none.
    pub fn name(&self) -> &'a str {
        self.words().next().unwrap_or("")
    }

    pub fn words(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.text.split_ascii_whitespace()
    }

    /// The words behind the first.
    pub fn all<T: FromStr>(&self, what: &str) -> Result<Vec<T>> {
        self.words().skip(1).map(|word| self.parsed(word, what)).collect()
    }

    /// The numbers behind the first word.
    pub fn numbers(&self) -> Result<Vec<f64>> {
        self.words().skip(1).map(|word| self.number(word)).collect()
    }

    /// The one word behind the first.
    pub fn one<T: FromStr>(&self, what: &str) -> Result<T> {
        let mut words = self.words().skip(1);
        match (words.next(), words.next()) {
            (Some(word), None) => self.parsed(word, what),
            _ => wrong(self.number, format!("{:?} takes one value, {what}", self.name())),
        }
    }

    pub fn parsed<T: FromStr>(&self, word: &str, what: &str) -> Result<T> {
        word.parse().or_else(|_| wrong(self.number, format!("{} is not {what}", shown(word))))
    }

    /// A number that is finite.
    pub fn number(&self, word: &str) -> Result<f64> {
        match word.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            _ => wrong(self.number, format!("{} is not a finite number", shown(word))),
        }
    }
}
