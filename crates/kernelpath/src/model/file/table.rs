//! How a table becomes features, as a model file has it.

use serde_json::{Map, Value, json};

use crate::model::encoding::{Encoding, Missing, TableColumn};

/// Its place in the document.
pub(crate) const ENCODING: &str = "table";

/// The encoding as JSON.
pub fn json_of_encoding(encoding: &Encoding) -> Value {
    let column = |column: &TableColumn| {
        let mut object = Map::new();
        object.insert("name".into(), json!(column.name));
        if let Some(texts) = &column.texts {
            object.insert("texts".into(), json!(texts));
        }
        if !column.fill.is_empty() {
            object.insert("fill".into(), json!(column.fill));
        }
        Value::Object(object)
    };
    json!({
        "columns": encoding.columns.iter().map(column).collect::<Vec<_>>(),
        "missing": encoding.missing.name(),
        "decimal_comma": encoding.decimal_comma,
        "label": encoding.label,
    })
}

/// The encoding that [`json_of_encoding`] wrote, of a model with that many features; or what is wrong with it.
pub fn encoding_of_json(value: &Value, features: usize) -> Result<Encoding, String> {
    let text = |value: Option<&Value>| match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err("a name in its table is not a text".to_string()),
    };
    let Some(columns) = value.get("columns").and_then(Value::as_array) else {
        return Err("its table has no columns".into());
    };
    let column = |value: &Value| {
        let texts = match value.get("texts") {
            None => None,
            Some(texts) => {
                let texts = serde_json::from_value::<Vec<String>>(texts.clone()).ok();
                let rises = |texts: &Vec<String>| texts.windows(2).all(|pair| pair[0] < pair[1]);
                Some(texts.filter(rises).ok_or("the texts of a column of its table are not in rising order")?)
            }
        };
        let mut column = TableColumn { name: text(value.get("name"))?, texts, fill: Vec::new() };
        if let Some(fill) = value.get("fill") {
            let fill = serde_json::from_value::<Vec<f64>>(fill.clone()).ok();
            let fits = |fill: &Vec<f64>| fill.len() == column.features() && fill.iter().all(|value| value.is_finite());
            column.fill = fill.filter(fits).ok_or("what a column of its table is filled with does not fit")?;
        }
        Ok(column)
    };
    let encoding = Encoding {
        columns: columns.iter().map(column).collect::<Result<_, String>>()?,
        missing: value
            .get("missing")
            .and_then(Value::as_str)
            .and_then(|name| Missing::from_name(name).ok())
            .ok_or("its table does not say what becomes of missing values")?,
        decimal_comma: value
            .get("decimal_comma")
            .and_then(Value::as_bool)
            .ok_or("its table does not say what decimals have")?,
        label: text(value.get("label"))?,
    };
    match encoding.features() {
        Some(found) if found != features => {
            Err(format!("the columns of its table become {found} features, but the model has {features}"))
        }
        _ => Ok(encoding),
    }
}
