//! Which column of a CSV file is what.

use crate::error::{Problem, short};
use crate::options::{Column, CsvOptions};

/// What a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Feature,
    Label,
    Weight,
    Ignored,
}

impl Role {
    fn text(self) -> &'static str {
        match self {
            Self::Feature => "a feature",
            Self::Label => "the label",
            Self::Weight => "the weight",
            Self::Ignored => "ignored",
        }
    }
}

/// The columns of a CSV file.
#[derive(Debug)]
pub(crate) struct Layout {
    pub delimiter: u8,
    pub roles: Vec<Role>,
    pub names: Option<Vec<String>>,
    /// How many columns are features.
    pub features: usize,
}

impl Layout {
    /// Gives `width` columns, which may have names, the roles that the options ask for.
    pub fn new(delimiter: u8, width: usize, names: Option<Vec<String>>, options: &CsvOptions) -> Result<Self, Problem> {
        let mut layout = Self { delimiter, roles: vec![Role::Feature; width], names, features: width };
        for column in &options.ignore {
            let k = layout.find(column)?;
            layout.roles[k] = Role::Ignored;
        }
        if let Some(column) = &options.weight {
            layout.give(column, Role::Weight)?;
        }
        let is_feature = |role: &&Role| **role == Role::Feature;
        let left = layout.roles.iter().filter(is_feature).count();
        if let Some(column) = options.label.as_ref().filter(|_| options.features != Some(left)) {
            layout.give(column, Role::Label)?;
        }
        layout.features = layout.roles.iter().filter(is_feature).count();
        if layout.features == 0 {
            return Err(Problem::NoFeatures { columns: width, delimiter: char::from(delimiter) });
        }
        Ok(layout)
    }

    fn give(&mut self, column: &Column, role: Role) -> Result<(), Problem> {
        let k = self.find(column)?;
        if self.roles[k] != Role::Feature {
            let (one, other) = (role.text(), self.roles[k].text());
            return Err(Problem::Roles { column: self.called(k), one, other });
        }
        self.roles[k] = role;
        Ok(())
    }

    /// The place of a column.
    fn find(&self, column: &Column) -> Result<usize, Problem> {
        let place = match column {
            Column::Place(place) => *place,
            Column::Name(name) => {
                let names = self.names.iter().flatten().enumerate();
                let mut places = names.filter(|(_, known)| *known == name).map(|(k, _)| k);
                match (places.next(), places.next()) {
                    (Some(k), None) => return Ok(k),
                    (Some(_), Some(_)) => return Err(Problem::Twice { name: short(name) }),
                    (None, _) => {}
                }
                match name.as_str() {
                    "first" => 0,
                    "last" => -1,
                    _ => name.parse().map_err(|_| self.no_column(format!("{name:?}")))?,
                }
            }
        };
        let width = self.roles.len();
        let from_start = if place < 0 { place.checked_add_unsigned(width as u64) } else { Some(place) };
        let inside = from_start.and_then(|k| usize::try_from(k).ok()).filter(|k| *k < width);
        inside.ok_or_else(|| self.no_column(place.to_string()))
    }

    fn no_column(&self, column: String) -> Problem {
        /// Names that a message lists.
        const LISTED: usize = 12;
        let width = self.roles.len();
        let places = format!("there are {width}, counted from 0, and -1 is the last");
        let there = match &self.names {
            None => format!("{places}; no header names them"),
            Some(names) => {
                let more = if names.len() > LISTED { ", …" } else { "" };
                let listed: Vec<String> = names.iter().take(LISTED).map(|name| format!("{:?}", short(name))).collect();
                format!("{places}; their names are {}{more}", listed.join(", "))
            }
        };
        Problem::NoColumn { column, there }
    }

    /// What messages call column `k`.
    pub fn called(&self, k: usize) -> String {
        match self.names.as_ref().and_then(|names| names.get(k)) {
            Some(name) => format!("column {:?}", short(name)),
            None => format!("column {k} (counted from 0)"),
        }
    }

    /// The names of the columns with a role.
    pub fn names_of(&self, role: Role) -> Option<Vec<String>> {
        let names = self.names.as_ref()?;
        Some(names.iter().zip(&self.roles).filter(|(_, r)| **r == role).map(|(name, _)| name.clone()).collect())
    }
}
