//! `wbhome lease ls`.

use super::*;
use crate::cli::history::moment;
use crate::cli::output::stdout_is_terminal;
use crate::cli::table::{self, Cells, Column};
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
    let device = place::device();
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
    let listed = leases::list(&home, &setting.dir, &look, args.all)?;
    for strange in &listed.strange {
        console.warn(&format!(
            "{} in .leases can not be understood, and may be a claim: {}",
            human::name(&strange.name),
            human::escape(&strange.why)
        ));
    }
    console.result("lease-ls/1", &listed, |out| write(out, &listed, ctx))?;
    let again = place::again(global);
    let lost = |row: &&Row| !row.holder.holder.ours && row.overtaken.iter().any(|c| c.holder.ours);
    for row in listed.leases.iter().filter(lost) {
        let named = human::quoted(std::path::Path::new(&row.session));
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
        column("HOLDER", Cells::Words, &|row| who(&row.holder)),
        column("SINCE", Cells::Words, &|row| {
            moment(row.holder.holder.since, ctx)
        }),
        column("LAST CHANGED", Cells::Words, &|row| heard(&row.holder, ctx)),
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

/// When the file of the device was seen to change last.
fn heard(claim: &Claim, ctx: &Context) -> String {
    match claim.unchanged_since {
        _ if claim.holder.ours => "-".to_owned(),
        Some(since) => human::age(ctx.clock.now(), since),
        None => "just now".to_owned(),
    }
}
