//! Any bytes as `rotate.json`: what is read is written so that it is read again, and what could not be understood is in
//! the trash, byte for byte.

use wbhome::home::Rotations;

use super::place::Place;

pub fn run(input: &[u8]) -> bool {
    let place = Place::new();
    let home = place.home();
    place.put("主页/.wbhome/rotate.json", input);
    let Ok(mut rotations) = Rotations::read(&home) else {
        return false;
    };
    let broken = rotations.broken();
    let is_sound = broken.is_none();
    let locked = place.locked(&home).expect("nobody else is here");
    let written = rotations.write(&locked, &place.context());
    written.expect("it can be written");
    let again = Rotations::read(&home).expect("it was just written");
    assert_eq!(again, rotations, "it is read in another way");
    assert_eq!(again.broken(), None);
    let kept = place.tree("主页/.wbhome/trash");
    let is_kept = kept.values().any(|held| held.as_deref() == Some(input));
    assert_eq!(is_kept, !is_sound, "what was not understood, {broken:?}");
    is_sound
}
