//! Links: within the home, out of it, nowhere.

use super::*;

#[test]
fn links_within_the_home_are_fine() {
    let place = home();
    let at = place.session("20240603_crawler", 1);
    place.link(
        "projects/alpha/20240603_crawler",
        "../../sessions/20240603_crawler",
    );
    place.link(
        &format!("{at}/artifacts/latest"),
        place.root().join(&at).join("session.json"),
    );
    place.link(
        &format!("{at}/artifacts/up"),
        "./..//context/./turn_001.json",
    );
    // Out of the home and back, and through a link on the way.
    place.link(
        &format!("{at}/artifacts/round"),
        "../../../../home/sessions",
    );
    place.link(
        &format!("{at}/artifacts/through"),
        "round/20240603_crawler/artifacts/up",
    );
    assert_eq!(place.lines(), [""; 0]);
}

#[test]
fn links_that_lead_nowhere_or_out() {
    let place = home();
    let at = place.session("20240603_crawler", 1);
    fs::write(place.root().parent().unwrap().join("beside"), "").unwrap();
    let link = |name: &str, target: &str| place.link(&format!("{at}/l/{name}"), target);
    let inside = place.root().join("sessions/gone");
    link("a", inside.to_str().unwrap());
    link("b", "missing");
    link("c", "../session.json/x");
    link("d", "e");
    link("e", "d");
    link("f", "../../../../beside");
    link("g", "../../../../not beside");
    link("h", "/nowhere/at/all");
    link("i", "h/x");
    link("j", &"x/".repeat(400));
    let told: Vec<String> = place
        .findings()
        .iter()
        .map(|f| format!("{} {}", f.kind, f.path.file_name().unwrap().display()))
        .collect();
    assert_eq!(
        told,
        [
            "dangling-link a",
            "dangling-link b",
            "dangling-link c",
            "dangling-link d",
            "dangling-link e",
            "dangling-link g",
            "dangling-link i",
            "dangling-link j",
            "outside-link f",
            "outside-link h",
        ]
    );
}
