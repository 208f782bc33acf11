//! `wbhome archive` and `wbhome unarchive`: a session becomes `archive/<id>.tar.zst`, and a folder again.
