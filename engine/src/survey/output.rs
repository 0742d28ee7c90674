//! Where all walkers tell what they found: whole messages, one after the other.

use std::io::{self, ErrorKind, Write};
use std::process;
use std::sync::{Mutex, PoisonError};

use super::marshal;
use super::records::FORMAT;

/// Messages, each behind its length as a little-endian number of 32 bits.
pub struct Output {
    to: Mutex<Box<dyn Write + Send>>,
}

impl Output {
    /// Tells the format at once.
    pub fn new(to: Box<dyn Write + Send>) -> Self {
        let output = Self { to: Mutex::new(to) };
        let mut greeting = Vec::new();
        marshal::integer(&mut greeting, FORMAT);
        output.send(&greeting);
        output
    }

    /// Writes one message; it has left this process before the next one is begun.
    ///
    /// Ends the process if nobody reads any more.
    pub fn send(&self, message: &[u8]) {
        let mut whole = Vec::with_capacity(4 + message.len());
        whole.extend_from_slice(&(message.len() as u32).to_le_bytes());
        whole.extend_from_slice(message);
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(why) = to.write_all(&whole).and_then(|()| to.flush()) {
            end(&why);
        }
    }
}

fn end(why: &io::Error) -> ! {
    if why.kind() != ErrorKind::BrokenPipe {
        eprintln!("tui-fs-engine: cannot write what was counted: {why}");
    }
    process::exit(1);
}
