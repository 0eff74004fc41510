//! The handshake of a link.

use super::{BadBody, Reader, Wire, Writer, wire_choice, wire_enum, wire_struct};
use crate::frame::{LinkHello, LinkMessage, LinkWelcome, Refusal};

wire_choice!(LinkMessage {
    0 => Hello { 0: hello },
    1 => Welcome { 0: welcome },
    2 => Refused { 0: refusal },
});
wire_struct!(LinkHello { cluster, from, to, shard });
wire_struct!(LinkWelcome { from });
wire_enum!(Refusal {
    0 => WrongNode {},
    1 => WrongShard {},
    2 => UnknownNode {},
    3 => StaleIncarnation {},
    4 => Busy {},
});
