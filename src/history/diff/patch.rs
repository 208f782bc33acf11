//! The same as a patch, byte for byte: `git apply` takes it in the home.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Diff, Differing, Form, Hunk};
use crate::history::committed::{ChangeKind, Version, VersionKind};
use crate::history::names::SESSIONS;

/// The patch; what is binary or too large is not in it. Only what was compared as raw lines makes one.
pub fn patch(diff: &Diff) -> Vec<u8> {
    let mut out = Vec::new();
    for file in diff.files.iter().filter(|file| file.form == Form::Raw) {
        let path = Path::new(SESSIONS)
            .join(diff.session.as_str())
            .join(&*file.path);
        write(&mut out, path.as_os_str().as_bytes(), file);
    }
    out
}

fn write(out: &mut Vec<u8>, path: &[u8], file: &Differing) {
    let (old, new) = (quoted(b"a/", path), quoted(b"b/", path));
    out.extend([b"diff --git ", old.as_slice(), b" ", &new, b"\n"].concat());
    let mode = |version: &Option<Version>| {
        let kind = version.as_ref().map_or(VersionKind::File, |v| v.kind);
        format!("{:o}", kind.mode())
    };
    let (before, after) = (mode(&file.before), mode(&file.after));
    let (none, unchanged) = ("0".repeat(40), before == after);
    let blob = |version: &Option<Version>| {
        let blob = version.as_ref().map(|v| v.blob.clone());
        blob.unwrap_or_else(|| none.clone())
    };
    let mut line = |text: String| out.extend(format!("{text}\n").into_bytes());
    match file.change {
        ChangeKind::Added => line(format!("new file mode {after}")),
        ChangeKind::Deleted => line(format!("deleted file mode {before}")),
        ChangeKind::Changed if !unchanged => {
            line(format!("old mode {before}"));
            line(format!("new mode {after}"));
        }
        ChangeKind::Changed => {}
    }
    let tail = match file.change == ChangeKind::Changed && unchanged {
        true => format!(" {before}"),
        false => String::new(),
    };
    let (one, other) = (blob(&file.before), blob(&file.after));
    if one != other {
        line(format!("index {one}..{other}{tail}"));
    }
    if file.hunks.is_empty() {
        return;
    }
    // A tab ends a name with a space in it.
    let end: &[u8] = match path.contains(&b' ') {
        true => b"\t\n",
        false => b"\n",
    };
    let mut side = |sign: &[u8], name: &[u8], there: bool| match there {
        true => out.extend([sign, name, end].concat()),
        false => out.extend([sign, b"/dev/null\n"].concat()),
    };
    side(b"--- ", &old, file.before.is_some());
    side(b"+++ ", &new, file.after.is_some());
    for hunk in &file.hunks {
        write_hunk(out, hunk);
    }
}

fn write_hunk(out: &mut Vec<u8>, hunk: &Hunk) {
    let head = format!(
        "@@ -{},{} +{},{} @@\n",
        hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines
    );
    out.extend(head.into_bytes());
    for line in &hunk.lines {
        out.push(line.kind.sign() as u8);
        out.extend_from_slice(&line.text);
        out.push(b'\n');
        if line.unended {
            out.extend_from_slice(b"\\ No newline at end of file\n");
        }
    }
}

/// A name as git writes it, with `core.quotePath` off: quoted as in C when it must be.
fn quoted(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    let odd = |b: &u8| *b < 0x20 || *b == 0x7f || matches!(b, b'"' | b'\\');
    if !path.iter().any(odd) {
        return [prefix, path].concat();
    }
    let mut out = vec![b'"'];
    out.extend_from_slice(prefix);
    for b in path {
        match b {
            b'"' | b'\\' => out.extend([b'\\', *b]),
            b'\n' => out.extend(b"\\n"),
            b'\t' => out.extend(b"\\t"),
            b if odd(b) => out.extend(format!("\\{b:03o}").into_bytes()),
            b => out.push(*b),
        }
    }
    out.push(b'"');
    out
}
