//! Descriptors as bytes: the values of the items of objects (docs/format.md, "Descriptor").

use bytes::Bytes;
use types::Descriptor;

pub use crate::codec::BadBody;

/// The bytes of `descriptor`.
#[must_use]
pub fn descriptor_bytes(descriptor: &Descriptor) -> Vec<u8> {
    crate::codec::descriptor_bytes(descriptor)
}

/// The descriptor that `bytes` are.
///
/// # Errors
/// They are none.
pub fn descriptor_of(bytes: Bytes) -> Result<Descriptor, BadBody> {
    crate::codec::descriptor_of(bytes)
}
