//! Pools and namespaces that operators make, change and remove.

use cluster::{PlanNode, place_pool};
use types::{AdminAnswer, AdminError, AdminReply, Catalog, CatalogChange, GroupView, Name, PoolId, Profile};

use super::admission;
use super::state::ClusterState;

/// Does what `change` says, or says why not; nothing has changed then.
pub(super) fn change(state: &mut ClusterState, change: &CatalogChange) -> AdminReply {
    let mut catalog = state.map().ok_or(AdminError::NotFormed)?.catalog.clone();
    match change {
        CatalogChange::CreatePool { name, profile, groups } => {
            let views = make_pool(state, &mut catalog, name, *profile, *groups)?;
            tracing::info!(%name, %profile, groups = views.len(), "pool created");
            state.add_pool(catalog, views);
        }
        CatalogChange::RemovePool { name } => {
            let pool = catalog.remove_pool(name)?;
            tracing::warn!(%name, id = %pool.id, "pool removed");
            state.change_catalog(catalog);
        }
        CatalogChange::CreateNamespace { name, pool, policy } => {
            let id = catalog.create_namespace(name.clone(), pool, *policy)?;
            tracing::info!(%name, %id, %pool, "namespace created");
            state.change_catalog(catalog);
        }
        CatalogChange::SetPolicy { name, change } => {
            catalog.set_policy(name, *change)?;
            tracing::info!(%name, ?change, "policy changed");
            state.change_catalog(catalog);
        }
        CatalogChange::RemoveNamespace { name } => {
            let id = catalog.remove_namespace(name)?;
            tracing::warn!(%name, %id, "namespace removed");
            if !state.rules().numbers_are_new() {
                catalog.next_namespace = id;
            }
            state.change_catalog(catalog);
        }
        CatalogChange::ConvertNamespace { name, to } => {
            catalog.convert(name, to)?;
            tracing::info!(%name, %to, "namespace moves to another pool");
            state.change_catalog(catalog);
        }
        CatalogChange::PauseConversion { name, paused } => {
            catalog.pause_conversion(name, *paused)?;
            tracing::info!(%name, paused, "conversion");
            state.change_catalog(catalog);
        }
    }
    state.map().map(|map| AdminAnswer::Catalog(map.catalog.clone())).ok_or(AdminError::NotFormed)
}

/// A further pool in `catalog`; the views of its groups, on the nodes that are here and stay.
fn make_pool(
    state: &ClusterState,
    catalog: &mut Catalog,
    name: &Name,
    profile: Profile,
    groups: Option<u32>,
) -> Result<Vec<GroupView>, AdminError> {
    let mut nodes = state.plan_nodes();
    nodes.retain(|node: &PlanNode| node.can_host && !node.draining);
    let groups = groups.unwrap_or_else(|| cluster::groups_for(profile, nodes.len(), state.config().shards));
    let bad = |reason: String| AdminError::BadCatalog { reason };
    let id: PoolId = catalog.create_pool(name.clone(), profile, groups)?;
    let workers = nodes.len() * usize::from(state.config().shards);
    admission::check_groups(catalog, workers).map_err(bad)?;
    let pool = catalog.pool(id).ok_or(AdminError::NotFormed)?;
    place_pool(pool, &nodes).map_err(|error| bad(error.to_string()))
}
