//! The program starts, and says what it is.

mod support;

use support::Place;

#[test]
fn version_is_that_of_the_package() {
    let place = Place::new();
    assert_eq!(
        place.ok(["--version"]),
        format!("wbhome {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn nothing_typed_shows_the_commands() {
    let ran = Place::new().run(Vec::<&str>::new());
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("migrate"), "{ran:?}");
}
