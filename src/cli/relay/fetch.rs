//! `wbhome relay fetch`.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::*;
use crate::base::human;
use crate::cli::when::moment;
use crate::relay::fetch::{self, Plan, Request};
use crate::relay::{Holder, Odd, Sender};

/// Copy what the relay has of a session into another folder, read-only
///
/// Nothing in the home or in the relay is changed. No link is followed; each file is read back and compared. DIR/SESSION.origin.json says where the copy came from.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome relay fetch 20240603_crawler --to /tmp/look
  wbhome relay fetch crawler --to ~/compare -n       what would be copied")]
pub(super) struct FetchArgs {
    /// The session: the name of a folder in the relay, or a unique part of it
    #[arg(value_name = "SESSION", add = complete::relayed_sessions())]
    session: String,
    /// The folder that the copy is put into, outside of the relay and the home; made when it is missing
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    to: PathBuf,
}

pub(super) fn run(
    args: FetchArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    let relay = place::open_relay(&home)?;
    let request = Request {
        session: args.session,
        to: place::absolute(&args.to)?,
    };
    let plan = fetch::plan(&home, &relay, &request, ctx)?;
    if global.dry_run {
        warn(&plan, console);
        console.result("relay-fetch-plan/1", &plan, |out| {
            write(out, &plan, ctx);
            let _ = writeln!(out, "It would be copied to {}", human::path(&plan.to));
        })?;
        return Ok(exit(&plan));
    }
    let done = fetch::apply(&home, &relay, plan, ctx)?;
    warn(&done.done, console);
    console.report("relay-fetch/1", &done, |out| {
        write(out, &done.done, ctx);
        let _ = writeln!(
            out,
            "Copied to {}, read-only; where it came from: {}",
            human::path(&done.done.to),
            human::path(&done.done.note)
        );
    })?;
    Ok(exit(&done.done))
}

fn exit(plan: &Plan) -> Exit {
    match plan.unread.is_empty() {
        true => Exit::Done,
        false => Exit::Partial,
    }
}

fn warn(plan: &Plan, console: &Console) {
    for warning in &plan.warnings {
        console.warn(warning);
    }
    for odd in &plan.unread {
        console.warn(&format!("can not be read: {}: {}", shown(odd), odd.why));
    }
    leading_out(&plan.leading_out, console);
}

/// Links that lead out of a session.
pub(super) fn leading_out(links: &[Odd], console: &Console) {
    for link in links {
        console.warn(&format!(
            "a link leads out of the session: {} -> {}",
            shown(link),
            link.why
        ));
    }
}

/// A path below the session, for a person.
pub(super) fn shown(odd: &Odd) -> String {
    match odd.path.as_os_str().is_empty() {
        true => "the session's own folder".to_owned(),
        false => human::path(&odd.path),
    }
}

fn write(out: &mut String, plan: &Plan, ctx: &Context) {
    let _ = writeln!(
        out,
        "{}   {}, {}",
        styled(STRONG, human::name(plan.session.as_str())),
        human::plural(plan.files, "file", "files"),
        human::size(plan.bytes)
    );
    let _ = writeln!(out, "  sent by   {}", sent_by(plan.sender.as_ref(), ctx));
    if let Some(lease) = &plan.lease {
        let _ = writeln!(out, "  lease     {}", held_by(lease, ctx));
    }
    for odd in &plan.left_out {
        let _ = writeln!(out, "  left out  {}   {}", shown(odd), odd.why);
    }
}

/// Which device has sent a version, and when.
pub(super) fn sent_by(sender: Option<&Sender>, ctx: &Context) -> String {
    match sender {
        Some(sender) => format!(
            "{}, {} by its clock",
            human::name(&sender.name),
            moment(sender.at, ctx)
        ),
        None => "no other device says that it has sent it".to_owned(),
    }
}

/// Which device holds a lease, and since when.
pub(super) fn held_by(holder: &Holder, ctx: &Context) -> String {
    let who = match holder.ours {
        true => "this device".into(),
        false => human::name(&holder.name),
    };
    format!("{who}, since {}", moment(holder.since, ctx))
}
