//! The text of a file of rules, in the format of gitleaks (<https://github.com/gitleaks/gitleaks#configuration>).
//!
//! A key that is not understood could be the one that makes a rule find something. So nothing is passed over in
//! silence: an unknown key is an error, and so is one that gitleaks knows and that has no meaning here.

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

/// A file of rules.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    #[serde(rename = "title")]
    _title: IgnoredAny,
    #[serde(rename = "description")]
    _description: IgnoredAny,
    #[serde(rename = "minVersion")]
    _min_version: IgnoredAny,
    pub extend: Extend,
    /// The former spelling of one of `allowlists`.
    pub allowlist: Option<Spanned<Allow>>,
    pub allowlists: Vec<Spanned<Allow>>,
    pub rules: Vec<Spanned<Rule>>,
}

/// `[extend]`: what the file builds on.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Extend {
    /// Whether the built-in rules hold too.
    pub use_default: Option<bool>,
    pub disabled_rules: Vec<Spanned<String>>,
    path: Option<Spanned<IgnoredAny>>,
    url: Option<Spanned<IgnoredAny>>,
}

/// `[[rules]]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Rule {
    pub id: Option<Spanned<String>>,
    pub description: Option<String>,
    pub regex: Option<Spanned<String>>,
    pub secret_group: Option<Spanned<usize>>,
    pub entropy: Option<f64>,
    pub keywords: Vec<Spanned<String>>,
    pub path: Option<Spanned<String>>,
    #[serde(rename = "tags")]
    _tags: IgnoredAny,
    /// The former spelling of one of `allowlists`.
    pub allowlist: Option<Spanned<Allow>>,
    pub allowlists: Vec<Spanned<Allow>>,
    skip_report: Option<Spanned<IgnoredAny>>,
    required: Option<Spanned<IgnoredAny>>,
}

/// `[[allowlists]]` or `[[rules.allowlists]]`: what is found and is none.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Allow {
    #[serde(rename = "description")]
    _description: IgnoredAny,
    /// Ids of rules; only at the top.
    pub target_rules: Vec<Spanned<String>>,
    pub condition: Option<Spanned<String>>,
    pub regex_target: Option<Spanned<String>>,
    pub regexes: Vec<Spanned<String>>,
    pub paths: Vec<Spanned<String>>,
    pub stopwords: Vec<Spanned<String>>,
    commits: Option<Spanned<IgnoredAny>>,
}

/// What is wrong with a file of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Offset in the text.
    pub at: usize,
    pub why: String,
    pub hint: String,
}

impl Wrong {
    pub(super) fn new(at: usize, why: impl Into<String>, hint: impl Into<String>) -> Wrong {
        Wrong {
            at,
            why: why.into(),
            hint: hint.into(),
        }
    }
}

/// Understands the text.
pub(super) fn parse(text: &str) -> Result<File, Wrong> {
    let file: File = toml::from_str(text).map_err(|e| {
        let at = e.span().map_or(0, |span| span.start);
        let why = e.message().trim().replace('\n', ", ");
        let hint = "docs/secrets.md lists the keys, and gives an example";
        Wrong::new(at, why, hint)
    })?;
    match file.meaningless() {
        Some(wrong) => Err(wrong),
        None => Ok(file),
    }
}

impl File {
    /// A key that gitleaks knows, and that can not be followed here.
    fn meaningless(&self) -> Option<Wrong> {
        let other_file = [
            ("extend.path", &self.extend.path),
            ("extend.url", &self.extend.url),
        ];
        let in_file = other_file.into_iter().map(|(key, value)| {
            (
                key,
                value,
                "copy those rules into this file: no other one is read",
            )
        });
        let in_rules = self.rules.iter().flat_map(|rule| {
            let rule = rule.get_ref();
            let allow = rule.allowlist.iter().chain(&rule.allowlists);
            let keys = [
                (
                    "skipReport",
                    &rule.skip_report,
                    "take the rule out, or let it report",
                ),
                (
                    "required",
                    &rule.required,
                    "write it as one regex: rules that hang together are not supported",
                ),
            ];
            keys.into_iter().chain(allow.map(commits))
        });
        let at_top = self.allowlist.iter().chain(&self.allowlists).map(commits);
        in_file
            .chain(in_rules)
            .chain(at_top)
            .find_map(|(key, value, hint)| {
                let at = value.as_ref()?.span().start;
                Some(Wrong::new(at, format!("`{key}` has no meaning here"), hint))
            })
    }
}

fn commits(allow: &Spanned<Allow>) -> (&'static str, &Option<Spanned<IgnoredAny>>, &'static str) {
    let hint = "take it out: what is looked at are files, not commits";
    ("commits", &allow.get_ref().commits, hint)
}
