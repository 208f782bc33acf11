//! Every guarantee about files is made here, and `std::fs` is used nowhere else.
//!
//! The rules of this room: a symbolic link is never followed below a root that was opened on purpose; a
//! file appears under its final name only when it is complete; nothing is replaced unless the caller says
//! so by name; an error names its path. Folders are held by descriptor ([`Dir`]), so that a path may be
//! longer than the kernel's `PATH_MAX` and can not be swapped for a link between two calls.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this room is the one that `std::fs` belongs to"
)]

mod append;
mod atomic;
mod copy;
mod cut;
mod dir;
mod duplicate;
mod expected;
mod files;
mod filesystem;
mod holds;
mod lock;
mod meta;
mod new_file;
mod open_files;
mod place;
mod process;
mod program;
mod record_lock;
mod space;
mod steady;
mod sync_folder;
mod terminal;
mod walk;
mod xattrs;

pub use append::Lines;
pub use atomic::{Written, replace, replace_any, replace_long, write_new};
pub use copy::{
    Buffers, Checked, Copied, CopyError, Identity, Transform, check_file, check_open, copy_file,
    digest_of_copy,
};
pub use cut::{Cut, Means, SLICE, Taken, blank_head, copy_out, end_of_lines, means, open_log};
pub use dir::Dir;
pub use duplicate::{duplicate, duplicate_as, duplicate_tree};
pub use expected::{Expected, remove_expected, replace_expected};
pub use files::{
    create_folder, create_private_folder, current_user, exists, is_folder, is_nowhere, overwrite,
    read, read_dir_names, read_end, read_own, read_small, read_small_in, real_path, remove_file,
    remove_name, remove_tree, rename_no_replace, set_mode, stat, symlink,
};
pub use filesystem::{Filesystem, Lack, filesystem, folds_case, may_write};
pub use holds::holds_all;
pub use lock::{FileLock, FolderLock, LockAttempt};
pub use meta::{FileKind, Meta, Stamp};
pub use new_file::{NewFile, TEMPORARY_PREFIX, dress_file, is_temporary, temporary_name};
pub use open_files::{OpenFile, OpenFiles, open_below, tells_open_files};
pub use place::{is_inside, same_file};
pub use process::{Process, host_name, is_root, machine_id, own_ids, process, processes};
pub use program::{Finished, ask_program, run_git, run_in, run_program};
pub use record_lock::{LockHolder, lock_holder};
pub use space::{Space, drop_cache, read_ahead, sync_filesystem};
pub use steady::{Content, Steady, is_fresh, read_steady};
pub use sync_folder::sync_folder;
pub use terminal::terminal_columns;
pub use walk::{Entry, Folder, Tree, walk, walk_each};
pub use xattrs::Xattrs;

/// BLAKE3 of a file's content, the digest `b3sum` prints.
pub type Digest = blake3::Hash;

/// The digest of a content.
pub fn digest(content: &[u8]) -> Digest {
    blake3::hash(content)
}
