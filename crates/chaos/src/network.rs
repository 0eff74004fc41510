//! The network of a cluster: a namespace for each process, and who has which address.

use std::net::Ipv4Addr;

use processes::namespaces::{Namespace, join};

/// Port on which nodes listen for each other.
pub const PEER_PORT: u16 = 9178;
/// Port on which the coordinator listens for nodes.
pub const COORDINATOR_PORT: u16 = 9179;
/// Port on which etcd listens for nodes.
pub const ETCD_PORT: u16 = 2379;

/// Where the clients and the harness are.
pub const HUB: Ipv4Addr = Ipv4Addr::new(10, 77, 255, 254);
/// Where the coordinator is, or the first member of etcd.
pub const COORDINATOR: Ipv4Addr = Ipv4Addr::new(10, 77, 2, 1);

/// Where member `member` of etcd is.
pub fn coordinator_address(member: u16) -> Ipv4Addr {
    address(2, member)
}

/// Where node `node` is.
pub fn node_address(node: u16) -> Ipv4Addr {
    address(0, node)
}

/// The address of the proxy that stands for node `node` while its links are bad: what is cut off from the node is cut off
/// from its proxy.
pub fn proxy_address(node: u16) -> Ipv4Addr {
    address(1, node)
}

fn address(net: u8, node: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, net, u8::try_from(node + 1).expect("fewer than 250 nodes"))
}

/// The namespaces of a cluster, and the one in the middle to which they are joined.
pub struct Network {
    /// The harness, the clients and the proxies.
    pub hub: Namespace,
    /// The coordinator, or the members of etcd.
    pub coordinators: Vec<Namespace>,
    /// The nodes.
    pub nodes: Vec<Namespace>,
}

impl Network {
    /// Builds it for so many nodes, and so many processes that coordinate or are members of etcd.
    ///
    /// # Errors
    /// What the system says.
    pub fn build(nodes: u16, coordinators: u16) -> Result<Self, String> {
        let hub = Namespace::start("hub")?;
        hub.ip(&format!("link add br0 type bridge\naddr add {HUB}/16 dev br0\nlink set br0 up\n"))?;
        let coordinator =
            |id| join(&hub, &format!("coordinator {id}"), &format!("c{id}"), coordinator_address(id));
        let coordinators = (0..coordinators).map(coordinator).collect::<Result<_, _>>()?;
        let node = |id| {
            // Proxies run in the hub, so their addresses are there.
            hub.ip(&format!("addr add {}/16 dev br0\n", proxy_address(id)))?;
            join(&hub, &format!("node {id}"), &format!("n{id}"), node_address(id))
        };
        let nodes = (0..nodes).map(node).collect::<Result<_, _>>()?;
        Ok(Self { hub, coordinators, nodes })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use processes::namespaces::{Rule, unavailable};

    use super::*;

    const PORT: u16 = 4000;

    /// Whether a connection from one namespace to a port in another can be opened.
    fn connects(from: &Namespace, to: Ipv4Addr) -> bool {
        let limit = Duration::from_millis(300);
        from.run(move || TcpStream::connect_timeout(&(to, PORT).into(), limit).is_ok())
    }

    #[test]
    fn rules_cut_and_redirect_and_leave_the_rest_alone() {
        if let Some(why) = unavailable() {
            println!("skipped: {why}");
            return;
        }
        let network = Network::build(3, 1).unwrap();
        let [zero, one, two] = &network.nodes[..] else { panic!("three nodes") };
        let listen = |at: &Namespace| at.run(|| TcpListener::bind(("0.0.0.0", PORT)).unwrap());
        let listener = listen(one);
        let (there, elsewhere) = (node_address(1), node_address(2));
        for from in [zero, two, &network.hub] {
            // The kernel takes a moment to bring a new link up.
            assert!((0..20).any(|_| connects(from, there)), "{} does not reach node 1", from.name());
        }

        one.apply(&[Rule::DropFrom(vec![node_address(0)])]).unwrap();
        assert!(!connects(zero, there) && connects(two, there) && connects(&network.hub, there));

        one.apply(&[Rule::DropTo(vec![node_address(2)])]).unwrap();
        assert!(connects(zero, there) && !connects(two, there));

        one.apply(&[]).unwrap();
        assert!(!connects(zero, elsewhere), "nobody listens there");
        zero.apply(&[Rule::Redirect { from: (elsewhere, PORT), to: (there, PORT) }]).unwrap();
        assert!(connects(zero, elsewhere) && connects(two, there));

        zero.apply(&[]).unwrap();
        assert!(one.apply(&[Rule::LoseFrom(Vec::new(), 1)]).is_err(), "nft says what it does not like");
        drop(listener);
    }
}
