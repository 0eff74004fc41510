//! The limits, in one table.

/// Most lines of a function, with its signature.
pub const FUNCTION_LINES: usize = 70;

/// Most lines of a file, with its comments and tests.
pub const FILE_LINES: usize = 800;

/// Most methods of a type, those of traits left out, those of all its files together.
pub const METHODS: usize = 60;

/// Most files of one crate that import each other in a circle.
pub const CIRCLE_FILES: usize = 3;

/// What each crate may depend on of ours, by layers: a crate sees what it names here and nothing else. `cargo` allows more.
pub const LAYERS: &[(&str, &[&str])] = &[
    ("scheme", &[]),
    ("types", &["scheme"]),
    ("codec", &["scheme"]),
    ("etcd", &[]),
    ("wire", &["types"]),
    ("faces", &["types"]),
    ("native", &["types"]),
    ("cluster", &["codec", "types"]),
    ("graph", &["codec", "types"]),
    ("store", &["types"]),
    ("codec-cuda", &["codec"]),
    ("codec-peers", &["codec"]),
    ("codec-c", &["codec", "codec-cuda"]),
    ("codec-bench", &["codec", "codec-cuda", "codec-peers"]),
    ("proto", &["cluster", "codec", "graph", "store", "types", "wire"]),
    ("client-core", &["codec", "native", "types"]),
    ("gestalt", &["client-core", "native", "types"]),
    ("gestalt-c", &["gestalt"]),
    ("client", &["faces", "types"]),
    ("load", &["client", "native", "types"]),
    ("server", &["cluster", "codec", "etcd", "faces", "graph", "native", "proto", "store", "types", "wire"]),
    (
        "cli",
        &[
            "client",
            "cluster",
            "codec",
            "codec-bench",
            "codec-cuda",
            "etcd",
            "faces",
            "gestalt",
            "graph",
            "load",
            "proto",
            "server",
            "store",
            "types",
        ],
    ),
    // What tests and measures. Nothing above sees it.
    ("rng", &[]),
    (
        "sim",
        &["client-core", "cluster", "codec", "graph", "native", "proto", "rng", "store", "types", "wire"],
    ),
    ("processes", &["rng", "types"]),
    ("history", &["client", "faces", "gestalt", "processes", "rng", "types"]),
    ("chaos", &["client", "faces", "history", "processes", "rng", "types"]),
    (
        "measure",
        &["client", "cluster", "codec", "gestalt", "graph", "history", "processes", "proto", "types", "wire"],
    ),
    ("hot-paths", &["codec", "proto", "rng", "server", "store", "types", "wire"]),
    ("e2e", &[]),
];

/// What is named in one room of a crate only: the crate, the names, the room.
pub const ROOMS: &[(&str, &[&str], &str)] = &[(
    "server",
    &["tokio::net", "socket2", "TcpStream", "TcpListener", "std::os::fd"],
    "crates/server/src/transport/",
)];

/// Words that are not used, each with the one that is, or why.
pub const BANNED: &[(&str, &str)] = &[
    ("slave", "parity, stand-in"),
    ("whitelist", "allowed"),
    ("blacklist", "refused"),
    ("TODO", "do it, or say in the issue what is left"),
    ("FIXME", "do it, or say in the issue what is left"),
    ("XXX", "say it in a sentence"),
    ("/home/", "a path of one machine"),
    ("/Users/", "a path of one machine"),
    ("blazing", "a figure instead"),
];
