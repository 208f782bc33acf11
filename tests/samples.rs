//! Transcripts in the dialects of three agents, migrated with the roots that they mention: every line is still the JSON
//! that it was, and differs only in the references.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests lay out their own folders and say what went wrong"
)]

mod support;

use serde_json::Value;
use support::Place;
use support::moving::{SESSION, small_home};
use support::naive::{Seen, Spellings};

struct Sample {
    name: &'static str,
    root: &'static str,
    text: &'static str,
    /// References to the root, and what only looks like one.
    seen: Seen,
}

/// One object a line with `parentUuid`, `cwd` on each; tool calls with nested input; a torn last line. In a line of a diff
/// the `+` before the path may belong to a longer name: it is left.
const CLAUDE: Sample = Sample {
    name: "claude.jsonl",
    root: "/Users/mei/Cloud Drive/demo",
    seen: Seen {
        changed: 13,
        left: 4,
    },
    text: r#"{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/Users/mei/Cloud Drive/demo","sessionId":"0c2e6a52-9a0f-4d0e-9d3c-5f1f5a1f0001","version":"1.0.44","gitBranch":"main","type":"user","message":{"role":"user","content":"<command-name>/init</command-name>\nMach bitte weiter in /Users/mei/Cloud Drive/demo/src. Nicht in /Users/mei/Cloud Drive/demo-2!"},"uuid":"a1","timestamp":"2025-03-01T08:00:00.000Z"}
{"parentUuid":"a1","cwd":"/Users/mei/Cloud Drive/demo","type":"assistant","message":{"id":"msg_01","role":"assistant","model":"m-4","content":[{"type":"thinking","thinking":"The file \"/Users/mei/Cloud Drive/demo/README.md\" comes first.","signature":"Eq=="},{"type":"tool_use","id":"toolu_01","name":"Bash","input":{"command":"cd /Users/mei/Cloud\\ Drive/demo && ls -la '/Users/mei/Cloud Drive/demo/src'","description":"List"}}],"usage":{"input_tokens":4,"cache_read_input_tokens":16012,"cost":0.0120}},"uuid":"a2","timestamp":"2025-03-01T08:00:04.120Z"}
{"parentUuid":"a2","cwd":"/Users/mei/Cloud Drive/demo","type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_01","type":"tool_result","content":"total 8\n-rw-r--r-- 1 mei staff 12 main.rs\n/Users/mei/Cloud Drive/demo/src/main.rs:1:fn main() {}\n/Users/mei/Cloud Drive/demo.bak/old.rs"}]},"toolUseResult":{"stdout":"/Users/mei/Cloud Drive/demo\n","interrupted":false,"filePath":"/Users/mei/Cloud Drive/demo/src/main.rs","structuredPatch":[{"oldStart":1,"lines":["-a \\ b","+/Users/mei/Cloud Drive/demo"]}]},"uuid":"a3","timestamp":"2025-03-01T08:00:05.000Z"}
{"type":"file-history-snapshot","messageId":"a3","snapshot":{"trackedFileBackups":{"/Users/mei/Cloud Drive/demo/src/main.rs":{"version":1}},"n":12345678901234567890}}
{"type":"summary","summary":"Liste der Dateien","leafUuid":"a3"}
{"type":"summary","summary":"file:///Users/mei/Cloud%20Drive/demo/src and /Volumes/Backup/Users/mei/Cloud Drive/demo","leafUuid":"a3","x":1e400}
{"parentUuid":"a3","cwd":"/Users/mei/Cloud Drive/demo","type":"assis"#,
};

/// `response_item` payloads whose arguments and outputs are JSON in strings; Python's escapes.
const CODEX: Sample = Sample {
    name: "codex.jsonl",
    root: "/home/li/坚果云/repo",
    seen: Seen {
        changed: 12,
        left: 2,
    },
    text: r#"{"timestamp": "2025-06-02T10:48:56.000Z", "type": "session_meta", "payload": {"id": "019fc8be-0001", "cwd": "/home/li/\u575a\u679c\u4e91/repo", "originator": "cli", "instructions": null, "git": {"branch": "main", "repository_url": "https://example.invalid/home/li/repo.git"}}}
{"timestamp": "2025-06-02T10:48:57.000Z", "type": "turn_context", "payload": {"cwd": "/home/li/\u575A\u679C\u4E91/repo", "workspace_roots": ["/home/li/坚果云/repo", "/tmp"], "sandbox_policy": {"writable_roots": ["\/home\/li\/坚果云\/repo"]}, "effort": 0.50}}
{"timestamp": "2025-06-02T10:49:00.000Z", "type": "response_item", "payload": {"type": "function_call", "name": "shell", "arguments": "{\"command\": [\"bash\", \"-lc\", \"cat /home/li/\\u575a\\u679c\\u4e91/repo/a.py\"], \"workdir\": \"/home/li/\\u575a\\u679c\\u4e91/repo\"}", "call_id": "call_1"}}
{"timestamp": "2025-06-02T10:49:01.000Z", "type": "response_item", "payload": {"type": "function_call_output", "call_id": "call_1", "output": "{\"output\": \"ROOT = '/home/li/坚果云/repo'\\nOTHER = '/home/li/坚果云/repo_old'\\n\", \"metadata\": {\"exit_code\": 0, \"duration_seconds\": 0.10}}"}}
{"timestamp": "2025-06-02T10:49:02.000Z", "type": "response_item", "payload": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "文件在/home/li/坚果云/repo/a.py，输出在（/home/li/坚果云/repo）。\n```sh\ncd \"/home/li/坚果云/repo\"\n```\n"}]}}
{"timestamp": "2025-06-02T10:49:03.000Z", "type": "response_item", "payload": {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch\n*** Update File: /home/li/坚果云/repo/a.py\n@@\n-x = 1\n+x = '/home/li/坚果云/repo (1)/y'\n*** End Patch\n"}}
{"timestamp": "2025-06-02T10:49:04.000Z", "type": "event_msg", "payload": {"type": "token_count", "info": {"total": 12345678901234567890, "rate": 1.0}, "uri": "file:///home/li/%e5%9d%9a%e6%9e%9c%e4%ba%91/repo/a.py"}}
"#,
};

/// Short lines, content in typed parts, two objects on one line, a run of NULs after a power cut.
const PI: Sample = Sample {
    name: "pi.jsonl",
    root: "C:\\Users\\Dev\\OneDrive\\work",
    seen: Seen {
        changed: 0,
        left: 0,
    },
    text: "{\"type\":\"session\",\"id\":\"d703a1a9\",\"cwd\":\"C:\\\\Users\\\\Dev\\\\OneDrive\\\\work\",\"provider\":\"p\",\"thinkingLevel\":\"off\"}\n{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"open C:/Users/Dev/OneDrive/work/a.md\"}],\"timestamp\":1763681581544}}{\"type\":\"model_change\",\"modelId\":\"m\"}\n{\"type\":\"message\",\"message\":{\"role\":\"toolResult\",\"toolName\":\"read\",\"content\":[{\"type\":\"text\",\"text\":\"at C:\\\\Users\\\\Dev\\\\OneDrive\\\\work2\\\\b.md\"}],\"isError\":false}}\n\0\0\0\0\0\0\0\0{\"type\":\"message\",\"cost\":0.00}\n",
};

/// Migrates a home with one transcript, whose root is mapped, and gives both contents of it.
fn moved(sample: &Sample) -> (String, String, String, Value) {
    let place = Place::new();
    small_home(&place, "C", "/nowhere");
    let path = format!("{SESSION}/context/{}", sample.name);
    place.put(format!("C/{path}"), sample.text);
    let home = place.path("本地 home").to_str().unwrap().to_owned();
    let map = format!("{}={home}", sample.root);
    let ran = place.run(["migrate", "C", "本地 home", "--map", &map, "--json"]);
    let outcome = ran.expect(0).json();
    let content = place.text(format!("本地 home/{path}"));
    (sample.text.to_owned(), content, home, outcome)
}

/// The lines of both, of which each that is JSON must be so afterwards, with the same structure and numbers.
fn same_structure(before: &str, after: &str) -> usize {
    let (old, new): (Vec<_>, Vec<_>) = (before.split('\n').collect(), after.split('\n').collect());
    assert_eq!(old.len(), new.len());
    let mut changed = 0;
    for (old, new) in old.into_iter().zip(new) {
        changed += usize::from(old != new);
        let parsed = |line: &str| {
            serde_json::Deserializer::from_str(line)
                .into_iter::<Value>()
                .collect::<Result<Vec<_>, _>>()
        };
        let (Ok(old_value), new_value) = (parsed(old), parsed(new)) else {
            continue;
        };
        let new_value = new_value.unwrap_or_else(|e| panic!("{e}:\n{old}\n{new}"));
        assert_eq!(old_value.len(), new_value.len());
        for (a, b) in old_value.iter().zip(&new_value) {
            alike(a, b);
        }
    }
    changed
}

/// The same but for texts: these only have to be texts. JSON in a text must be JSON afterwards.
fn alike(one: &Value, other: &Value) {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            assert_eq!(one.len(), other.len());
            one.iter().zip(other).for_each(|(a, b)| alike(a, b));
        }
        (Value::Object(one), Value::Object(other)) => {
            assert_eq!(one.len(), other.len());
            one.values()
                .zip(other.values())
                .for_each(|(a, b)| alike(a, b));
        }
        (Value::String(one), Value::String(other)) => {
            if let Ok(one @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(one) {
                let other = serde_json::from_str(other).unwrap_or_else(|e| panic!("{e}: {other}"));
                alike(&one, &other);
            }
        }
        _ => assert_eq!(one, other),
    }
}

fn check(sample: &Sample) {
    let (before, after, home, outcome) = moved(sample);
    let spellings = Spellings::new(sample.root, &home);
    let seen = spellings
        .compare(before.as_bytes(), after.as_bytes())
        .unwrap_or_else(|e| panic!("{}: {e}", sample.name));
    assert_eq!(seen, sample.seen, "{}\n{after}", sample.name);
    assert_eq!(outcome["references"]["changed"], sample.seen.changed);
    assert!(same_structure(&before, &after) >= 5);
}

#[test]
fn the_dialect_of_claude_code() {
    check(&CLAUDE);
}

#[test]
fn the_dialect_of_codex() {
    check(&CODEX);
}

#[test]
fn the_dialect_of_pi_on_windows() {
    let (before, after, home, outcome) = moved(&PI);
    assert_eq!(outcome["references"]["changed"], 2);
    assert_eq!(same_structure(&before, &after), 2);
    let wanted = before
        .replace(
            "\"cwd\":\"C:\\\\Users\\\\Dev\\\\OneDrive\\\\work\"",
            &format!("\"cwd\":\"{home}\""),
        )
        .replace("C:/Users/Dev/OneDrive/work/a.md", &format!("{home}/a.md"));
    assert_eq!(after, wanted);
    // The NULs are told, and passed through.
    let findings = outcome["findings"].as_array().unwrap();
    let told = findings.iter().find(|f| f["kind"] == "torn-json").unwrap();
    assert!(
        told["path"].as_str().unwrap().ends_with("pi.jsonl"),
        "{told}"
    );
    assert!(told["detail"].as_str().unwrap().contains("NUL"), "{told}");
}
