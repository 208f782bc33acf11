//! What libgit2 says of an error, as a person reads it: without the class and the number that it adds for programs.

use std::fmt;

/// An error of libgit2, for [`crate::base::Error::because`].
#[derive(Debug)]
pub(super) struct Said(git2::Error);

pub(super) fn said(error: git2::Error) -> Said {
    Said(error)
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.message())
    }
}

impl std::error::Error for Said {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_reads_no_class_and_no_number() {
        let error = git2::Error::new(
            git2::ErrorCode::NotFound,
            git2::ErrorClass::Odb,
            "object not found",
        );
        assert!(error.to_string().contains("class="), "{error}");
        assert_eq!(said(error).to_string(), "object not found");
    }
}
