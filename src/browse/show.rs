//! `wbhome show`: a session as a person wants to know it, and single files of it, archived or not.
//!
//! A session is read from its folder, or where it has none from its archive, without unpacking it. Which of the two it
//! is, `source` alone knows; what is told of a session, and of something in one, is the same for both.

mod inside;
mod overview;
mod source;
mod turn;

pub use inside::{Inside, inside, meant, meant_all};
pub use overview::{Archive, ArchiveForm, LastTurn, Session, session};
pub(super) use source::open_pack;
pub use source::{From, Kind, Thing};
pub use turn::{Message, Said, Turn};
