//! Repositories that would have programs run: in the home, and in its sessions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::support::git::git_in;
use super::support::has_tool;
use super::support::verbs::{CHANGING, LOOKING, Siege};
use super::{at, besiege, besiege_briefly, clear, link_out, within};

/// Every way in which a repository can have a program run, each of which leaves something outside.
fn arm(git: &Path, outside: &Path) {
    let harm = outside.join("pwned").to_str().unwrap().to_owned();
    let script = git.join("run");
    fs::create_dir_all(git.join("hooks")).unwrap();
    fs::write(&script, format!("#!/bin/sh\necho \"$0 $*\" >>'{harm}'\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for hook in [
        "pre-commit",
        "post-commit",
        "post-checkout",
        "pre-auto-gc",
        "post-index-change",
        "reference-transaction",
        "prepare-commit-msg",
        "commit-msg",
        "post-rewrite",
        "fsmonitor-watchman",
        "pre-push",
        "proc-receive",
    ] {
        fs::copy(&script, git.join("hooks").join(hook)).unwrap();
    }
    let run = script.to_str().unwrap();
    let mut config = fs::read_to_string(git.join("config")).unwrap_or_default();
    config += &format!(
        "[core]\n\tfsmonitor = {run}\n\thooksPath = {hooks}\n\tsshCommand = {run}\n\tpager = {run}\n\teditor = {run}\n\taskPass = {run}\n\
         [filter \"x\"]\n\tclean = {run}\n\tsmudge = {run}\n\tprocess = {run}\n\trequired = true\n\
         [diff \"x\"]\n\ttextconv = {run}\n\tcommand = {run}\n[diff]\n\texternal = {run}\n\
         [alias]\n\tgc = !{run}\n\trepack = !{run}\n[gc]\n\trecentObjectsHook = {run}\n\
         [credential]\n\thelper = {run}\n[gpg]\n\tprogram = {run}\n[commit]\n\tgpgSign = true\n\
         [uploadpack]\n\tpackObjectsHook = {run}\n",
        hooks = git.join("hooks").display(),
    );
    fs::write(git.join("config"), config).unwrap();
}

const ATTRIBUTES: &str = "* filter=x diff=x text eol=crlf ident working-tree-encoding=UTF-16\n";

/// A session may hold repositories, which are plain files; whoever has armed them has their programs run by nobody.
#[test]
fn of_sessions() {
    if !has_tool("git") {
        return;
    }
    besiege(&[("in sessions", |s| {
        for top in [
            within(s, ""),
            within(s, "artifacts/clone"),
            at(s, "agents/a"),
            at(s, "sessions/.git"),
        ] {
            fs::create_dir_all(&top).unwrap();
            git_in(&top, &["init", "-q"]);
            arm(&top.join(".git"), &s.outside.root);
            s.place.put(top.join(".gitattributes"), ATTRIBUTES);
            let modules = "[submodule \"x\"]\n\tpath = sub\n\turl = ext::sh -c 'touch pwned'\n\tupdate = !touch pwned\n";
            s.place.put(top.join(".gitmodules"), modules);
            s.place.put(
                top.join("sub/.git"),
                format!("gitdir: {}\n", s.outside.path("repository/.git").display()),
            );
            s.place.put(top.join(".gitignore"), "*\n!../../..\n");
        }
        s.place.put(at(s, ".gitattributes"), ATTRIBUTES);
        s.place.put(
            at(s, ".gitmodules"),
            "[submodule \"../..\"]\n\tpath = ../../outside\n\turl = -u./x\n",
        );
    })]);
}

/// What was merely found is looked at, and git is not run in it: a clone may bring whatever it likes.
#[test]
fn of_a_home_that_was_merely_found() {
    if !has_tool("git") {
        return;
    }
    let mut siege = Siege::new("merely found");
    siege.place.ok(["commit", "-q"]);
    arm(&at(&siege, ".git"), &siege.outside.root);
    siege.place.put(at(&siege, ".gitattributes"), ATTRIBUTES);
    let toml = fs::read_to_string(at(&siege, "wbhome.toml")).unwrap();
    let harm = format!("touch '{}'", siege.outside.path("pwned").display());
    let toml = format!(
        "{toml}\n[nightly]\non_success = \"{harm}\"\non_failure = \"{harm}\"\n[check]\ncommand = \"{harm}\"\n[drill]\ncommand = \"{harm}\"\n"
    );
    // Only the sections that are not there yet: each stands in the file once.
    let toml = toml
        .replacen("\n[nightly]\n#", "\n#", 1)
        .replacen("\n[check]\n#", "\n#", 1)
        .replacen("\n[drill]\n#", "\n#", 1);
    fs::write(at(&siege, "wbhome.toml"), toml).unwrap();
    // Not the usual one any more.
    fs::rename(siege.place.home(), siege.place.path("clone")).unwrap();
    siege.from = Some("clone".into());
    siege.outside.watch();
    siege.runs(LOOKING);
    siege.runs(CHANGING);
    siege.run(&["commit", "--consolidate"]);
    siege.run(&["commit", "--push"]);
    siege.end();
}

/// In a home of one's own git is run as a person runs it, but never more than that: what commits and looks runs nothing.
#[test]
fn of_a_home_of_ones_own() {
    if !has_tool("git") {
        return;
    }
    let mut siege = Siege::new("one's own");
    siege.place.ok(["commit", "-q"]);
    arm(&at(&siege, ".git"), &siege.outside.root);
    siege.place.put(at(&siege, ".gitattributes"), ATTRIBUTES);
    siege.outside.watch();
    siege.runs(LOOKING);
    for args in [
        &["commit"][..],
        &["history", "@1"],
        &["diff", "@1"],
        &["restore", "@1", "--from", "git", "--force"],
    ] {
        siege.run(args);
    }
    siege.end();
}

/// A repository that leads out is another's.
#[test]
fn that_lead_out() {
    if !has_tool("git") {
        return;
    }
    fn of_another(siege: &Siege) -> String {
        let root = siege.outside.path("repository");
        fs::create_dir_all(&root).unwrap();
        git_in(&root, &["init", "-q"]);
        fs::write(root.join("file"), "x\n").unwrap();
        git_in(&root, &["add", "file"]);
        git_in(&root, &["commit", "-qm", "theirs"]);
        root.join(".git").to_str().unwrap().to_owned()
    }
    besiege_briefly(&[
        ("a link", |s| {
            of_another(s);
            link_out(s, ".git", "repository/.git");
            // Whose it is can only be told by looking.
            s.may_look_into = Some("outside/repository/.git");
        }),
        ("a file that names another", |s| {
            let git = of_another(s);
            clear(&at(s, ".git"));
            s.place.put(at(s, ".git"), format!("gitdir: {git}\n"));
            s.may_look_into = Some("outside/repository/.git");
        }),
        ("objects", |s| {
            of_another(s);
            s.place.ok(["commit", "-q"]);
            link_out(s, ".git/objects", "repository/.git/objects");
        }),
        ("refs", |s| {
            of_another(s);
            s.place.ok(["commit", "-q"]);
            link_out(s, ".git/refs", "repository/.git/refs");
        }),
        ("what is the tool's own in it", |s| {
            s.place.ok(["commit", "-q"]);
            link_out(s, ".git/wbhome", "");
        }),
        ("the info of it", |s| {
            s.place.ok(["commit", "-q"]);
            link_out(s, ".git/info", "");
        }),
    ]);
}
