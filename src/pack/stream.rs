//! The decoded content of a pack: frames one after the other, in chunks that know where they come from.
//!
//! Decoding is the slowest step, so it runs on a thread of its own, ahead of whoever hashes and writes. What a frame
//! promises (its checksum, and where there is a manifest the digest of its bytes and the length of its content) is
//! compared before the last word of it is given out as good.

use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::mpsc;

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::trouble::{Damage, Trouble, frame_named};
use super::{Pack, WINDOW_LOG};
use crate::base::{Error, Stop, human};

/// The length of a chunk.
const CHUNK: usize = 256 << 10;

/// How many chunks the decoder may be ahead.
const AHEAD: usize = 8;

/// A file is read in pieces of this size.
const PIECE: usize = 256 << 10;

/// Decoded bytes, and where they stand.
#[derive(Debug)]
pub(super) struct Chunk {
    frame: u32,
    at: u64,
    bytes: Vec<u8>,
}

type Step = Result<Option<Chunk>, Trouble>;

/// The decoded bytes of a run of frames.
pub(super) struct Decoded<'s> {
    next: Box<dyn FnMut(Vec<u8>) -> Step + 's>,
    chunk: Chunk,
    used: usize,
    /// What came instead of a chunk, once. After it there is nothing more.
    over: bool,
}

impl<'s> Decoded<'s> {
    fn new(from: u32, next: impl FnMut(Vec<u8>) -> Step + 's) -> Decoded<'s> {
        Decoded {
            next: Box::new(next),
            chunk: Chunk {
                frame: from,
                at: 0,
                bytes: Vec::new(),
            },
            used: 0,
            over: false,
        }
    }

    /// A run of frames, decoded when asked for.
    pub(super) fn here(pack: &'s Pack, frames: Range<u32>, stop: &'s Stop) -> Decoded<'s> {
        let from = frames.start;
        let mut decoding = Decoding::new(pack, frames, stop);
        Decoded::new(from, move |buffer| decoding.step(buffer))
    }

    /// The next bytes; empty at the end.
    pub(super) fn peek(&mut self) -> Result<&[u8], Trouble> {
        while self.used == self.chunk.bytes.len() && !self.over {
            self.used = 0;
            let at = self.chunk.at + self.chunk.bytes.len() as u64;
            let buffer = std::mem::take(&mut self.chunk.bytes);
            self.chunk.at = at;
            match (self.next)(buffer) {
                Ok(Some(chunk)) => self.chunk = chunk,
                Ok(None) => self.over = true,
                Err(trouble) => {
                    self.over = true;
                    return Err(trouble);
                }
            }
        }
        Ok(&self.chunk.bytes[self.used..])
    }

    /// Takes so many of the bytes that [`Decoded::peek`] gave.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.used = (self.used + bytes).min(self.chunk.bytes.len());
    }

    /// Where the next byte stands: frame, and place in its content. True after [`Decoded::peek`].
    pub(super) fn position(&self) -> (u32, u64) {
        (self.chunk.frame, self.chunk.at + self.used as u64)
    }

    /// Passes over so many bytes; how many there were, when the end came first.
    pub(super) fn skip(&mut self, bytes: u64) -> Result<u64, Trouble> {
        let mut left = bytes;
        while left > 0 {
            let here = self.peek()?.len() as u64;
            if here == 0 {
                break;
            }
            let step = here.min(left);
            self.consume(step as usize);
            left -= step;
        }
        Ok(bytes - left)
    }

    /// Fills a buffer; how many bytes there were, when the end came first.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, Trouble> {
        let mut filled = 0;
        while filled < buffer.len() {
            let here = self.peek()?;
            if here.is_empty() {
                break;
            }
            let step = here.len().min(buffer.len() - filled);
            buffer[filled..filled + step].copy_from_slice(&here[..step]);
            self.consume(step);
            filled += step;
        }
        Ok(filled)
    }
}

/// Has a run of frames decoded on a thread of its own, while `consume` takes what comes out.
pub(super) fn ahead<T>(
    pack: &Pack,
    frames: Range<u32>,
    stop: &Stop,
    consume: impl FnOnce(&mut Decoded<'_>) -> T,
) -> T {
    let (send, receive) = mpsc::sync_channel::<Step>(AHEAD);
    let (give_back, used) = mpsc::channel::<Vec<u8>>();
    std::thread::scope(|scope| {
        let (from, run) = (frames.start, frames.clone());
        let decode = move || {
            let mut decoding = Decoding::new(pack, run, stop);
            loop {
                let step = decoding.step(used.try_recv().unwrap_or_default());
                let last = !matches!(step, Ok(Some(_)));
                // Nobody waits for it any more when the receiver has gone.
                if send.send(step).is_err() || last {
                    return;
                }
            }
        };
        let spawned = std::thread::Builder::new().spawn_scoped(scope, decode);
        if spawned.is_err() {
            // No thread to be had: the same, only slower.
            return consume(&mut Decoded::here(pack, frames, stop));
        }
        consume(&mut Decoded::new(from, move |buffer| {
            // The decoder may have ended; then nobody needs the buffer.
            let _ = give_back.send(buffer);
            receive.recv().unwrap_or(Ok(None))
        }))
    })
}

/// A run of frames being decoded.
struct Decoding<'p> {
    pack: &'p Pack,
    stop: &'p Stop,
    frames: Range<u32>,
    /// The frame in work.
    open: Option<OpenFrame>,
    decoder: Option<Decoder<'static>>,
    input: Vec<u8>,
    /// What of `input` is still to be decoded.
    pending: Range<usize>,
}

struct OpenFrame {
    number: u32,
    from: u64,
    /// What of it is still to be read from the file.
    rest: Range<u64>,
    hasher: blake3::Hasher,
    content: u64,
}

impl<'p> Decoding<'p> {
    fn new(pack: &'p Pack, frames: Range<u32>, stop: &'p Stop) -> Self {
        Decoding {
            pack,
            stop,
            frames,
            open: None,
            decoder: None,
            input: Vec::new(),
            pending: 0..0,
        }
    }

    /// The next chunk, in a buffer that was used before.
    fn step(&mut self, mut buffer: Vec<u8>) -> Step {
        loop {
            self.stop.check()?;
            let mut frame = match self.open.take() {
                Some(frame) => frame,
                None => match self.begin()? {
                    Some(frame) => frame,
                    None => return Ok(None),
                },
            };
            let at = frame.content;
            buffer.clear();
            buffer.reserve(CHUNK);
            let ended = self.decode(&mut frame, &mut buffer)?;
            let number = frame.number;
            match ended {
                true => self.end(frame)?,
                false => self.open = Some(frame),
            }
            if !buffer.is_empty() {
                return Ok(Some(Chunk {
                    frame: number,
                    at,
                    bytes: buffer,
                }));
            }
        }
    }

    fn begin(&mut self) -> Result<Option<OpenFrame>, Trouble> {
        let Some(number) = self.frames.next() else {
            return Ok(None);
        };
        let place = match self.pack.frames.get(number as usize) {
            Some(place) => place.clone(),
            None if self.pack.broken_off.is_some() && self.pack.manifest.is_none() => {
                self.pack.data_end()..self.pack.size()
            }
            None => return Ok(None),
        };
        let fail = |e: std::io::Error| Error::io("can not decode", &self.pack.path, e);
        match &mut self.decoder {
            Some(decoder) => decoder.reinit().map_err(fail)?,
            none => {
                let mut decoder = Decoder::new().map_err(fail)?;
                decoder
                    .set_parameter(DParameter::WindowLogMax(WINDOW_LOG))
                    .map_err(fail)?;
                *none = Some(decoder);
            }
        }
        self.pending = 0..0;
        Ok(Some(OpenFrame {
            number,
            from: place.start,
            rest: place,
            hasher: blake3::Hasher::new(),
            content: 0,
        }))
    }

    /// Decodes until the buffer is full or the frame ends; whether it has ended.
    fn decode(&mut self, frame: &mut OpenFrame, buffer: &mut Vec<u8>) -> Result<bool, Trouble> {
        let promised = self.promised(frame.number).map(|promised| promised.content);
        let Some(decoder) = &mut self.decoder else {
            return Ok(true);
        };
        let part = || frame_named(frame.number, frame.from);
        let mut output = OutBuffer::around(buffer);
        loop {
            if self.pending.is_empty() && !frame.rest.is_empty() {
                let piece = (frame.rest.end - frame.rest.start).min(PIECE as u64) as usize;
                self.input.resize(PIECE, 0);
                let read = self
                    .pack
                    .file
                    .read_at(&mut self.input[..piece], frame.rest.start);
                let read = match read {
                    Ok(0) => {
                        let what = "the file ends in the middle of it";
                        return Err(Damage::new(part(), what, frame.number).into());
                    }
                    Ok(read) => read,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(error) => {
                        return Err(Error::io("can not read", &self.pack.path, error).into());
                    }
                };
                frame.hasher.update(&self.input[..read]);
                frame.rest.start += read as u64;
                self.pending = 0..read;
            }
            let mut input = InBuffer::around(&self.input[self.pending.clone()]);
            let before = output.pos();
            let left = decoder.run(&mut input, &mut output);
            let (read, written) = (input.pos(), output.pos() - before);
            self.pending.start += read;
            frame.content += written as u64;
            let left = left.map_err(|error| {
                Trouble::Damage(refused(part(), &error, frame, &self.pack.path))
            })?;
            if promised.is_some_and(|content| frame.content > content) {
                let what = "it holds more than the manifest says";
                return Err(Damage::new(part(), what, frame.number).into());
            }
            if left == 0 {
                if !self.pending.is_empty() || !frame.rest.is_empty() {
                    let what = "something stands behind its end";
                    return Err(Damage::new(part(), what, frame.number).into());
                }
                return Ok(true);
            }
            if output.pos() == output.capacity() {
                return Ok(false);
            }
            if read == 0 && written == 0 && frame.rest.is_empty() {
                let what = "it ends too early: it was cut off";
                return Err(Damage::new(part(), what, frame.number).into());
            }
        }
    }

    /// Compares a frame that is over with what the manifest says of it.
    fn end(&self, frame: OpenFrame) -> Result<(), Trouble> {
        let Some(promised) = self.promised(frame.number) else {
            return Ok(());
        };
        let wrong = |what: String| {
            let part = frame_named(frame.number, frame.from);
            Err(Damage::new(part, what, frame.number).into())
        };
        if frame.content != promised.content {
            let (found, said) = (human::count(frame.content), human::count(promised.content));
            return wrong(format!(
                "it holds {found} bytes, and the manifest says {said}"
            ));
        }
        if frame.hasher.finalize().to_hex().as_str() != promised.blake3 {
            return wrong("its bytes are not those that the manifest has the digest of".into());
        }
        Ok(())
    }

    fn promised(&self, frame: u32) -> Option<&'p super::Frame> {
        self.pack.manifest.as_ref()?.frames.get(frame as usize)
    }
}

/// What the decoder says of a frame, in words that help.
fn refused(
    part: String,
    error: &std::io::Error,
    frame: &OpenFrame,
    path: &std::path::Path,
) -> Damage {
    let said = error.to_string();
    let what = match said.as_str() {
        // The words of `ZSTD_getErrorName`, which are all that comes through.
        "Frame requires too much memory for decoding" => {
            let what = "its window is larger than any decoder takes without being told to";
            let path = human::quoted(path);
            return Damage::new(part, what, frame.number).hint(format!(
                "to unpack it by hand: zstd -d --long=31 --stdout {path} | tar -x"
            ));
        }
        "Restored data doesn't match checksum" => "its content does not have its checksum".into(),
        "Data corruption detected" => "its bytes are damaged".into(),
        said => format!("it can not be decoded ({})", human::escape(said)),
    };
    Damage::new(part, what, frame.number)
}
