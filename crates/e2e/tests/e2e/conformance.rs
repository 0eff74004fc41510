//! What others wrote to test memcached and its clients, run against a real cluster through one of its nodes.
//!
//! Every test installs what it needs: Debian's libmemcached-tools, pymemcache's and meta-memcache from PyPI, gomemcache
//! from the Go module proxy.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use nix::sys::signal::Signal;
use processes::local_cluster::{LocalCluster, Options};
use processes::others::{ensure_program, others_dir, python_source, python_with, read};

use super::support::flush;

const PYMEMCACHE: &str = "4.0.0";
const GOMEMCACHE: &str = "v0.0.0-20260422231931-4d751bb6e37c";

fn cluster() -> LocalCluster {
    LocalCluster::start(&Options::default().with_memcacheds_values()).expect("a cluster starts")
}

/// A Python that has what the tests of our package need.
pub fn packages_python() -> Result<PathBuf, String> {
    python_with("gestalt-python", &["pytest==9.2.0", "numpy==2.4.6", "setuptools==84.2.1"])
}

/// The directory with the helpers of these tests.
fn helpers() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/conformance"))
}

#[test]
fn libmemcacheds_capability_test_passes_where_memcached_does() {
    ensure_program("memccapable", "libmemcached-tools").unwrap();
    let cluster = cluster();
    let port = cluster.memcached(1).port().to_string();
    // It ends with an error for two tests, in which memcached 1.6.45 fails, too: they want another refusal of a delete with a time.
    let run = format!("memccapable -h 127.0.0.1 -p {port} -a -t 10 || true");
    let text = read(Command::new("sh").args(["-c", &run])).unwrap();
    assert!(text.contains("2 of 27 tests failed") && text.matches("[pass]").count() == 25, "{text}");
    let passed = |test: &str| text.contains(&format!("{test:<40}[pass]"));
    assert!(passed("ascii incr") && !passed("ascii delete") && !passed("ascii delete noreply"), "{text}");
}

#[test]
fn pymemcaches_integration_suite_passes() {
    let packages =
        ["pytest==9.2.0", "pymemcache==4.0.0", "Faker==40.54.0", "zstd==1.5.7.2", "gevent==26.9.0"];
    let python = python_with("pymemcache-python", &packages).unwrap();
    let source = python_source(&python, "pymemcache", PYMEMCACHE).unwrap();
    let cluster = cluster();
    let port = cluster.memcached(2).port().to_string();
    let pytest = |tests: &str, but: &[&str]| {
        let mut pytest = Command::new(&python);
        let options = ["-m", "pytest", tests, "-m", "integration", "-q", "-o", "addopts=", "--capture=fd"];
        pytest.current_dir(&source).args(options);
        but.iter().for_each(|test| _ = pytest.args(["--deselect", test]));
        read(pytest.args(["--server", "127.0.0.1", "--port", &port]))
    };
    // The first wants `stats cachedump` and `cache_memlimit`, which are refused (docs/memcached.md).
    let (misc, touch) =
        ["misc", "touch"].map(|test| format!("pymemcache/test/test_integration.py::test_{test}")).into();
    let text = pytest("pymemcache/test", &[&misc, &touch]).unwrap();
    assert!(text.contains(" passed"), "pytest ran no test");
    // It touches what lives for one second.
    let text = despite_whole_seconds(&cluster, || pytest(&touch, &[])).unwrap();
    assert!(text.contains(" passed"), "pytest ran no test");
}

/// Runs a test of short times to live, up to three times: time is told in whole seconds, as memcached does, so what is to live for one
/// second is gone at once where that second ends.
fn despite_whole_seconds(
    cluster: &LocalCluster,
    test: impl Fn() -> Result<String, String>,
) -> Result<String, String> {
    let again = || {
        flush(cluster, 0);
        test()
    };
    test().or_else(|_| again()).or_else(|_| again())
}

#[test]
fn the_python_package_passes_its_tests_and_becomes_a_wheel() {
    let python = packages_python().unwrap();
    let library = std::env::current_exe().unwrap().with_file_name("libgestalt_c.so");
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/python");
    // The suite has scans.
    let mut options = Options::default();
    options.flags.push("--native-scans".to_owned());
    let cluster = LocalCluster::start(&options).expect("a cluster starts");
    let uri = format!("gestalt://{}/default", cluster.native(1).unwrap());
    let pytest = |folder: &Path| {
        let mut pytest = Command::new(&python);
        pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(package.join("tests"));
        pytest.env("GESTALT_URI", &uri).env("PYTHONPATH", folder).env("PYTHONDONTWRITEBYTECODE", "1");
        pytest
    };
    let text = read(pytest(&package).env("GESTALT_LIBRARY", &library)).unwrap();
    assert!(text.contains(" passed"), "pytest ran no test");
    let dir = tempfile::tempdir().unwrap();
    let mut build = Command::new(package.join("build.sh"));
    build.arg(&python).arg(&library).arg(dir.path()).args(["--no-index", "--no-build-isolation"]);
    read(&mut build).unwrap();
    let wheel = fs::read_dir(dir.path()).unwrap().next().expect("a wheel").unwrap().path();
    let name = wheel.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.contains("-py3-none-manylinux_2_"), "{name}");
    let installed = dir.path().join("installed");
    let install =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--target"];
    read(Command::new(&python).args(install).arg(&installed).arg(wheel)).unwrap();
    let text = read(pytest(&installed).args(["-k", "conformance"])).unwrap();
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn the_c_client_is_found_by_pkg_config_and_lives_through_nodes_that_are_killed_and_stopped() {
    ensure_program("pkg-config", "pkgconf").unwrap();
    let krate = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gestalt-c");
    let built = std::env::current_exe().unwrap().with_file_name("");
    let dir = tempfile::tempdir().unwrap();
    read(Command::new(krate.join("install.sh")).arg(built).arg(dir.path())).unwrap();
    let lib = dir.path().join("lib");
    let mut asked = Command::new("pkg-config");
    asked.env("PKG_CONFIG_PATH", lib.join("pkgconfig")).args(["--cflags", "--libs", "gestalt"]);
    let flags = read(&mut asked).unwrap();
    let program = dir.path().join("faults");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu99", "-o"]).arg(&program).arg(krate.join("tests/c_client/c/faults.c"));
    read(compiler.args(flags.split_whitespace())).unwrap();
    let cluster = cluster();
    let mut command = Command::new(program);
    command.arg(format!("gestalt://{}/default", cluster.native(0).unwrap())).env("LD_LIBRARY_PATH", lib);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "running\n");
    cluster.kill_nodes(&[3]);
    thread::sleep(Duration::from_secs(3));
    // Past its lease, so that another one serves its keys.
    cluster.signal(2, Signal::SIGSTOP);
    thread::sleep(Duration::from_secs(3));
    cluster.signal(2, Signal::SIGCONT);
    drop(child.stdin.take());
    let mut tally = String::new();
    output.read_to_string(&mut tally).unwrap();
    println!("{tally}");
    assert!(child.wait().unwrap().success(), "{tally}");
    // A write to a connection that is gone ends as a request, and not the program; and nearly all are asked again under their names.
    let ended = |line: &str| {
        line.split_once(' ').and_then(|(code, count)| Some((code == "Ok", count.parse::<u64>().ok()?)))
    };
    let (done, failed): (Vec<_>, Vec<_>) = tally.lines().filter_map(ended).partition(|(is_done, _)| *is_done);
    let sum = |counts: &[(bool, u64)]| counts.iter().map(|(_, count)| count).sum::<u64>();
    assert!(sum(&done) > 10_000 && sum(&failed) < sum(&done) / 10, "{tally}");
}

/// No wrong use of memory, and nothing that nobody can free any more.
#[test]
fn c_programs_are_clean_under_valgrind() {
    ensure_program("valgrind", "valgrind").unwrap();
    let krate = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gestalt-c");
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default().with_memcacheds_values();
    options.flags.push("--native-scans".to_owned());
    let cluster = LocalCluster::start(&options).expect("a cluster starts");
    let uri = format!("gestalt://{}/default?timeout=60s", cluster.native(0).unwrap());
    // Whoever calls is not answered.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("gestalt://{}", silent.local_addr().unwrap());
    for (name, args) in [("everything", &[&uri, &nobody][..]), ("epoll", &[&uri])] {
        let program = dir.path().join(name);
        let mut compiler = Command::new("cc");
        compiler.args(["-std=gnu99", "-g", "-pthread", "-o"]).arg(&program);
        compiler.arg(krate.join("tests/c_client/c").join(name).with_extension("c"));
        compiler.arg(format!("-I{}", krate.join("include").display()));
        compiler.arg(std::env::current_exe().unwrap().with_file_name("libgestalt_c.a")).args(["-ldl", "-lm"]);
        read(&mut compiler).unwrap();
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["-q", "--error-exitcode=9", "--leak-check=full"]);
        let kinds = "definite,indirect";
        valgrind.args([format!("--show-leak-kinds={kinds}"), format!("--errors-for-leak-kinds={kinds}")]);
        read(valgrind.arg(program).args(args)).unwrap();
    }
}

#[test]
fn a_hash_client_with_the_settings_of_the_docs_finds_every_key_when_a_node_is_killed() {
    let docs = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/clients.md")).unwrap();
    assert!(
        docs.contains("`retry_attempts=0, dead_timeout=30`"),
        "the helper has other settings than the docs"
    );
    let python = python_with("hash-client-python", &["pymemcache==4.0.0"]).unwrap();
    let cluster = cluster();
    let ports = cluster.all_memcached().into_iter().map(|address| address.port().to_string());
    let mut client = Command::new(python);
    client.arg(helpers().join("hash_client.py")).arg(cluster.pids()[2].to_string()).args(ports);
    let text = read(&mut client).unwrap();
    assert!(text.starts_with("0 false misses, "), "{text}");
    let errors = text.split(' ').nth(3).and_then(|errors| errors.parse::<u32>().ok());
    assert!(errors.is_some_and(|errors| errors < 10), "{text}");
}

#[test]
fn gomemcaches_own_test_passes() {
    ensure_program("go", "golang-go").unwrap();
    let dir = others_dir().unwrap().join("gomemcache");
    fs::create_dir_all(dir.join("bin")).unwrap();
    fs::write(dir.join("go.mod"), "module conformance\n\ngo 1.21\n").unwrap();
    fs::copy(helpers().join("memcached-shim.sh"), dir.join("bin/memcached")).unwrap();
    let package = "github.com/bradfitz/gomemcache/memcache";
    let go = |args: &[&str]| {
        let mut command = Command::new("go");
        command.current_dir(&dir).env("GOFLAGS", "-mod=mod").args(args);
        command
    };
    read(&mut go(&["get", "-t", &format!("github.com/bradfitz/gomemcache@{GOMEMCACHE}")])).unwrap();
    let cluster = cluster();
    // Its test over a Unix socket starts `memcached -s SOCKET`; the shim of that name leads to the cluster. Its other
    // test wants port 11211 and empties whatever listens there, which may be somebody's.
    let socket = dir.join("socket");
    bridge(&socket, cluster.memcached(3));
    let path = format!("{}:{}", dir.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let run = || {
        let mut test = go(&["test", package, "-count=1", "-v", "-run", "^TestUnixSocket$"]);
        read(test.env("PATH", &path).env("GESTALT_SOCKET", &socket))
    };
    // It touches each second what lives for two.
    let text = despite_whole_seconds(&cluster, run);
    let _ = fs::read_to_string(socket.with_extension("link")).map(|link| fs::remove_file(link.trim_end()));
    assert!(text.unwrap().contains("--- PASS: TestUnixSocket"), "the test did not run");
}

/// Listens on a Unix socket and passes every byte to and from `server`.
fn bridge(socket: &Path, server: SocketAddr) {
    let _ = fs::remove_file(socket);
    let listener = UnixListener::bind(socket).expect("the directory is this test's own");
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(server) else { return };
            let _ = server.set_nodelay(true);
            let (Ok(client_in), Ok(server_in)) = (client.try_clone(), server.try_clone()) else { return };
            thread::spawn(move || pump(client_in, &server));
            thread::spawn(move || pump(server_in, &client));
        }
    });
}

/// Copies until the source ends.
fn pump(mut from: impl Read, mut to: impl Write) {
    let _ = io::copy(&mut from, &mut to);
}

#[test]
fn a_meta_protocol_client_gets_the_answers_it_expects() {
    let python = python_with("meta-python", &["meta-memcache==4.3.0"]).unwrap();
    let cluster = cluster();
    let script = helpers().join("meta_client.py");
    let text = read(Command::new(&python).arg(script).arg(cluster.memcached(4).to_string())).unwrap();
    assert!(text.contains(" passed, 0 failed"), "the checks did not run");
}
