//! The bar: on a terminal only, and only for what takes longer than a quarter of a second.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::args::Global;
use crate::base::{Progress, Total};

const DELAY: Duration = Duration::from_millis(250);

/// Draws on standard error.
pub(super) struct Bar {
    wanted: bool,
    stage: Mutex<Option<Stage>>,
}

struct Stage {
    bar: ProgressBar,
    begun: Instant,
    by_bytes: bool,
}

impl Bar {
    pub fn new(global: &Global) -> Self {
        let wanted = !global.quiet && !global.no_progress && std::io::stderr().is_terminal();
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Bar {
            wanted: wanted && !dumb,
            stage: Mutex::new(None),
        }
    }
}

fn style(total: Total) -> ProgressStyle {
    let template = match (total.bytes, total.items) {
        (0, 0) => "{msg} {spinner}",
        (0, _) => "{msg} {wide_bar} {human_pos}/{human_len}",
        _ => "{msg} {wide_bar} {bytes}/{total_bytes} {eta}",
    };
    // The templates are ours and known to parse.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Progress for Bar {
    fn stage(&self, name: &'static str, total: Total) {
        if !self.wanted {
            return;
        }
        self.finish();
        let length = if total.bytes > 0 {
            total.bytes
        } else {
            total.items
        };
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        bar.set_style(style(total));
        bar.set_message(name);
        if let Ok(mut stage) = self.stage.lock() {
            *stage = Some(Stage {
                bar,
                begun: Instant::now(),
                by_bytes: total.bytes > 0,
            });
        }
    }

    fn advance(&self, items: u64, bytes: u64) {
        if !self.wanted {
            return;
        }
        let Ok(stage) = self.stage.lock() else { return };
        let Some(Stage {
            bar,
            begun,
            by_bytes,
        }) = stage.as_ref()
        else {
            return;
        };
        if bar.is_hidden() && begun.elapsed() > DELAY {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.inc(if *by_bytes { bytes } else { items });
    }

    fn finish(&self) {
        if let Ok(mut stage) = self.stage.lock()
            && let Some(stage) = stage.take()
        {
            stage.bar.finish_and_clear();
        }
    }
}
