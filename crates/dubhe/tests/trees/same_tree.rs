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
    let same = theirs.iter().filter(|(field, value)| ours.get(*field) == Some(value)).count();
    assert!(same > 150, "recording {}: no more than {same} fields are the same", recording.name);
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

/// Whatever happens to a field is noticed, unless it is one that is excused.
#[test]
fn a_field_that_differs_is_found() {
    let recording = recorded::c();
    let theirs = fields(&recording.nodes);
    assert_eq!(differences(&theirs, &theirs), []);
    let mut noticed = 0;
    for (key, value) in &theirs {
        let (mut other, mut less, mut more) = (theirs.clone(), theirs.clone(), theirs.clone());
        other.insert(key.clone(), format!("{value}!"));
        less.remove(key);
        more.insert((key.0.clone(), format!("{}!", key.1)), value.clone());
        for (changed, theirs_has, ours_has) in [(other, true, true), (less, true, false), (more, false, true)]
        {
            let found = differences(&theirs, &changed);
            assert_eq!(found.len(), 1);
            assert_eq!((found[0].theirs.is_some(), found[0].ours.is_some()), (theirs_has, ours_has));
            noticed += unexcused(&recording, &found).len();
        }
    }
    // The types of definitions are a third of all fields.
    assert!(noticed > theirs.len() * 3 / 2, "{noticed} of {}", theirs.len() * 3);
}

fn unexcused<'a>(
    recording: &Recording,
    found: impl IntoIterator<Item = &'a Difference>,
) -> Vec<&'a Difference> {
    let excuses: Vec<_> = EXCUSES.iter().filter(|excuse| excuse.is_for(recording.name)).collect();
    found.into_iter().filter(|one| !excuses.iter().any(|excuse| excuse.covers(one))).collect()
}
