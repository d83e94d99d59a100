//! `kernelpath devices`: what a fit can run on.

use kernelpath::{DeviceInfo, devices};
use serde_json::json;

use crate::arguments::small::DevicesArguments;
use crate::failure::Failure;
use crate::output;
use crate::table::Table;

pub(crate) fn run(arguments: &DevicesArguments) -> Result<(), Failure> {
    let devices = devices();
    if arguments.json {
        let all: Vec<_> = devices.iter().map(json_of).collect();
        return output::print_json(&json!(all));
    }
    let mut table = Table::new(["--device", "name", "driver", "memory", "problem"]);
    for device in &devices {
        let memory = if device.memory == 0 { String::new() } else { format!("{} MB", device.memory >> 20) };
        let problem = device.problem.clone().unwrap_or_default();
        table.push([device.choice.to_string(), device.name.clone(), device.driver.clone(), memory, problem]);
    }
    output::print(&table.text())
}

fn json_of(device: &DeviceInfo) -> serde_json::Value {
    json!({
        "device": device.choice.to_string(),
        "name": device.name,
        "driver": device.driver,
        "memory": device.memory,
        "double": device.double,
        "is_processor": device.is_processor,
        "problem": device.problem,
    })
}
