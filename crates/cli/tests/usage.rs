//! Wrong usage is one clear line and exit code 1; nobody there is exit code 2; help has examples.

#![allow(clippy::unwrap_used)] // a panic is how a test reports

use std::net::TcpListener;
use std::process::{Command, Output};

fn gestalt(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gestalt"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("GESTALT_")) {
        command.env_remove(name);
    }
    command.args(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Exit code 1 and one line that contains all of `parts`.
fn refuses(args: &[&str], parts: &[&str]) {
    let output = gestalt(args);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{args:?}: {text}");
    for part in parts {
        assert!(text.contains(part), "{args:?}: '{text}' lacks '{part}'");
    }
    assert!(output.stdout.is_empty());
}

/// A port with 20 free ones behind it, as far as can be known.
fn free_port() -> u16 {
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if port < 65_000 && (port..port + 20).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            return port;
        }
    }
}

#[test]
fn a_bad_profile_is_one_line() {
    refuses(&["local", "--profile", "rs(3+)"], &["profile 'rs(3+)' is not understood", "write 'rs(3+2)'"]);
    refuses(&["local", "--profile", "lrc(4,5,1)"], &["there is no code lrc(4,5,1)"]);
    refuses(&["local", "--profile", "rs(33+2)"], &["out of bounds", "1..=32"]);
    refuses(&["local", "--profile", "lrc(12,2,2)"], &["needs 16 nodes", "--nodes 16"]);
    refuses(&["local", "--profile", "rs(3+2)", "--nodes", "4"], &["needs 5 nodes", "--nodes 5"]);
}

#[test]
fn a_kernel_that_is_not_here_is_refused_with_those_that_are() {
    let run = |kernel: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gestalt"));
        command
            .env("GESTALT_CODEC", kernel)
            .args(["kv", "locate", "key", "--http", "127.0.0.1:1"])
            .output()
            .unwrap()
    };
    let refused = run("abacus");
    assert_eq!(refused.status.code(), Some(1));
    let text = stderr(&refused);
    assert!(text.contains("GESTALT_CODEC: no kernel 'abacus'") && text.contains("scalar"), "{text}");
    assert_eq!(run("scalar").status.code(), Some(2));
}

#[test]
fn ports_in_use_are_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().port();
    let (port, http) = (taken.to_string(), free_port().to_string());
    refuses(&["local", "--port", &port, "--http", &http], &[&format!("port {taken} is in use"), "--port"]);
}

#[test]
fn too_much_and_too_little_memory_say_what_would_do() {
    refuses(&["local", "--memory", "1TiB"], &["this machine has", "--memory"]);
    refuses(&["local", "--memory", "1MiB"], &["too little for the 5 roles", "at least"]);
    refuses(&["local", "--memory", "lots"], &["'lots' is not a size", "for example 512MiB"]);
    refuses(&["local", "--lease", "soon"], &["'soon' is not a duration", "for example 500ms"]);
    refuses(&["local", "--lease", "1ms"], &["out of bounds"]);
}

#[test]
fn an_unknown_config_key_names_the_nearest() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("node.toml");
    std::fs::write(&file, "node = 1\nmemroy = \"1GiB\"\n").unwrap();
    refuses(
        &["serve", "--config", file.to_str().unwrap()],
        &["node.toml: line 2: ", "unknown key 'memroy'", "'memory'"],
    );
    refuses(&["serve", "--config", "/nowhere/node.toml"], &["/nowhere/node.toml"]);
}

#[test]
fn wrong_flags_are_exit_code_1_too() {
    let wrong = [&["bench", "--htp", "x"][..], &["frobnicate"], &["kv", "get"], &[]];
    let operators = [&["node", "drain"][..], &["node", "start"], &["node", "drain", "1", "--timeout", "1s"]];
    let settings = [&["serve", "--coding-place", "moon"][..]];
    for args in wrong.into_iter().chain(operators).chain(settings) {
        let output = gestalt(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", stderr(&output));
    }
    refuses(&["bench", "a", "--wait", "2", "--server", "127.0.0.1:1"], &["--protocol redis"]);
    refuses(&["repair", "limit", "--rate", "0"], &["repair pause"]);
    refuses(&["layout", "apply", "-f", "/nowhere/layout.json"], &["/nowhere/layout.json"]);
    refuses(&["bench", "a", "--zipf", "nan", "--server", "127.0.0.1:1"], &["--zipf"]);
}

#[test]
fn nobody_there_is_exit_code_2() {
    let address = format!("127.0.0.1:{}", free_port());
    for args in [
        &["status", "--http", &address][..],
        &["node", "list", "--http", &address],
        &["node", "drain", "1", "--http", &address],
        &["layout", "show", "--http", &address],
        &["repair", "pause", "--http", &address],
        &["repair", "limit", "--http", &address],
        &["node", "start", "1", "--http", &address],
        &["node", "stop", "1", "--http", &address],
        &["node", "fence", "1", "--http", &address],
        &["kv", "get", "key", "--http", &address],
        &["bench", "c", "--http", &address, "--duration", "100ms"],
        &["bench", "c", "--server", &address, "--duration", "100ms"],
    ] {
        let output = gestalt(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(!stderr(&output).is_empty());
    }
}

#[test]
fn the_asking_variable_is_not_the_listening_one() {
    let address = format!("127.0.0.1:{}", free_port());
    let run = |variable: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gestalt"));
        command.env_remove("GESTALT_HTTP").env_remove("GESTALT_ENDPOINT").env(variable, &address);
        stderr(&command.args(["status"]).output().unwrap())
    };
    assert!(run("GESTALT_ENDPOINT").contains(&address));
    assert!(!run("GESTALT_HTTP").contains(&address), "that is what a process listens on");
}

#[test]
fn listening_on_everything_needs_an_address_to_tell() {
    let port = free_port();
    let any = |offset: u16| format!("0.0.0.0:{}", port + offset);
    let (memcached, peer, http) = (any(0), any(1), any(2));
    let common = [
        "serve",
        "--node",
        "0",
        "--coordinator",
        "embedded://127.0.0.1:1",
        "--memory",
        "64MiB",
        "--workers",
        "1",
    ];
    let listen = ["--memcached", &memcached, "--peer", &peer, "--http", &http];
    let output = gestalt(&[&common[..], &listen].concat());
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in [peer.as_str(), "--advertise HOST", "--advertise-peer HOST:PORT"] {
        assert!(text.contains(part), "{text}");
    }
    refuses(&[&common[..], &["--advertise", "10.0.0.1:9178"]].concat(), &["--advertise", "without a port"]);
    refuses(&[&common[..], &["--advertise-listen", "10.0.0.1:1"]].concat(), &["--advertise-listen needs"]);
}

#[test]
fn help_has_an_example_everywhere() {
    for command in
        [&[][..], &["local"], &["serve"], &["status"], &["bench"], &["kv"], &["kv", "set"], &["kv", "locate"]]
            .into_iter()
            .chain([&["node"][..], &["node", "list"], &["node", "drain"], &["node", "undrain"]])
            .chain([&["node", "start"][..], &["node", "stop"]])
            .chain([&["node", "fence"][..], &["node", "can-stop"], &["layout"], &["layout", "show"]])
            .chain([&["layout", "diff"][..], &["layout", "apply"], &["repair"], &["repair", "status"]])
            .chain([&["repair", "pause"][..], &["repair", "resume"], &["repair", "limit"]])
    {
        let output = gestalt(&[command, &["--help"]].concat());
        assert_eq!(output.status.code(), Some(0));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("Example"), "{command:?}: {text}");
    }
}
