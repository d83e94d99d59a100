//! What a model does with the columns of a table before it predicts, which other formats cannot hold.

use kernelpath::SavedModel;

/// Columns that a message names.
const NAMED: usize = 5;

/// What the model does, if it does anything, as the subject of a sentence's end.
pub(crate) fn encoded(model: &SavedModel) -> Option<String> {
    let columns = &model.encoding.as_ref()?.columns;
    let named = |is_it: &dyn Fn(usize) -> bool| {
        let places: Vec<usize> = (0..columns.len()).filter(|j| is_it(*j)).collect();
        let name = |j: &usize| columns[*j].name.as_ref().map_or_else(|| j.to_string(), |name| format!("{name:?}"));
        let more = if places.len() > NAMED { ", …" } else { "" };
        format!("{}{more}", places.iter().take(NAMED).map(name).collect::<Vec<_>>().join(", "))
    };
    if columns.iter().any(|column| column.texts.is_some()) {
        let names = named(&|j| columns[j].texts.is_some());
        return Some(format!("it turns the texts of columns {names} into numbers itself (--one-hot)"));
    }
    // A mean for every column is there whether or not one is needed.
    columns.iter().any(|column| !column.fill.is_empty()).then(|| {
        let names = named(&|j| !columns[j].fill.is_empty());
        format!("it fills in missing values of columns {names} itself (--missing mean)")
    })
}
