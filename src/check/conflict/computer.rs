//! What computers are called: OneDrive marks a copy with nothing but the name of the computer.

/// Could this be what a computer is called? Any word may be, so the rule follows what computers *are* called and leaves
/// out what documents are: `plan-FINAL`, `spec-RFC2119`, `notes-DRAFT2`, `fix-PROJ-1234`, `layout-desktop`, `q-2024Q3`.
/// Either a name that Windows or macOS gave, or NetBIOS style: at most 15 capitals, digits and hyphens, from a letter on,
/// at least five, and a digit among them. A copy that this misses stays a file like any other and loses nothing; false
/// alarms in every home that keeps `-FINAL` beside the draft would teach people not to read the list.
pub(super) fn is_named(name: &[u8]) -> bool {
    const WORDS: [&str; 26] = [
        "FINAL", "DRAFT", "COPY", "BACKUP", "PART", "VERSION", "VER", "REV", "RELEASE", "BUILD",
        "PHASE", "STEP", "STAGE", "TEST", "WEEK", "MONTH", "PAGE", "COVID", "RFC", "ISO", "IEEE",
        "SHA", "UTF", "AES", "CVE", "HTTP",
    ];
    if is_factory_name(name) {
        return true;
    }
    let charset = name
        .iter()
        .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'-');
    if !charset
        || !(5..=15).contains(&name.len())
        || !name[0].is_ascii_uppercase()
        || name.ends_with(b"-")
    {
        return false;
    }
    if name.ends_with(b"-PC") {
        return true;
    }
    let letters = name.iter().take_while(|b| b.is_ascii_uppercase()).count();
    let (word, rest) = name.split_at(letters);
    // RFC2119, DRAFT2, and PROJ-1234, which is an issue.
    let only_digits_follow = rest
        .strip_prefix(b"-")
        .unwrap_or(rest)
        .iter()
        .all(u8::is_ascii_digit);
    let document = only_digits_follow
        && (rest.starts_with(b"-") || WORDS.iter().any(|w| w.as_bytes() == word));
    name.iter().any(u8::is_ascii_digit) && !document
}

/// Names that a system gives to a new computer: `DESKTOP-AB12CD3`, `WIN-0123456789A`, `MacBook-Pro`, `Meis-MacBook-Air`.
pub(super) fn is_factory_name(name: &[u8]) -> bool {
    let windows = [("DESKTOP-", 7), ("LAPTOP-", 8), ("WIN-", 11)]
        .iter()
        .any(|(prefix, length)| {
            name.strip_prefix(prefix.as_bytes()).is_some_and(|rest| {
                rest.len() == *length && rest.iter().all(u8::is_ascii_alphanumeric)
            })
        });
    // `[owner-]model[-Pro][-2]`: a few parts around the model, so that a longer text is none. `README-Mac` is no computer.
    let parts: Vec<&[u8]> = name.split(|b| *b == b'-').collect();
    let model = (0..parts.len()).find(|&at| {
        let mac = parts[at] == b"Mac"
            && matches!(parts.get(at + 1), Some(&b"mini" | &b"Studio" | &b"Pro"));
        mac || parts[at].starts_with(b"MacBook") || parts[at] == b"iMac"
    });
    let plain = |part: &&[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_alphanumeric);
    let short = |after: &[&[u8]]| after.len() <= 2 && after.iter().all(|part| part.len() <= 6);
    let apple = model.is_some_and(|at| at <= 2 && short(&parts[at + 1..]));
    windows || (apple && parts.iter().all(plain))
}
