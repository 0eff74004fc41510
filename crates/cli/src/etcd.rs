//! How `gestalt serve` gets into etcd, and what it wants of the cluster that lives there.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use etcd::{Config, Endpoints, Login, Tls};
use server::{Coordination, ElectedConfig, Founding};

use crate::config::NodeFile;
use crate::coordinator::fresh_id;
use crate::exit::Exit;
use crate::settings::OnLoss;
use crate::units::address;

/// Flags that only count with `--coordinator etcd://…`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "With --coordinator etcd://...")]
pub struct EtcdArgs {
    /// How many nodes form the cluster, if this is the first [default: 5]
    #[arg(long, env = "GESTALT_NODES", value_parser = clap::value_parser!(u16).range(1..=1000))]
    nodes: Option<u16>,
    /// Coding groups in all, if this is the first node [default: nodes times workers]
    #[arg(long, env = "GESTALT_GROUPS", value_parser = clap::value_parser!(u32).range(1..=16_384))]
    groups: Option<u32>,
    /// What becomes of data when more is lost than the profile makes up for, if this is the first node; `gestalt lost policy`
    /// changes it later [default: error]
    #[arg(long, env = "GESTALT_ON_LOSS", value_enum)]
    on_loss: Option<OnLoss>,
    /// Where nodes connect while this one has the coordinator [default: the address of --peer, any free port]
    #[arg(long, env = "GESTALT_LISTEN", value_parser = address)]
    listen: Option<SocketAddr>,
    /// PEM file with the authority that has signed etcd's certificate; with it the connection is encrypted
    #[arg(long, env = "GESTALT_ETCD_CA", value_name = "FILE")]
    etcd_ca: Option<PathBuf>,
    /// PEM file with this node's own certificate, if etcd asks for one
    #[arg(long, env = "GESTALT_ETCD_CERT", value_name = "FILE")]
    etcd_cert: Option<PathBuf>,
    /// PEM file with its key
    #[arg(long, env = "GESTALT_ETCD_KEY", value_name = "FILE")]
    etcd_key: Option<PathBuf>,
    /// Name to log in with, if etcd asks for one
    #[arg(long, env = "GESTALT_ETCD_USER", value_name = "NAME")]
    etcd_user: Option<String>,
    /// File with its password
    #[arg(long, env = "GESTALT_ETCD_PASSWORD_FILE", value_name = "FILE")]
    etcd_password_file: Option<PathBuf>,
}

/// Longest file with a certificate, a key or a password.
const MAX_FILE_BYTES: u64 = 1 << 20;

impl EtcdArgs {
    /// Flag (or environment), then file.
    fn or(&self, file: &NodeFile) -> Self {
        let path =
            |flag: &Option<PathBuf>, key: &Option<String>| flag.clone().or(key.as_ref().map(PathBuf::from));
        Self {
            nodes: self.nodes.or(file.nodes),
            groups: self.groups.or(file.groups),
            on_loss: self.on_loss,
            listen: self.listen.or(file.listen),
            etcd_ca: path(&self.etcd_ca, &file.etcd_ca),
            etcd_cert: path(&self.etcd_cert, &file.etcd_cert),
            etcd_key: path(&self.etcd_key, &file.etcd_key),
            etcd_user: self.etcd_user.clone().or(file.etcd_user.clone()),
            etcd_password_file: path(&self.etcd_password_file, &file.etcd_password_file),
        }
    }

    /// How the node takes part in elections.
    ///
    /// # Errors
    /// `Usage` with what is missing or cannot be read.
    pub fn settle(
        &self,
        file: &NodeFile,
        endpoints: Endpoints,
        name: Option<&str>,
        peer: SocketAddr,
    ) -> Result<Coordination, Exit> {
        let flags = self.or(file);
        let etcd = Config { tls: flags.tls()?, login: flags.login()?, ..Config::plain(endpoints) };
        let on_loss = flags.on_loss(file)?.map(Into::into);
        let founding = Founding { cluster: fresh_id(), nodes: flags.nodes, groups: flags.groups, on_loss };
        Ok(Coordination::Elected(Box::new(ElectedConfig {
            etcd,
            name: name.unwrap_or(DEFAULT_NAME).to_owned(),
            listen: flags.listen.unwrap_or(SocketAddr::new(peer.ip(), 0)),
            founding,
        })))
    }

    fn on_loss(&self, file: &NodeFile) -> Result<Option<OnLoss>, Exit> {
        let read = |text: &String| {
            OnLoss::from_str(text, true)
                .map_err(|_| Exit::Usage(format!("key 'on-loss': '{text}' is neither error nor empty")))
        };
        self.on_loss.map(Ok).or(file.on_loss.as_ref().map(read)).transpose()
    }

    fn tls(&self) -> Result<Option<Tls>, Exit> {
        let identity = match (&self.etcd_cert, &self.etcd_key) {
            (Some(certificate), Some(key)) => {
                Some((read(certificate, "--etcd-cert")?, read(key, "--etcd-key")?))
            }
            (None, None) => None,
            _ => return Err(Exit::Usage("--etcd-cert and --etcd-key belong together: give both".to_owned())),
        };
        match (&self.etcd_ca, identity) {
            (Some(ca), identity) => Ok(Some(Tls { ca: read(ca, "--etcd-ca")?, identity })),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(Exit::Usage(
                "--etcd-cert needs --etcd-ca: the authority that has signed etcd's certificate".to_owned(),
            )),
        }
    }

    fn login(&self) -> Result<Option<Login>, Exit> {
        match (&self.etcd_user, &self.etcd_password_file) {
            (Some(user), Some(file)) => {
                let password = String::from_utf8(read(file, "--etcd-password-file")?).map_err(Exit::usage)?;
                let password = password.trim_end_matches(['\r', '\n']).to_owned();
                Ok(Some(Login { user: user.clone(), password }))
            }
            (None, None) => Ok(None),
            _ => {
                Err(Exit::Usage("--etcd-user and --etcd-password-file belong together: give both".to_owned()))
            }
        }
    }

    /// Flags that mean nothing with another coordinator.
    ///
    /// # Errors
    /// `Usage` if one is given.
    pub fn refuse(&self, file: &NodeFile) -> Result<(), Exit> {
        let flags = self.or(file);
        let given = [
            ("--nodes", flags.nodes.is_some()),
            ("--groups", flags.groups.is_some()),
            ("--on-loss", flags.on_loss.is_some() || file.on_loss.is_some()),
            ("--listen", flags.listen.is_some()),
            ("--etcd-ca", flags.etcd_ca.is_some()),
            ("--etcd-cert", flags.etcd_cert.is_some()),
            ("--etcd-key", flags.etcd_key.is_some()),
            ("--etcd-user", flags.etcd_user.is_some()),
            ("--etcd-password-file", flags.etcd_password_file.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(Exit::Usage(format!(
                "{flag} needs --coordinator etcd://...: with embedded://... the coordinator is told instead"
            ))),
            None => Ok(()),
        }
    }
}

/// Name of a cluster that is given none.
const DEFAULT_NAME: &str = "gestalt";

fn read(path: &Path, flag: &str) -> Result<Vec<u8>, Exit> {
    let bad = |reason: String| Exit::Usage(format!("{flag} {}: {reason}", path.display()));
    let length = fs::metadata(path).map_err(|error| bad(error.to_string()))?.len();
    if length > MAX_FILE_BYTES {
        return Err(bad(format!("{length} bytes are too many")));
    }
    fs::read(path).map_err(|error| bad(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settle(args: &EtcdArgs) -> Result<Coordination, Exit> {
        let endpoints = "etcd://127.0.0.1:1".parse().unwrap();
        args.settle(&NodeFile::default(), endpoints, None, "10.0.0.1:9178".parse().unwrap())
    }

    #[test]
    fn the_coordinator_listens_beside_the_peers_unless_told_otherwise() {
        let Coordination::Elected(elected) = settle(&EtcdArgs::default()).unwrap() else {
            panic!("not elected")
        };
        assert_eq!((elected.listen.to_string().as_str(), elected.name.as_str()), ("10.0.0.1:0", "gestalt"));
        assert!(elected.etcd.tls.is_none() && elected.etcd.login.is_none());
    }

    #[test]
    fn half_a_login_and_missing_files_are_refused_by_name() {
        let error = |args: EtcdArgs| settle(&args).unwrap_err().to_string();
        let path = || Some(PathBuf::from("/nowhere/at.all"));
        assert!(
            error(EtcdArgs { etcd_cert: path(), ..Default::default() })
                .contains("--etcd-key belong together")
        );
        assert!(
            error(EtcdArgs { etcd_user: Some("u".into()), ..Default::default() })
                .contains("--etcd-password-file")
        );
        let missing = error(EtcdArgs { etcd_ca: path(), ..Default::default() });
        assert!(missing.starts_with("--etcd-ca /nowhere/at.all: No such file"), "{missing}");
    }

    #[test]
    fn flags_for_etcd_are_refused_without_it() {
        let args = EtcdArgs { groups: Some(5), ..Default::default() };
        let error = args.refuse(&NodeFile::default()).unwrap_err().to_string();
        assert!(error.starts_with("--groups needs --coordinator etcd://"), "{error}");
        assert!(EtcdArgs::default().refuse(&NodeFile::default()).is_ok());
    }
}
