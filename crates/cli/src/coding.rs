//! Who computes the codes of a node's long values, as `--coding-place` says.

use std::sync::Arc;

use ::codec::{Accelerator, Coder};
use codec_cuda::CardAccelerator;

use crate::settings::CodingPlace;

/// The coder of this place. Where there is no card, or none that can be used, it is the processor, and the log says why.
pub fn coder(place: CodingPlace) -> Coder {
    let card = match place {
        CodingPlace::Processor => return Coder::default(),
        CodingPlace::Auto => CardAccelerator::new(0),
        CodingPlace::Card => CardAccelerator::always(0),
    };
    match card {
        Ok(card) => {
            tracing::info!(card = card.name(), place = place.name(), "codes of long values: on a card");
            Coder::with(Arc::new(card))
        }
        Err(error) => {
            tracing::warn!(%error, "codes of long values: on the processor, since there is no card");
            Coder::default()
        }
    }
}
