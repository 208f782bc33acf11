//! The tar stream in a pack: frames decoded one after the other, members told apart.
