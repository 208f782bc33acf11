//! One file compressed: to a file without a name, synced, decoded again and compared. Then it gets its name, and what it
//! was made of goes.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::base::{Context, failpoint};
use crate::disk::{self, Dir, Meta, NewFile, Xattrs};
use crate::home::Compress;

/// The default of zstd(1).
const ZSTD: i32 = 3;

const PIECE: usize = 256 << 10;

/// Compresses `plain` into `name`, which is there already when `is_there`, and removes it. Gives both lengths.
pub(super) fn compress(
    dir: &Dir,
    plain: &OsStr,
    name: &OsStr,
    how: Compress,
    is_there: bool,
    context: &Context,
) -> io::Result<(u64, u64)> {
    let source = dir.open_file(plain)?;
    let meta = Meta::of(&source)?;
    if !is_there {
        let mut new = NewFile::create(dir)?;
        encode(&source, new.file(), how, context)?;
        new.sync()?;
        let owner = disk::is_root().then_some((meta.uid, meta.gid));
        if let Err((_, error)) = Xattrs::of(&source)?.apply(new.file()) {
            return Err(error);
        }
        new.dress(owner, meta.mode, meta.mtime)?;
        new.sync()?;
        failpoint::hit("rotate.compressed");
        new.publish(name)?;
        dir.sync()?;
        failpoint::hit("rotate.compressed-named");
    }
    // Read by its name, whoever made it.
    let packed = dir.open_file(name)?;
    if !holds(&packed, &mut dir.open_file(plain)?, how, context)? {
        if !is_there {
            // Nobody has seen it.
            dir.unlink(name)?;
        }
        return Err(io::Error::other(
            "what is compressed is not what it was made of",
        ));
    }
    let now = dir.stat(plain)?;
    if !now.same_state(&meta) {
        return Err(io::Error::other("it was changed meanwhile"));
    }
    dir.unlink(plain)?;
    dir.sync()?;
    Ok((meta.size, Meta::of(&packed)?.size))
}

fn encode(source: &File, dest: &File, how: Compress, context: &Context) -> io::Result<()> {
    match how {
        Compress::Zstd => {
            let mut encoder = zstd::Encoder::new(dest, ZSTD)?;
            encoder.include_checksum(true)?;
            copy(source, &mut encoder, context)?;
            encoder.finish().map(|_| ())
        }
        Compress::Gzip => {
            let mut encoder = GzEncoder::new(dest, flate2::Compression::default());
            copy(source, &mut encoder, context)?;
            encoder.finish().map(|_| ())
        }
        Compress::None => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn copy(mut source: &File, dest: &mut impl Write, context: &Context) -> io::Result<()> {
    let mut buffer = vec![0; PIECE];
    loop {
        if context.stop.raised() {
            return Err(io::Error::other("interrupted"));
        }
        match source.read(&mut buffer)? {
            0 => return Ok(()),
            n => dest.write_all(&buffer[..n])?,
        }
    }
}

/// Whether the decoded content is this one.
fn holds(packed: &File, plain: &mut File, how: Compress, context: &Context) -> io::Result<bool> {
    let packed = BufReader::with_capacity(PIECE, packed);
    let mut decoder: Box<dyn Read> = match how {
        Compress::Zstd => Box::new(zstd::Decoder::with_buffer(packed)?),
        Compress::Gzip => Box::new(MultiGzDecoder::new(packed)),
        Compress::None => Box::new(packed),
    };
    let (mut left, mut right) = (vec![0; PIECE], vec![0; PIECE]);
    loop {
        if context.stop.raised() {
            return Err(io::Error::other("interrupted"));
        }
        let length = plain.read(&mut left)?;
        if length == 0 {
            return Ok(decoder.read(&mut right[..1])? == 0);
        }
        match decoder.read_exact(&mut right[..length]) {
            Ok(()) if left[..length] == right[..length] => {}
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            _ => return Ok(false),
        }
    }
}
