//! The output of all walkers: messages with a length in front.

use std::io::{self, ErrorKind, Write};
use std::process;
use std::sync::{Mutex, PoisonError};

use super::records::format_message;

/// Writes messages, each after its length as a little-endian number of 32 bits.
pub struct Output {
    writer: Mutex<Box<dyn Write + Send>>,
}

impl Output {
    /// Writes the format as the first message.
    pub fn new(writer: Box<dyn Write + Send>) -> Self {
        let output = Self {
            writer: Mutex::new(writer),
        };
        output.send(&format_message());
        output
    }

    /// Writes and flushes one message. Messages of several walkers do not mix.
    ///
    /// Exits the process if it cannot be written, silently if the reader has closed the pipe.
    pub fn send(&self, message: &[u8]) {
        let mut framed = Vec::with_capacity(4 + message.len());
        framed.extend_from_slice(&(message.len() as u32).to_le_bytes());
        framed.extend_from_slice(message);
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = writer.write_all(&framed).and_then(|()| writer.flush()) {
            exit_on_error(&error);
        }
    }
}

fn exit_on_error(error: &io::Error) -> ! {
    if error.kind() != ErrorKind::BrokenPipe {
        eprintln!("tui-fs-engine: cannot write the records: {error}");
    }
    process::exit(1);
}
