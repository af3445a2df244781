//! Numbers of things in messages.

/// So many of a thing: "1 block", "8 blocks".
pub fn counted(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
