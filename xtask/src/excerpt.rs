//! What of a failed command's output is worth to be read again at the end of a long log.

/// Lines around a complaint.
const AFTER: usize = 4;
/// Most lines of one command.
const MOST: usize = 60;

/// How compilers, tests and the programs of the tests complain.
const COMPLAINTS: [&str; 5] = ["panicked at", "FAILED", "failures:", "error:", "error["];

/// The complaints in `output`, with what follows them; the end of it if there are none.
pub fn excerpt(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let complains = |line: &&str| COMPLAINTS.iter().any(|complaint| line.contains(complaint));
    let mut chosen: Vec<&str> = Vec::new();
    let mut left = 0;
    for line in &lines {
        left = if complains(line) { AFTER } else { left };
        if left > 0 {
            chosen.push(line);
            left -= 1;
        }
    }
    let chosen = if chosen.is_empty() { &lines } else { &chosen };
    chosen[chosen.len().saturating_sub(MOST)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_found_wherever_they_are() {
        let noise = "ok\n".repeat(1_000);
        let output = format!(
            "{noise}thread 'a' panicked at b.rs:1:2:\nleft\nright\nnote\nmore\n{noise}test a ... FAILED\n"
        );
        assert_eq!(
            excerpt(&output),
            "thread 'a' panicked at b.rs:1:2:\nleft\nright\nnote\ntest a ... FAILED"
        );
        assert_eq!(excerpt(&"x\n".repeat(200)).lines().count(), MOST);
    }
}
