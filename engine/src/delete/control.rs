//! Commands on standard input, one per line, and their answers.

use std::io::{BufRead, Read};

use super::output::emit;
use super::Context;

/// A longer line is not a command.
const MAX_LINE_BYTES: u64 = 256;

/// Serves commands until standard input is closed. That does not stop the deletion.
pub fn serve(context: &Context) {
    let mut input = std::io::stdin().lock();
    while let Ok(Some(line)) = next_line(&mut input) {
        // The process does not exit before the answer to `cancel` is written.
        let answer_lock = context.answer_lock.lock();
        let problem = match handle_command(context, &line) {
            Ok(()) => "null".to_owned(),
            Err(error) => format!("\"{error}\""),
        };
        let command: String = line
            .chars()
            .filter(|letter| letter.is_ascii_alphanumeric() || *letter == ' ')
            .take(40)
            .collect();
        let answer =
            format!("{{\"type\":\"answer\",\"command\":\"{command}\",\"problem\":{problem}}}");
        if emit(&answer).is_err() {
            return; // the thread that reports counts gets the same error and aborts the job
        }
        drop(answer_lock);
    }
}

/// Returns a line, an empty one for one that is too long, `None` at the end of the input.
fn next_line(input: &mut impl BufRead) -> std::io::Result<Option<String>> {
    let mut is_too_long = false;
    loop {
        let mut line = Vec::new();
        let mut part = input.by_ref().take(MAX_LINE_BYTES);
        let length = part.read_until(b'\n', &mut line)? as u64;
        if length == MAX_LINE_BYTES && !line.ends_with(b"\n") {
            is_too_long = true; // its last part follows
        } else if is_too_long {
            return Ok(Some(String::new()));
        } else {
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            return Ok((length > 0).then_some(line));
        }
    }
}

const UNKNOWN: &str = "not a command";

fn handle_command(context: &Context, command: &str) -> Result<(), &'static str> {
    let (name, value) = command.split_once(' ').unwrap_or((command, ""));
    match (name, value) {
        ("pause", "") => context.throttle.set_paused(true),
        ("resume", "") => context.throttle.set_paused(false),
        ("cancel", "") => context.cancel(),
        ("rate", "off") => context.throttle.set_rate(None),
        ("rate", _) => context.throttle.set_rate(Some(positive(value)?)),
        ("threads", "auto") => request_threads(context, None),
        // A maximum: the counts report the limit, not the workers with work.
        ("threads", _) => request_threads(context, Some(positive(value)? as usize)),
        ("gentle", "on") => context.throttle.set_gentle(true),
        ("gentle", "off") => context.throttle.set_gentle(false),
        _ => return Err(UNKNOWN),
    }
    Ok(())
}

fn request_threads(context: &Context, number: Option<usize>) {
    context.update_concurrency(|concurrency| concurrency.request(number));
}

fn positive(value: &str) -> Result<u32, &'static str> {
    match value.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("not a positive number"),
    }
}
