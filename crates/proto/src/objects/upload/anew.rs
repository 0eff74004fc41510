//! An upload that outlives its owner: a new term of it knows of no open id, so all begins anew under another one, and what is where it has
//! to be already is put again without its bytes (docs/objects.md, "Writing").

use types::op::{Begin, Condition, ObjectOp, Store};
use types::{GroupView, ObjectId, Time};

use super::stripe::{DoneStripe, StripeUpload};
use super::{Step, Upload, UploadId, Uploads};
use crate::Rules;
use crate::objects::names::OwnerRequest;

/// Stripes that are put under another name at once.
const RENAMED_AT_ONCE: usize = 16;

/// Stripes of an upload that are where they have to be.
#[derive(Default)]
pub(super) struct Done {
    /// Under the name that the object has now.
    named: Vec<DoneStripe>,
    /// Under earlier ones.
    to_rename: Vec<DoneStripe>,
    /// The last one of these.
    outlived: Option<ObjectId>,
}

impl Done {
    /// One more.
    pub(super) fn add(&mut self, stripe: DoneStripe) {
        self.named.push(stripe);
    }

    /// Whether nothing has still to be put under the name that the object has now.
    pub(super) fn is_named(&self) -> bool {
        self.to_rename.is_empty()
    }

    /// Whether an id is no newer than one that is over: its owner is the same, which has closed that one and may have had its chunks freed.
    pub(super) fn is_stale(&self, id: ObjectId) -> bool {
        self.outlived.is_some_and(|old| id.term <= old.term)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        (self.named.len() + self.to_rename.len()) * size_of::<DoneStripe>()
    }
}

impl Uploads {
    /// Those of which the owner is another one by `view`.
    pub(super) fn outlived_by(&self, view: &GroupView) -> Vec<UploadId> {
        let is_outlived = |id: ObjectId| {
            let role = view.data_role(id.owner.role).filter(|role| role.primary.is_some());
            id.owner.group == view.group && role.is_some_and(|role| role.term > id.term)
        };
        // What comes of a commit that is under way its answer says.
        let are_meant = |one: &Upload| !one.committing && !one.gone && one.id.is_some_and(is_outlived);
        self.all.iter().filter(|(_, one)| are_meant(one)).map(|(id, _)| *id).collect()
    }

    /// The owner knows nothing of the id, or will not: another one is asked for.
    pub(super) fn begin_anew(&mut self, upload: UploadId) -> Step {
        let request = self.all.get_mut(&upload).and_then(|one| one.begin_anew(upload));
        self.renamed += u64::from(request.is_some());
        self.recount(upload);
        Step { ended: None, request }
    }
}

impl Upload {
    /// The request for an id.
    pub(super) fn ask_for_id(&self, upload: UploadId) -> OwnerRequest {
        let Store { mode, compare, invalidate, .. } = self.store;
        let (condition, conversions) = (Condition { mode, compare, invalidate }, self.conversions);
        let mut begin = self.request(upload, ObjectOp::Begin(Begin { condition, conversions }));
        begin.request = begin.request.once(self.once);
        begin
    }

    fn begin_anew(&mut self, upload: UploadId) -> Option<OwnerRequest> {
        let id = self.id.take()?;
        tracing::info!(object = %id, "its owner is another one: begins anew");
        if let Some(once) = &mut self.once {
            once.again |= self.committing;
        }
        (self.committing, self.renew) = (false, Time::NEVER);
        self.done.outlived = Some(id);
        self.done.to_rename.append(&mut self.done.named);
        for mut stripe in std::mem::take(&mut self.stripes) {
            match stripe.old() {
                Some(old) => self.done.to_rename.push(stripe.into_done(old)),
                None => {
                    stripe.begin_anew();
                    self.stripes.push_back(stripe);
                }
            }
        }
        Some(self.ask_for_id(upload))
    }

    /// Some more of what is done under another name is put under this one.
    pub(super) fn begin_renaming(&mut self, rules: Rules) {
        if !rules.objects().stripes_are_renamed() {
            self.done.to_rename.clear();
        }
        let under_way = self.stripes.iter().filter(|stripe| stripe.old().is_some()).count();
        for _ in under_way..RENAMED_AT_ONCE {
            let Some(done) = self.done.to_rename.pop() else { return };
            if let Some(stripe) = self.geometry.stripe(done.index) {
                // Before those whose bytes come, of which the newest is the last one.
                self.stripes.push_front(StripeUpload::renamed(stripe, done));
            }
        }
    }
}
