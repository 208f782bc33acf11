//! The exit codes, and which wins when several happen in one run. `docs/exit-codes.md` is the contract.

/// What the process tells its caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Exit {
    /// Done; also: nothing to do, an empty list.
    #[default]
    Done,
    /// Failed, for a reason that a person can act on.
    Failed,
    /// The command line makes no sense.
    Usage,
    /// Done in part: something could not be read, copied or sent; each is named.
    Partial,
    /// Looked, and found problems.
    Problems,
    /// There is no home here.
    NoHome,
    /// The home is locked by somebody else.
    Locked,
    /// The home was written by a newer version.
    Newer,
    /// A bug in wbhome.
    Bug,
    /// Interrupted.
    Interrupted,
}

impl Exit {
    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Partial => 3,
            Exit::Problems => 4,
            Exit::NoHome => 10,
            Exit::Locked => 11,
            Exit::Newer => 12,
            Exit::Bug => 101,
            Exit::Interrupted => 130,
        }
    }

    /// How grave it is: the gravest of a run is its exit code. A usage error ends a run before anything
    /// else can happen; it stands with plain failure.
    pub fn gravity(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Problems => 1,
            Exit::Partial => 2,
            Exit::Usage => 3,
            Exit::Failed => 4,
            Exit::NoHome => 5,
            Exit::Locked => 6,
            Exit::Newer => 7,
            Exit::Interrupted => 8,
            Exit::Bug => 9,
        }
    }

    /// The graver of the two.
    #[must_use]
    pub fn merge(self, other: Exit) -> Exit {
        if other.gravity() > self.gravity() {
            other
        } else {
            self
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        std::process::ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::Exit::*;
    use super::*;

    #[test]
    fn the_gravest_wins_whatever_the_order() {
        let rising = [
            Done,
            Problems,
            Partial,
            Failed,
            NoHome,
            Locked,
            Newer,
            Interrupted,
            Bug,
        ];
        for (i, a) in rising.iter().enumerate() {
            for b in &rising[i..] {
                assert_eq!(a.merge(*b), *b, "{a:?} then {b:?}");
                assert_eq!(b.merge(*a), *b, "{b:?} then {a:?}");
            }
        }
    }

    #[test]
    fn codes_are_the_documented_ones() {
        let codes: Vec<u8> = [
            Done,
            Failed,
            Usage,
            Partial,
            Problems,
            NoHome,
            Locked,
            Newer,
            Bug,
            Interrupted,
        ]
        .map(Exit::code)
        .to_vec();
        assert_eq!(codes, [0, 1, 2, 3, 4, 10, 11, 12, 101, 130]);
    }
}
