//! What a namespace drops, refuses or redirects, as a script for `nft`.
//!
//! Every script replaces the whole table in one transaction, so no moment has half of the rules.

use std::fmt::Write;
use std::net::Ipv4Addr;

/// One rule of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Packets from these are dropped.
    DropFrom(Vec<Ipv4Addr>),
    /// Packets to these are dropped.
    DropTo(Vec<Ipv4Addr>),
    /// So many of 100 packets from these are dropped, at random.
    LoseFrom(Vec<Ipv4Addr>, u8),
    /// New connections to this address and port go to another one; what is connected directly is reset.
    Redirect {
        /// What is dialled.
        from: (Ipv4Addr, u16),
        /// Where it goes.
        to: (Ipv4Addr, u16),
    },
    /// Connections that this address has opened to this port here are reset.
    ResetFrom(Ipv4Addr, u16),
}

/// The script that makes `rules` the only ones.
pub fn script(rules: &[Rule]) -> String {
    // The first line makes the second one work where there is no table yet.
    let mut text = "table ip chaos {}\ndelete table ip chaos\n".to_owned();
    if rules.is_empty() {
        return text;
    }
    let chains = [
        ("in", "type filter hook input priority 0"),
        ("out", "type filter hook output priority 0"),
        ("nat", "type nat hook output priority -100"),
    ];
    text.push_str("table ip chaos {\n");
    for (name, hook) in chains {
        let lines: Vec<String> = rules.iter().filter_map(|rule| line(rule, name)).collect();
        if !lines.is_empty() {
            let _ = write!(text, " chain {name} {{\n  {hook}\n  {}\n }}\n", lines.join("\n  "));
        }
    }
    text.push_str("}\n");
    text
}

/// What `rule` says in the chain `chain`.
fn line(rule: &Rule, chain: &str) -> Option<String> {
    let reset = "reject with tcp reset";
    Some(match (rule, chain) {
        (Rule::DropFrom(addresses), "in") => format!("ip saddr {{ {} }} drop", list(addresses)),
        (Rule::DropTo(addresses), "out") => format!("ip daddr {{ {} }} drop", list(addresses)),
        (Rule::LoseFrom(addresses, percent), "in") => {
            format!("ip saddr {{ {} }} numgen random mod 100 < {percent} drop", list(addresses))
        }
        (Rule::Redirect { from: (address, port), to }, "nat") => {
            format!("ip daddr {address} tcp dport {port} dnat to {}:{}", to.0, to.1)
        }
        // This chain comes after the one that redirects: only what was connected directly has this address still.
        (Rule::Redirect { from: (address, port), .. }, "out") => {
            format!("ip daddr {address} tcp dport {port} {reset}")
        }
        (Rule::ResetFrom(address, port), "out") => format!("ip daddr {address} tcp sport {port} {reset}"),
        _ => return None,
    })
}

fn list(addresses: &[Ipv4Addr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

    #[test]
    fn no_rules_leave_no_table() {
        assert_eq!(script(&[]), "table ip chaos {}\ndelete table ip chaos\n");
    }

    #[test]
    fn each_direction_has_its_chain() {
        let text = script(&[Rule::DropFrom(vec![A, B]), Rule::DropTo(vec![B]), Rule::LoseFrom(vec![A], 7)]);
        let (head, out) = text.split_once(" chain out").unwrap();
        assert!(head.contains("ip saddr { 10.77.0.1, 10.77.0.2 } drop"), "{text}");
        assert!(head.contains("numgen random mod 100 < 7 drop"), "{text}");
        assert!(out.contains("ip daddr { 10.77.0.2 } drop"), "{text}");
        assert!(!text.contains("nat"), "{text}");
    }

    #[test]
    fn a_redirection_resets_what_is_connected_already() {
        let text = script(&[Rule::Redirect { from: (A, 9178), to: (B, 20_000) }]);
        assert!(text.contains("ip daddr 10.77.0.1 tcp dport 9178 reject with tcp reset"), "{text}");
        assert!(text.contains("ip daddr 10.77.0.1 tcp dport 9178 dnat to 10.77.0.2:20000"), "{text}");
    }
}
