//! `kernelpath man`: the manual page.

use clap::CommandFactory;
use clap_mangen::Man;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(subcommand: Option<&str>) -> Result<(), Failure> {
    let mut command = Arguments::command();
    command.build();
    let command = match subcommand {
        None => command,
        Some(name) => {
            let found = command.find_subcommand(name).cloned();
            let known = || command.get_subcommands().map(clap::Command::get_name).collect::<Vec<_>>().join(", ");
            let unknown = || Failure::input(format!("there is no command {name:?}: known are {}", known()));
            found.ok_or_else(unknown)?.display_name(format!("kernelpath-{name}"))
        }
    };
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(|error| Failure::from(&error))?;
    output::print(&String::from_utf8_lossy(&page))
}
