//! Commands on standard input, a line each, and their answers.

use std::io::BufRead;

use super::telling::tell;
use super::Run;

/// Obeys until the input ends; the work goes on then.
pub fn listen(run: &Run) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else {
            return; // what cannot be read cannot be obeyed, and nobody waits for an answer
        };
        let command = line.trim();
        let problem = match obey(run, command) {
            Ok(()) => "null".to_owned(),
            Err(why) => format!("\"{why}\""),
        };
        let known: String = command
            .chars()
            .filter(|letter| letter.is_ascii_alphanumeric() || *letter == ' ')
            .take(40)
            .collect();
        let answer =
            format!("{{\"type\":\"answer\",\"command\":\"{known}\",\"problem\":{problem}}}");
        if tell(&answer).is_err() {
            return; // the counts cannot be told either: whoever writes those ends the work
        }
    }
}

fn obey(run: &Run, command: &str) -> Result<(), &'static str> {
    let (name, value) = command.split_once(' ').unwrap_or((command, ""));
    match (name, value) {
        ("pause", "") => run.brake.pause(true),
        ("resume", "") => run.brake.pause(false),
        ("cancel", "") => run.cancel(),
        ("rate", "off") => run.brake.limit_rate(None),
        ("rate", _) => run.brake.limit_rate(Some(positive(value)?)),
        ("threads", "auto") => run.brake.limit_workers(usize::MAX),
        ("threads", _) => run.brake.limit_workers(positive(value)? as usize),
        ("gentle", "on") => run.brake.be_gentle(true),
        ("gentle", "off") => run.brake.be_gentle(false),
        _ => return Err("not a command"),
    }
    Ok(())
}

fn positive(value: &str) -> Result<u32, &'static str> {
    match value.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("not a positive number"),
    }
}
