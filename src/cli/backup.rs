//! `wbhome backup`: the cold stores.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use serde::Serialize;

use super::args::Global;
use super::output::{Console, STRONG, styled};
use super::{complete, place};
use crate::backup::{self, LockedStore, Store};
use crate::base::{Context, Error, Exit, Result};
use crate::home::{Config, Home};

mod init;
mod ls;
mod prune;
mod run;
mod verify;
mod word;

/// Back up the home into cold stores, which are folders on other disks
///
/// A store holds packs of what has changed, and snapshots that say which belong together. It is read with stock tools: the newest file of each folder below packs/ is what was last there.
/// docs/disaster.md shows how.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome backup init /mnt/cold/wbhome    once: makes the store, and adds it to wbhome.toml
  wbhome backup run                      every night: what has changed since the last snapshot
  wbhome backup run -n                   what would be packed, and why
  wbhome backup verify                   every pack of the newest snapshot, read from beginning to end
  wbhome backup prune                    what nothing needs any more")]
pub(super) struct BackupArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a store, and add it to wbhome.toml
    Init(init::InitArgs),
    /// Pack what has changed since the last snapshot, and make a new one
    #[command(after_help = "Examples:
  wbhome backup run
  wbhome backup run -n -v    what would be packed, and why")]
    Run(StoreArgs),
    /// List the snapshots, or the packs of a session
    Ls(ls::LsArgs),
    /// Read packs from beginning to end, and compare them with what was written
    Verify(verify::VerifyArgs),
    /// Remove snapshots older than [backup] keep, and packs that no snapshot needs
    #[command(after_help = "Examples:
  wbhome backup prune -n    what would go
  wbhome backup prune --store /mnt/cold/wbhome")]
    Prune(StoreArgs),
    /// Bind a store to this home after it was restored or moved
    Adopt(word::AdoptArgs),
    /// Accept that sessions are gone, or hold less: what is kept of them goes in time
    Accept(word::AcceptArgs),
}

/// Which stores are meant.
#[derive(Debug, Args)]
pub(super) struct StoreArgs {
    /// This store alone [default: each [[backup.store]] in wbhome.toml]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, add = complete::stores())]
    store: Option<PathBuf>,
}

impl StoreArgs {
    /// The folders of the stores that are meant.
    ///
    /// # Errors
    /// When none is named, and none is set.
    pub fn folders(&self, home: &Home) -> Result<Vec<PathBuf>> {
        match &self.store {
            Some(store) => Ok(vec![place::current_folder()?.join(store)]),
            None => place::stores(home),
        }
    }
}

pub(super) fn run(
    args: BackupArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    match args.action {
        Action::Init(args) => init::run(args, global, console, ctx),
        Action::Run(args) => run::run(args, global, console, ctx),
        Action::Ls(args) => ls::run(args, global, console, ctx),
        Action::Verify(args) => verify::run(args, global, console, ctx),
        Action::Prune(args) => prune::run(args, global, console, ctx),
        Action::Adopt(args) => word::adopt(args, global, console, ctx),
        Action::Accept(args) => word::accept(args, global, console, ctx),
    }
}

/// What was done in each store, as one JSON document.
#[derive(Serialize)]
struct Stores<T> {
    stores: Vec<T>,
    /// Those in which nothing could be done.
    failed: Vec<Failed>,
}

#[derive(Serialize)]
struct Failed {
    store: crate::base::wire::WirePath,
    kind: &'static str,
    message: String,
    hints: Vec<String>,
}

/// Does something in each store, and goes on with the next when one fails. A single store that fails is an error as any
/// other.
fn in_each<T: Serialize>(
    folders: Vec<PathBuf>,
    schema: &str,
    global: &Global,
    console: &Console,
    act: impl Fn(&Path) -> Result<(T, Exit)>,
    write: impl Fn(&mut String, &T),
) -> Result<Exit> {
    let mut all = Stores {
        stores: Vec::new(),
        failed: Vec::new(),
    };
    let mut exit = Exit::Done;
    let alone = folders.len() == 1;
    for folder in folders {
        match act(&folder) {
            Ok((done, of_one)) => {
                exit = exit.merge(of_one);
                all.stores.push(done);
            }
            Err(error) if alone || error.kind() == crate::base::Kind::Interrupted => {
                return Err(error);
            }
            Err(error) => {
                exit = exit.merge(error.kind().exit());
                super::errors::report(console, &error, &place::again(global));
                all.failed.push(Failed {
                    store: folder.into(),
                    kind: error.kind().as_str(),
                    message: error.to_string(),
                    hints: error.hints().to_vec(),
                });
            }
        }
    }
    console.report(schema, &all, |out| {
        for (n, one) in all.stores.iter().enumerate() {
            if n > 0 {
                out.push('\n');
            }
            write(out, one);
        }
    })?;
    Ok(exit)
}

/// Opens a store of the home and takes its lock.
fn lock(
    folder: &Path,
    home: &Home,
    verb: &str,
    global: &Global,
    ctx: &Context,
) -> Result<LockedStore> {
    Store::open_of(folder, home)?.lock(global.lock_wait, verb, ctx)
}
