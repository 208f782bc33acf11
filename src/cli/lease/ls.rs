//! `wbhome lease ls`.

use super::*;
use crate::cli::output::stdout_is_terminal;
use crate::cli::table::{self, Cells, Column};
use crate::cli::when::moment;
use crate::relay::leases::{self, Outcome, Row};
use crate::relay::{Claim, look};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome lease ls
  wbhome lease ls --all    also of sessions that are neither in this home nor in the relay")]
pub(super) struct LsArgs {
    /// Also those of sessions that are neither in this home nor in the relay
    #[arg(long)]
    all: bool,
}

pub(super) fn run(args: LsArgs, global: &Global, console: &Console, ctx: &Context) -> Result<Exit> {
    let home = place::open(global)?;
    let setting = place::set_relay(&home)?;
    let device = place::device(console);
    let look = look(&home, &setting.dir, device.as_ref());
    match &look.noted {
        None => {}
        Some((why, Some(at))) => console.warn(&format!(
            "the relay {} can not be reached, and this was noted {}: {}",
            human::path(&setting.dir),
            moment(*at, ctx),
            human::escape(why)
        )),
        Some((why, None)) => {
            return Err(Error::failed("the relay can not be reached:")
                .at(&setting.dir)
                .because(std::io::Error::other(why.clone()))
                .hint("if it is on a disk that is not mounted, mount it")
                .hint("`wbhome relay init` makes a folder a relay of this device"));
        }
    }
    let listed = leases::list(&home, &setting.dir, &look, args.all, ctx)?;
    super::strange(&look.devices, console);
    console.result("lease-ls/1", &listed, |out| write(out, &listed, ctx))?;
    let again = place::again(global);
    let lost = |row: &&Row| row.overtaken.iter().any(|claim| claim.holder.ours);
    for row in listed.leases.iter().filter(lost) {
        let named = human::argument(&row.session);
        console.hint(&format!(
            "this device was overtaken; to give its claim up: {again} lease release {named}"
        ));
    }
    if listed.elsewhere > 0 {
        let many = human::plural(listed.elsewhere, "lease", "leases");
        console.hint(&format!(
            "{many} of sessions that are neither here nor in the relay: {again} lease ls --all"
        ));
    }
    Ok(Exit::Done)
}

fn write(out: &mut String, listed: &Outcome, ctx: &Context) {
    if listed.leases.is_empty() {
        out.push_str("No lease.\n");
        return;
    }
    let column = |title, holds, cell: &dyn Fn(&Row) -> String| Column {
        title,
        holds,
        cells: listed.leases.iter().map(cell).collect(),
    };
    let columns = vec![
        column("SESSION", Cells::Words, &|row| {
            human::name(&row.session).into_owned()
        }),
        column("HOLDER", Cells::Words, &|row| {
            row.holder.as_ref().map_or("nobody".to_owned(), who)
        }),
        column("SINCE", Cells::Words, &|row| {
            let since = |claim: &Claim| moment(claim.holder.since, ctx);
            row.holder.as_ref().map_or("-".to_owned(), since)
        }),
        column("LAST CHANGED", Cells::Words, &|row| {
            let heard = |claim: &Claim| claim.heard_briefly(ctx);
            row.holder.as_ref().map_or("-".to_owned(), heard)
        }),
        column("ALSO CLAIMED BY", Cells::Text, &|row| {
            let others = row.overtaken.iter().map(who);
            others.collect::<Vec<_>>().join(", ")
        }),
    ];
    table::write(out, columns, 3, stdout_is_terminal());
}

fn who(claim: &Claim) -> String {
    match claim.holder.ours {
        true => "this device".to_owned(),
        false => human::name(&claim.holder.name).into_owned(),
    }
}
