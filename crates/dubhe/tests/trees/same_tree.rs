//! The same services leave the same tree.

use std::time::Duration;

use tokio::time::timeout;

use crate::applications::{Provider, consumer};
use crate::differences::{Difference, differences, fields};
use crate::excuses::EXCUSES;
use crate::recorded::{self, Recording};
use crate::stores::{LONG, Store, on_every_store};

on_every_store! {
    both_models_leave_the_tree_of_dubbo_3_1
    instances_leave_the_tree_of_dubbo_3_1
    instances_with_remote_metadata_leave_the_tree_of_dubbo_3_1
    both_models_leave_the_tree_of_dubbo_3_3
    instances_leave_the_tree_of_dubbo_3_3
    instances_with_remote_metadata_leave_the_tree_of_dubbo_3_3
}

// C103
async fn both_models_leave_the_tree_of_dubbo_3_1(store: &dyn Store) {
    the_tree_is_the_recorded_one(store, &recorded::a()).await;
}

async fn instances_leave_the_tree_of_dubbo_3_1(store: &dyn Store) {
    the_tree_is_the_recorded_one(store, &recorded::b()).await;
}

async fn instances_with_remote_metadata_leave_the_tree_of_dubbo_3_1(store: &dyn Store) {
    the_tree_is_the_recorded_one(store, &recorded::c()).await;
}

async fn both_models_leave_the_tree_of_dubbo_3_3(store: &dyn Store) {
    the_tree_is_the_recorded_one(store, &recorded::d()).await;
}

async fn instances_leave_the_tree_of_dubbo_3_3(store: &dyn Store) {
    the_tree_is_the_recorded_one(store, &recorded::e()).await;
}

async fn instances_with_remote_metadata_leave_the_tree_of_dubbo_3_3(store: &dyn Store) {
    the_tree_is_the_recorded_one(store, &recorded::f()).await;
}

async fn the_tree_is_the_recorded_one(store: &dyn Store, recording: &Recording) {
    let provider = Provider::start(store, recording.mode).await;
    let (consumer, _demo) = consumer(store).await;
    let theirs = fields(&recording.nodes);
    // Mappings and definitions are written in the background. What does not come in time is told below.
    let complete = async {
        loop {
            let found = differences(&theirs, &fields(&store.nodes().await));
            if unexcused(recording, found.iter().filter(|one| one.ours.is_none())).is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let _ = timeout(LONG, complete).await;
    let ours = fields(&store.nodes().await);
    let found = differences(&theirs, &ours);
    let unexcused: Vec<String> = unexcused(recording, &found).iter().map(ToString::to_string).collect();
    assert!(unexcused.is_empty(), "recording {}:\n{}", recording.name, unexcused.join("\n"));
    for excuse in EXCUSES.iter().filter(|excuse| excuse.is_for(recording.name)) {
        assert!(
            found.iter().any(|one| excuse.covers(one)),
            "recording {}: {excuse:?} excuses nothing",
            recording.name
        );
    }
    consumer.shutdown().await;
    provider.application.shutdown().await;
}

fn unexcused<'a>(
    recording: &Recording,
    found: impl IntoIterator<Item = &'a Difference>,
) -> Vec<&'a Difference> {
    let excuses: Vec<_> = EXCUSES.iter().filter(|excuse| excuse.is_for(recording.name)).collect();
    found.into_iter().filter(|one| !excuses.iter().any(|excuse| excuse.covers(one))).collect()
}
