//! Which column of a CSV file is what.

use std::collections::HashMap;

use crate::error::{Problem, short};
use crate::number::{self, NotNumber};
use crate::options::{Column, CsvOptions, Texts, Wanted};
use crate::texts::Kind;

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
    /// What the fields of each feature are, in the order of the file.
    pub kinds: Vec<Kind>,
    /// The place of each feature in the order that is wanted; `None`: as in the file.
    pub places: Option<Vec<usize>>,
    /// Names of the columns that nobody needs.
    pub unneeded: Vec<String>,
    /// Whether decimals have a comma.
    pub decimal_comma: bool,
    /// Whether a missing value is NaN.
    pub missing_as_nan: bool,
}

/// Names that a message lists.
const LISTED: usize = 12;

impl Layout {
    /// Gives `width` columns, which may have names, the roles that the options ask for.
    pub fn new(delimiter: u8, width: usize, names: Option<Vec<String>>, options: &CsvOptions) -> Result<Self, Problem> {
        let (decimal_comma, missing_as_nan) = (options.decimal_comma, options.missing_as_nan);
        let (kinds, places, unneeded) = (Vec::new(), None, Vec::new());
        let roles = vec![Role::Feature; width];
        let mut layout =
            Self { delimiter, roles, names, features: width, kinds, places, unneeded, decimal_comma, missing_as_nan };
        for column in &options.ignore {
            let k = layout.find(column)?;
            layout.roles[k] = Role::Ignored;
        }
        if let Some(column) = &options.weight {
            layout.give(column, Role::Weight)?;
        }
        let is_feature = |role: &&Role| **role == Role::Feature;
        let left = layout.roles.iter().filter(is_feature).count();
        match options.wanted.as_ref().filter(|_| layout.names.is_some()) {
            Some(wanted) => layout.pick(wanted, options)?,
            None => {
                if let Some(column) = options.label.as_ref().filter(|_| options.features != Some(left)) {
                    layout.give(column, Role::Label)?;
                }
            }
        }
        layout.features = layout.roles.iter().filter(is_feature).count();
        if layout.features == 0 {
            return Err(Problem::NoFeatures { columns: width, delimiter: char::from(delimiter) });
        }
        let kind = |feature: usize| match &options.texts {
            Texts::Refused => Kind::Number,
            Texts::Found => Kind::Any,
            Texts::Known(lists) => {
                let place = layout.places.as_ref().map_or(feature, |places| places[feature]);
                lists.get(place).and_then(Option::as_ref).map_or(Kind::Number, |list| Kind::of(list))
            }
        };
        layout.kinds = (0..layout.features).map(kind).collect();
        Ok(layout)
    }

    /// Makes the wanted columns the features, and leaves out all columns without a role.
    fn pick(&mut self, wanted: &Wanted, options: &CsvOptions) -> Result<(), Problem> {
        // With a number of features the label is only where it stands if nobody says.
        let is_asked = options.features.is_none();
        if let Some(column) = options.label.as_ref().filter(|_| is_asked) {
            self.give(column, Role::Label)?;
        }
        let names = self.names.clone().unwrap_or_default();
        let mut columns: HashMap<&str, Vec<usize>> = HashMap::new();
        for (k, name) in names.iter().enumerate() {
            columns.entry(name).or_default().push(k);
        }
        let (mut found, mut missing) = (Vec::with_capacity(wanted.features.len()), Vec::new());
        for name in &wanted.features {
            match columns.get(name.as_str()).map(Vec::as_slice) {
                None | Some([]) => missing.push(name),
                Some(&[k]) if self.roles[k] == Role::Feature => found.push(k),
                Some(&[k]) => {
                    let (one, other) = ("a feature of the model", self.roles[k].text());
                    return Err(Problem::Roles { column: self.called(k), one, other });
                }
                Some(_) => return Err(Problem::Twice { name: short(name) }),
            }
        }
        if !missing.is_empty() {
            let more =
                if missing.len() > LISTED { format!("and {} more", missing.len() - LISTED) } else { String::new() };
            let listed = missing.iter().take(LISTED).map(|name| format!("{:?}", short(name)));
            let names = listed.chain((!more.is_empty()).then_some(more)).collect();
            return Err(Problem::Needed { names, there: format!(": {}", self.there()) });
        }
        let mut place_of = vec![None; names.len()];
        found.iter().enumerate().for_each(|(place, k)| place_of[*k] = Some(place));
        let is_free = |k: &usize| place_of[*k].is_none() && self.roles[*k] == Role::Feature;
        let label = match &wanted.label {
            _ if is_asked || options.label.is_none() => None,
            Some(name) => columns.get(name.as_str()).filter(|places| places.len() == 1).map(|places| places[0]),
            None => names.len().checked_sub(1),
        };
        if let Some(k) = label.filter(is_free) {
            self.roles[k] = Role::Label;
        }
        for (k, place) in place_of.iter().enumerate() {
            if place.is_none() && self.roles[k] == Role::Feature {
                self.roles[k] = Role::Ignored;
                self.unneeded.push(names[k].clone());
            }
        }
        self.places = Some(place_of.into_iter().flatten().collect());
        Ok(())
    }

    /// The number that a field is.
    pub fn number(&self, field: &[u8]) -> Result<f64, NotNumber> {
        if self.decimal_comma { number::number_with_comma(field) } else { number::number(field) }
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
            Column::Exactly(name) => return self.named(name)?.ok_or_else(|| self.no_column(format!("{name:?}"))),
            Column::Name(name) => {
                if let Some(k) = self.named(name)? {
                    return Ok(k);
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

    /// The place of the column with this name.
    fn named(&self, name: &str) -> Result<Option<usize>, Problem> {
        let names = self.names.iter().flatten().enumerate();
        let mut places = names.filter(|(_, known)| *known == name).map(|(k, _)| k);
        match (places.next(), places.next()) {
            (Some(_), Some(_)) => Err(Problem::Twice { name: short(name) }),
            (place, _) => Ok(place),
        }
    }

    fn no_column(&self, column: String) -> Problem {
        Problem::NoColumn { column, there: self.there() }
    }

    /// Which columns there are.
    fn there(&self) -> String {
        let width = self.roles.len();
        let places = format!("there are {width}, counted from 0, and -1 is the last");
        match &self.names {
            None => format!("{places}; no header names them"),
            Some(names) => {
                let more = if names.len() > LISTED { ", …" } else { "" };
                let listed: Vec<String> = names.iter().take(LISTED).map(|name| format!("{:?}", short(name))).collect();
                format!("{places}; their names are {}{more}", listed.join(", "))
            }
        }
    }

    /// What messages call a feature, which is counted in the order of the file.
    pub fn called_feature(&self, feature: usize) -> String {
        let mut features = (0..self.roles.len()).filter(|k| self.roles[*k] == Role::Feature);
        self.called(features.nth(feature).unwrap_or(0))
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
