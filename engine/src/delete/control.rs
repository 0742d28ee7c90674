//! Commands on standard input, one per line, and their answers.

use std::io::BufRead;

use super::output::emit;
use super::Context;

/// Serves commands until standard input is closed. That does not stop the deletion.
pub fn serve(context: &Context) {
    for line in std::io::stdin().lock().split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        // The process does not exit before the answer to `cancel` is written.
        let answer_lock = context.answer_lock.lock();
        let problem = match handle_command(context, line) {
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
        _ => return Err("not a command"),
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
