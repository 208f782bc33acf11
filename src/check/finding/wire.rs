//! How a finding looks in JSON. Paths are text there, and a path that is not UTF-8 is told exactly beside it.

use serde::{Deserialize, Serialize};

use super::{Finding, FindingKind};
use crate::base::wire::{path_fields, path_from};
use crate::check::conflict::Relation;

#[derive(Serialize, Deserialize)]
pub(super) struct Wire {
    kind: FindingKind,
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of_bytes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    relation: Option<Relation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

impl From<Finding> for Wire {
    fn from(finding: Finding) -> Self {
        let (path, path_bytes) = path_fields(&finding.path);
        let (of, of_bytes) = match finding.of.as_deref().map(path_fields) {
            Some((of, bytes)) => (Some(of), bytes),
            None => (None, None),
        };
        Wire {
            kind: finding.kind,
            path,
            path_bytes,
            session: finding.session,
            detail: finding.detail,
            of,
            of_bytes,
            relation: finding.relation,
            turn: finding.turn,
            count: finding.count,
            command: finding.command,
        }
    }
}

impl From<Wire> for Finding {
    fn from(wire: Wire) -> Self {
        Finding {
            kind: wire.kind,
            path: path_from(wire.path, wire.path_bytes.as_deref()),
            session: wire.session,
            detail: wire.detail,
            of: wire.of.map(|of| path_from(of, wire.of_bytes.as_deref())),
            relation: wire.relation,
            turn: wire.turn,
            count: wire.count,
            command: wire.command,
        }
    }
}
