//! The processes of this machine, as far as it lets us see.

use std::path::PathBuf;

/// A running process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// The name of its program, at most 15 bytes on Linux.
    pub name: String,
    /// When it started, in milliseconds since 1970; `None` where the system does not tell.
    pub started_ms: Option<i64>,
}

/// All processes; empty where the system has no `/proc`.
pub fn processes() -> Vec<Process> {
    let booted = boot_time();
    let pids = pids().into_iter();
    pids.filter_map(|pid| process_since(pid, booted)).collect()
}

/// The numbers of all processes, zombies among them; empty where the system has no `/proc`.
pub(super) fn pids() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

/// One process; `None` when there is none of that number, or only a zombie.
pub fn process(pid: u32) -> Option<Process> {
    process_since(pid, boot_time())
}

/// The same on a machine that started then, which costs more to ask than all of a process.
#[cfg(target_os = "linux")]
fn process_since(pid: u32, booted: Option<i64>) -> Option<Process> {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return unseen(pid);
    };
    // `pid (name) state ppid …`: the name may itself hold parentheses and spaces. See proc_pid_stat(5).
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let name = stat.get(open + 1..close)?.to_owned();
    let fields: Vec<&str> = stat.get(close + 1..)?.split_ascii_whitespace().collect();
    if matches!(fields.first(), Some(&"Z" | &"X")) {
        return None;
    }
    // Field 22, counted from the pid; the slice begins with field 3.
    let started_ms = fields
        .get(19)
        .and_then(|ticks| ticks.parse::<i64>().ok())
        .and_then(|ticks| {
            let hertz = i64::try_from(rustix::param::clock_ticks_per_second()).ok()?;
            Some(booted?.checked_mul(1000)? + ticks.checked_mul(1000)? / hertz.max(1))
        });
    Some(Process {
        pid,
        name,
        started_ms,
    })
}

/// One process; `None` when there is none of that number.
#[cfg(not(target_os = "linux"))]
fn process_since(pid: u32, _: Option<i64>) -> Option<Process> {
    unseen(pid)
}

/// A process of which only the number can be asked for: `/proc` may hide those of other users (`hidepid`).
fn unseen(pid: u32) -> Option<Process> {
    let number = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)?;
    match rustix::process::test_kill_process(number) {
        Ok(()) | Err(rustix::io::Errno::PERM) => Some(Process {
            pid,
            name: String::new(),
            started_ms: None,
        }),
        Err(_) => None,
    }
}

/// Seconds since 1970 at which the machine started.
#[cfg(target_os = "linux")]
fn boot_time() -> Option<i64> {
    std::fs::read_to_string("/proc/stat")
        .ok()?
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()
}

/// Seconds since 1970 at which the machine started: not told here.
#[cfg(not(target_os = "linux"))]
fn boot_time() -> Option<i64> {
    None
}

/// The path behind one of a process's own links (`cwd`, `exe`, `fd/3`), when we may see it.
pub(super) fn link_of(pid: u32, link: &str) -> std::io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/{link}"))
}

/// Whether this process may give files away.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The mask that takes permission bits from what this process makes; all of them where the system does not
/// tell without changing it.
pub(super) fn umask() -> u32 {
    static MASK: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *MASK.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
            .unwrap_or(0o777)
    })
}

/// The user and group that what this process makes belongs to.
pub fn own_ids() -> (u32, u32) {
    (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    )
}

/// What tells this machine from all others, where the system keeps such a thing. See machine-id(5).
pub fn machine_id() -> Option<String> {
    let read = |path: &&str| std::fs::read_to_string(path).ok();
    let text = ["/etc/machine-id", "/var/lib/dbus/machine-id"]
        .iter()
        .find_map(read)?;
    let id = text.trim();
    (!id.is_empty() && id != "uninitialized").then(|| id.to_owned())
}

/// What this machine calls itself.
pub fn host_name() -> String {
    let name = rustix::system::uname();
    match name.nodename().to_string_lossy() {
        name if name.is_empty() => "localhost".to_owned(),
        name => name.into_owned(),
    }
}
