//! Bytes into frames whose lengths are known beforehand, and those into the file.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use zstd::zstd_safe::{
    self, CCtx, CParameter, InBuffer, OutBuffer, ResetDirective, SafeResult, get_error_name,
};

use crate::base::{Error, Result};
use crate::pack::{Frame, WINDOW_LOG};

/// The end of the file that is being written.
pub(super) struct Tail<'f> {
    file: &'f File,
    at: u64,
    hasher: blake3::Hasher,
}

impl Tail<'_> {
    /// Appends.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all_at(bytes, self.at)
            .map_err(|error| Error::failed("the pack can not be written").because(error))?;
        self.hasher.update(bytes);
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// How much was written.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The digest of all that was written.
    pub fn digest(&self) -> String {
        self.hasher.finalize().to_hex().to_string()
    }
}

/// Compresses.
pub(super) struct Compressor<'f> {
    context: CCtx<'static>,
    tail: Tail<'f>,
    buffer: Vec<u8>,
    /// The lengths of the contents of the frames to come.
    lengths: VecDeque<u64>,
    /// How much is missing in the present one.
    missing: u64,
    /// Of the present one: its length so far, and its digest.
    begun: u64,
    hasher: blake3::Hasher,
    content: u64,
    done: Vec<Frame>,
}

impl<'f> Compressor<'f> {
    /// Begins at the beginning of the file.
    pub fn new(file: &'f File, lengths: Vec<u64>, level: i32, threads: u32) -> Result<Self> {
        let mut context = CCtx::try_create().ok_or_else(|| failed("not enough memory"))?;
        for parameter in [
            CParameter::CompressionLevel(level),
            CParameter::WindowLog(WINDOW_LOG),
            CParameter::EnableLongDistanceMatching(true),
            // A session repeats itself turn after turn: eight places of one content instead of sixteen to be compared to
            // their ends, and twice as many contents known. Faster than the defaults there, and no larger anywhere.
            CParameter::LdmBucketSizeLog(3),
            CParameter::LdmHashRateLog(6),
            CParameter::ChecksumFlag(true),
            CParameter::ContentSizeFlag(true),
            // None at all gives other bytes than one.
            CParameter::NbWorkers(threads.max(1)),
        ] {
            checked(context.set_parameter(parameter))?;
        }
        let mut compressor = Compressor {
            context,
            tail: Tail {
                file,
                at: 0,
                hasher: blake3::Hasher::new(),
            },
            buffer: Vec::with_capacity(CCtx::out_size()),
            lengths: lengths.into(),
            missing: 0,
            begun: 0,
            hasher: blake3::Hasher::new(),
            content: 0,
            done: Vec::new(),
        };
        compressor.begin()?;
        Ok(compressor)
    }

    fn begin(&mut self) -> Result<()> {
        let Some(length) = self.lengths.pop_front() else {
            return Ok(());
        };
        checked(self.context.reset(ResetDirective::SessionOnly))?;
        checked(self.context.set_pledged_src_size(Some(length)))?;
        (self.missing, self.content, self.begun) = (length, length, self.tail.at);
        self.hasher.reset();
        Ok(())
    }

    /// Appends to the content.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let length = bytes
                .len()
                .min(usize::try_from(self.missing).unwrap_or(usize::MAX));
            if length == 0 {
                return Err(failed("there is more than was looked at"));
            }
            let (now, later) = bytes.split_at(length);
            let mut input = InBuffer::around(now);
            while input.pos() < now.len() {
                self.step(|context, output| context.compress_stream(output, &mut input))?;
            }
            self.missing -= length as u64;
            if self.missing == 0 {
                self.end()?;
            }
            bytes = later;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        while self.step(|context, output| context.end_stream(output))? > 0 {}
        self.done.push(Frame {
            bytes: self.tail.at - self.begun,
            content: self.content,
            blake3: self.hasher.finalize().to_hex().to_string(),
        });
        self.begin()
    }

    /// One call, and what it gives into the file.
    fn step(
        &mut self,
        call: impl FnOnce(&mut CCtx<'static>, &mut OutBuffer<'_, Vec<u8>>) -> SafeResult,
    ) -> Result<usize> {
        self.buffer.clear();
        let mut output = OutBuffer::around(&mut self.buffer);
        let left = checked(call(&mut self.context, &mut output))?;
        self.hasher.update(&self.buffer);
        if !self.buffer.is_empty() {
            self.tail.write(&self.buffer)?;
        }
        Ok(left)
    }

    /// The frames, and the end of the file, where more may follow.
    ///
    /// # Errors
    /// When less was pushed than was said.
    pub fn finish(self) -> Result<(Vec<Frame>, Tail<'f>)> {
        match self.missing == 0 && self.lengths.is_empty() {
            true => Ok((self.done, self.tail)),
            false => Err(failed("there is less than was looked at")),
        }
    }
}

fn failed(why: &str) -> Error {
    Error::failed("the pack can not be compressed").because(io::Error::other(why.to_owned()))
}

fn checked(result: std::result::Result<usize, zstd_safe::ErrorCode>) -> Result<usize> {
    result.map_err(|code| failed(get_error_name(code)))
}
