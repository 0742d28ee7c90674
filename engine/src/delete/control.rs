//! Commands on standard input, a line each, and their answers.

use std::io::{BufRead, Read};

use super::output::tell;
use super::Run;

/// Longer lines are no commands.
const LONGEST: u64 = 256;

/// Obeys until the input ends; the work goes on then.
pub fn listen(run: &Run) {
    let mut input = std::io::stdin().lock();
    while let Ok(Some(line)) = next_line(&mut input) {
        // What was obeyed is answered, though the end may be what was asked for.
        let answering = run.answering.lock();
        let problem = match line
            .as_deref()
            .map_or(Err(UNKNOWN), |command| obey(run, command))
        {
            Ok(()) => "null".to_owned(),
            Err(why) => format!("\"{why}\""),
        };
        let command: String = line
            .unwrap_or_default()
            .chars()
            .filter(|letter| letter.is_ascii_alphanumeric() || *letter == ' ')
            .take(40)
            .collect();
        let answer =
            format!("{{\"type\":\"answer\",\"command\":\"{command}\",\"problem\":{problem}}}");
        if tell(&answer).is_err() {
            return; // the counts cannot be told either: whoever writes those ends the work
        }
        drop(answering);
    }
}

/// Returns a line, `Some(None)` for one that is too long, `None` at the end of the input.
fn next_line(input: &mut impl BufRead) -> std::io::Result<Option<Option<String>>> {
    let mut line = Vec::new();
    if input.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() as u64 == LONGEST && !line.ends_with(b"\n") {
        loop {
            let held = input.fill_buf()?;
            let end = held.iter().position(|&byte| byte == b'\n');
            let used = end.map_or(held.len(), |end| end + 1);
            let is_over = end.is_some() || held.is_empty();
            input.consume(used);
            if is_over {
                break;
            }
        }
        return Ok(Some(None));
    }
    Ok(Some(Some(String::from_utf8_lossy(&line).trim().to_owned())))
}

const UNKNOWN: &str = "not a command";

fn obey(run: &Run, command: &str) -> Result<(), &'static str> {
    let (name, value) = command.split_once(' ').unwrap_or((command, ""));
    match (name, value) {
        ("pause", "") => run.throttle.set_paused(true),
        ("resume", "") => run.throttle.set_paused(false),
        ("cancel", "") => run.cancel(),
        ("rate", "off") => run.throttle.set_rate(None),
        ("rate", _) => run.throttle.set_rate(Some(positive(value)?)),
        ("threads", "auto") => drop(run.update_tuner(|tuner| tuner.request(None))),
        // At most: what the counts tell is how many may be at work.
        ("threads", _) => {
            let number = positive(value)? as usize;
            run.update_tuner(|tuner| tuner.request(Some(number)));
        }
        ("gentle", "on") => run.throttle.set_gentle(true),
        ("gentle", "off") => run.throttle.set_gentle(false),
        _ => return Err(UNKNOWN),
    }
    Ok(())
}

fn positive(value: &str) -> Result<u32, &'static str> {
    match value.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("not a positive number"),
    }
}
