//! memcached and valkey as their authors release them: built from the sources that Debian keeps, since the binaries of a stable
//! Debian are years older, and slower. Where those sources cannot be had, Debian's binaries.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::others::{ensure_package, ensure_program, others_dir, read, show};

/// A server that others wrote.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Name and version, for tables.
    pub title: String,
    /// What to run.
    pub program: PathBuf,
}

/// A release of somebody's sources in Debian's pool, and how to build it.
struct Release {
    name: &'static str,
    archive: &'static str,
    sha256: &'static str,
    /// Headers that the build includes, and the Debian packages that bring them.
    needs: &'static [(&'static str, &'static str)],
    /// Shell commands, run in the unpacked directory.
    build: &'static str,
    /// What that makes, in the unpacked directory.
    program: &'static str,
}

const POOL: &str = "http://deb.debian.org/debian/pool/main";

const MEMCACHED: Release = Release {
    name: "memcached-1.6.45",
    archive: "m/memcached/memcached_1.6.45.orig.tar.xz",
    sha256: "c383a2ad8f973b627c3de472702f46ee33b402750de4fd2d25cef65a00140110",
    needs: &[("/usr/include/event2/event.h", "libevent-dev")],
    build: "./configure --quiet && make --quiet -j2 memcached",
    program: "memcached",
};

const VALKEY: Release = Release {
    name: "valkey-9.1.2",
    archive: "v/valkey/valkey_9.1.2.orig.tar.gz",
    sha256: "8e8557da7426a51b4e0fb514a65ef6241dc7c85cb408243af389070abf379cec",
    needs: &[],
    build: "make --quiet -j2 BUILD_TLS=no -C src valkey-server",
    program: "src/valkey-server",
};

/// memcached.
///
/// # Errors
/// One line if neither its sources nor Debian's binary can be had.
pub fn memcached() -> Result<Peer, String> {
    let program = built(&MEMCACHED).or_else(|reason| {
        println!("{reason}: taking Debian's memcached");
        ensure_program("memcached", "memcached").map(|()| PathBuf::from("memcached"))
    })?;
    titled(program)
}

/// valkey, or redis.
///
/// # Errors
/// One line if neither its sources nor Debian's redis can be had.
pub fn valkey() -> Result<Peer, String> {
    let program = built(&VALKEY).or_else(|reason| {
        println!("{reason}: taking Debian's redis");
        ensure_program("redis-server", "redis-server").map(|()| PathBuf::from("redis-server"))
    })?;
    titled(program)
}

/// Debian's redis: there in a moment, where a release takes minutes to build.
///
/// # Errors
/// One line if it cannot be had.
pub fn redis() -> Result<Peer, String> {
    ensure_program("redis-server", "redis-server")?;
    titled(PathBuf::from("redis-server"))
}

/// With the name and version that the program says itself.
fn titled(program: PathBuf) -> Result<Peer, String> {
    let output = Command::new(&program).arg("--version").output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    let title = title(&String::from_utf8_lossy(&output.stdout));
    Ok(Peer {
        title: title.ok_or_else(|| format!("{} does not say its version", program.display()))?,
        program,
    })
}

/// From `memcached 1.6.45` or `Valkey server v=9.1.2 sha=…`.
fn title(words: &str) -> Option<String> {
    let mut words = words.split_whitespace();
    let name = words.next()?.to_lowercase();
    let version =
        words.find(|word| word.trim_start_matches("v=").starts_with(|c: char| c.is_ascii_digit()))?;
    Some(format!("{name} {}", version.trim_start_matches("v=")))
}

/// The program of `release`, fetched and built if it is not there.
fn built(release: &Release) -> Result<PathBuf, String> {
    let dir = others_dir()?.join(release.name);
    let program = dir.join(release.program);
    if program.is_file() {
        return Ok(program);
    }
    for (header, package) in release.needs {
        ensure_package(Path::new(header), package)?;
    }
    fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let archive = fetch(release)?;
    show(Command::new("tar").args(["--strip-components=1", "-xf"]).arg(archive).arg("-C").arg(&dir))?;
    show(Command::new("sh").arg("-c").arg(release.build).current_dir(&dir))?;
    if program.is_file() {
        Ok(program)
    } else {
        Err(format!("{} was built without its program", release.name))
    }
}

/// The archive, whose sum is the one expected.
fn fetch(release: &Release) -> Result<PathBuf, String> {
    let file = release.archive.rsplit('/').next().unwrap_or(release.archive);
    let path = others_dir()?.join(file);
    let url = format!("{POOL}/{}", release.archive);
    println!("fetching {url}");
    let mut answer = ureq::get(&url).call().map_err(|error| format!("{url}: {error}"))?;
    let bytes = answer.body_mut().with_config().limit(64 << 20).read_to_vec();
    fs::write(&path, bytes.map_err(|error| format!("{url}: {error}"))?).map_err(|error| error.to_string())?;
    let sum = read(Command::new("sha256sum").arg(&path))?;
    if !sum.starts_with(release.sha256) {
        let _ = fs::remove_file(&path);
        return Err(format!("{url} is not the file that was expected"));
    }
    Ok(path)
}

/// How many replicas of a valkey or redis are connected and have caught up.
///
/// # Errors
/// One line if it cannot be asked.
pub fn replicas_online(primary: SocketAddr) -> Result<usize, String> {
    let ask = || -> std::io::Result<usize> {
        let mut stream = TcpStream::connect(primary)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        // With QUIT the server closes, and the lines end.
        stream.write_all(b"INFO replication\r\nQUIT\r\n")?;
        let mut online = 0;
        for line in BufReader::new(stream).lines() {
            online += usize::from(line?.contains("state=online"));
        }
        Ok(online)
    };
    ask().map_err(|error| format!("{primary}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::title;

    #[test]
    fn servers_are_called_by_their_own_names() {
        assert_eq!(title("memcached 1.6.45\n").unwrap(), "memcached 1.6.45");
        assert_eq!(title("Valkey server v=9.1.2 sha=0:1 malloc=jemalloc").unwrap(), "valkey 9.1.2");
        assert_eq!(title("Redis server v=7.0.15 sha=0").unwrap(), "redis 7.0.15");
        assert_eq!(title("nothing"), None);
    }
}
