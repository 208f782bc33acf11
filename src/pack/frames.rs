//! Where the frames of a zstd file lie, found without decoding it; the two skippable frames behind the data.
