//! How `gestalt serve` gets into etcd, and what it wants of the cluster that lives there.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use etcd::{Config, Endpoints, Login, Tls};
use server::{Coordination, ElectedConfig, Founding};

use crate::config::NodeSettings;
use crate::coordinator::fresh_id;
use crate::exit::Exit;

/// Longest file with a certificate, a key or a password.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Name of a cluster that is given none.
const DEFAULT_NAME: &str = "gestalt";

/// How the node takes part in elections; its peers' listener is `peer`.
///
/// # Errors
/// `Usage` with what is missing or cannot be read.
pub fn coordination(
    settings: &NodeSettings,
    endpoints: Endpoints,
    peer: SocketAddr,
) -> Result<Coordination, Exit> {
    let etcd = Config { tls: tls(settings)?, login: login(settings)?, ..Config::plain(endpoints) };
    let founding = Founding {
        // Counts only where this node's coordinator finds no cluster, and founds one.
        cluster: fresh_id(),
        nodes: settings.nodes,
        groups: settings.groups,
        on_loss: settings.on_loss.map(Into::into),
    };
    Ok(Coordination::Elected(Box::new(ElectedConfig {
        etcd,
        name: settings.cluster.clone().unwrap_or_else(|| DEFAULT_NAME.to_owned()),
        listen: settings.listen.unwrap_or(SocketAddr::new(peer.ip(), 0)),
        founding,
    })))
}

/// That nothing is given that means nothing with another coordinator.
///
/// # Errors
/// `Usage` with the flag.
pub fn refuse(settings: &NodeSettings) -> Result<(), Exit> {
    match settings.first_for_etcd() {
        Some(flag) => Err(Exit::Usage(format!(
            "{flag} needs --coordinator etcd://...: with embedded://... the coordinator is told instead"
        ))),
        None => Ok(()),
    }
}

fn tls(settings: &NodeSettings) -> Result<Option<Tls>, Exit> {
    let identity = match (&settings.etcd_cert, &settings.etcd_key) {
        (Some(certificate), Some(key)) => Some((read(certificate, "--etcd-cert")?, read(key, "--etcd-key")?)),
        (None, None) => None,
        _ => return Err(Exit::Usage("--etcd-cert and --etcd-key belong together: give both".to_owned())),
    };
    match (&settings.etcd_ca, identity) {
        (Some(ca), identity) => Ok(Some(Tls { ca: read(ca, "--etcd-ca")?, identity })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Exit::Usage(
            "--etcd-cert needs --etcd-ca: the authority that has signed etcd's certificate".to_owned(),
        )),
    }
}

fn login(settings: &NodeSettings) -> Result<Option<Login>, Exit> {
    match (&settings.etcd_user, &settings.etcd_password_file) {
        (Some(user), Some(file)) => {
            let password = String::from_utf8(read(file, "--etcd-password-file")?).map_err(Exit::usage)?;
            // Editors end a file with the end of a line, which is no part of a password.
            let password = password.trim_end_matches(['\r', '\n']).to_owned();
            Ok(Some(Login { user: user.clone(), password }))
        }
        (None, None) => Ok(None),
        _ => Err(Exit::Usage("--etcd-user and --etcd-password-file belong together: give both".to_owned())),
    }
}

fn read(path: &Path, flag: &str) -> Result<Vec<u8>, Exit> {
    let bad = |reason: String| Exit::Usage(format!("{flag} {}: {reason}", path.display()));
    // Before it is read: the name may be that of some huge file.
    let length = fs::metadata(path).map_err(|error| bad(error.to_string()))?.len();
    if length > MAX_FILE_BYTES {
        return Err(bad(format!("{length} bytes are too many")));
    }
    fs::read(path).map_err(|error| bad(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(settings: &NodeSettings) -> Result<Coordination, Exit> {
        let endpoints = "etcd://127.0.0.1:1".parse().unwrap();
        coordination(settings, endpoints, "10.0.0.1:9178".parse().unwrap())
    }

    #[test]
    fn the_coordinator_listens_beside_the_peers_unless_told_otherwise() {
        let Coordination::Elected(elected) = resolve(&NodeSettings::default()).unwrap() else {
            panic!("not elected")
        };
        assert_eq!((elected.listen.to_string().as_str(), elected.name.as_str()), ("10.0.0.1:0", "gestalt"));
        assert!(elected.etcd.tls.is_none() && elected.etcd.login.is_none());
    }

    #[test]
    fn half_a_login_and_missing_files_are_refused_by_name() {
        let error = |args: NodeSettings| resolve(&args).unwrap_err().to_string();
        let path = || Some(std::path::PathBuf::from("/nowhere/at.all"));
        assert!(
            error(NodeSettings { etcd_cert: path(), ..Default::default() })
                .contains("--etcd-key belong together")
        );
        assert!(
            error(NodeSettings { etcd_user: Some("u".into()), ..Default::default() })
                .contains("--etcd-password-file")
        );
        let missing = error(NodeSettings { etcd_ca: path(), ..Default::default() });
        assert!(missing.starts_with("--etcd-ca /nowhere/at.all: No such file"), "{missing}");
    }

    #[test]
    fn flags_for_etcd_are_refused_without_it() {
        let settings = NodeSettings { groups: Some(5), ..Default::default() };
        let error = refuse(&settings).unwrap_err().to_string();
        assert!(error.starts_with("--groups needs --coordinator etcd://"), "{error}");
        assert!(refuse(&NodeSettings::default()).is_ok());
    }
}
