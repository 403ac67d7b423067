use std::time::Duration;

use super::*;
use crate::doubles::Nodes;

const APP: &str = "/services/demo";

fn path(name: &str) -> String {
    format!("{APP}/{name}")
}

/// An instance at `192.0.2.<number>` that was registered at `time`.
fn data(number: u8, time: u64) -> String {
    format!(r#"{{"address":"192.0.2.{number}","port":20880,"registrationTimeUTC":{time}}}"#)
}

fn follow() -> (Arc<Nodes>, Arc<Shared>, watch::Receiver<Observation<Instances>>) {
    let (nodes, shared) = (Arc::new(Nodes::default()), Arc::new(Shared::default()));
    let tree = Arc::clone(&nodes) as Arc<dyn Tree>;
    let followed = shared.follow(&tree, "demo", APP.to_owned());
    (nodes, shared, followed)
}

/// `number:time` of the known instances, after everything has come to rest.
async fn shown(followed: &watch::Receiver<Observation<Instances>>) -> Option<Vec<String>> {
    tokio::time::sleep(Duration::from_millis(1)).await;
    let known = followed.borrow().known.clone()?;
    let describe = |one: &Arc<ServiceInstance>| {
        format!("{}:{}", one.host.rsplit('.').next().unwrap(), one.registered_at)
    };
    Some(known.iter().map(describe).collect())
}

async fn sees(followed: &watch::Receiver<Observation<Instances>>, wanted: &[&str]) {
    assert_eq!(shown(followed).await.unwrap(), wanted);
}

#[tokio::test(start_paused = true)]
async fn the_first_list_is_shown_when_all_of_it_is_read() {
    let (nodes, _shared, followed) = follow();
    nodes.list(APP, &["a", "b"]);
    nodes.write(&path("a"), Some(&data(1, 1)));
    assert_eq!(shown(&followed).await, None);
    nodes.write(&path("b"), Some(&data(2, 1)));
    sees(&followed, &["1:1", "2:1"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_read_holds_up_no_other() {
    let (nodes, _shared, followed) = follow();
    nodes.list(APP, &["a", "b"]);
    nodes.write(&path("a"), Some(&data(1, 1)));
    nodes.data_trouble(&path("b"), Some("denied"));
    sees(&followed, &["1:1"]).await;
    assert_eq!(followed.borrow().trouble.as_deref(), Some("denied"));
    nodes.write(&path("b"), Some(&data(2, 1)));
    nodes.data_trouble(&path("b"), None);
    sees(&followed, &["1:1", "2:1"]).await;
    assert_eq!(followed.borrow().trouble, None);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_replaced_stays_until_the_other_is_read() {
    let (nodes, _shared, followed) = follow();
    nodes.list(APP, &["a"]);
    nodes.write(&path("a"), Some(&data(1, 1)));
    sees(&followed, &["1:1"]).await;
    nodes.list(APP, &["b"]);
    sees(&followed, &["1:1"]).await;
    nodes.write(&path("b"), Some(&data(2, 1)));
    sees(&followed, &["2:1"]).await;
    assert_eq!(nodes.followed(), 1, "the former node is not followed any more");
    nodes.list(APP, &[]);
    sees(&followed, &[]).await;
}

// A Java provider whose session is new deletes its node and makes it again; so does ours.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_made_anew_leaves_no_moment_without_its_instance() {
    let (nodes, _shared, followed) = follow();
    nodes.list(APP, &["a"]);
    nodes.write(&path("a"), Some(&data(1, 1)));
    sees(&followed, &["1:1"]).await;
    nodes.write(&path("a"), None);
    sees(&followed, &["1:1"]).await;
    nodes.write(&path("a"), Some(&data(1, 2)));
    sees(&followed, &["1:2"]).await;
    // Gone for good: the list says it.
    nodes.write(&path("a"), None);
    nodes.list(APP, &[]);
    sees(&followed, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_emptied_or_spoilt_is_no_instance() {
    let (nodes, _shared, followed) = follow();
    nodes.list(APP, &["a", "b"]);
    nodes.write(&path("a"), Some(&data(1, 1)));
    nodes.write(&path("b"), Some(&data(2, 1)));
    sees(&followed, &["1:1", "2:1"]).await;
    nodes.write(&path("a"), Some(""));
    sees(&followed, &["2:1"]).await;
    nodes.write(&path("b"), Some("{"));
    sees(&followed, &[]).await;
    nodes.write(&path("b"), Some(&data(2, 2)));
    sees(&followed, &["2:2"]).await;
}

#[tokio::test(start_paused = true)]
async fn trouble_with_the_list_takes_nothing_away() {
    let (nodes, _shared, followed) = follow();
    nodes.list(APP, &["a"]);
    nodes.write(&path("a"), Some(&data(1, 1)));
    sees(&followed, &["1:1"]).await;
    nodes.list_trouble(APP, Some("lost"));
    nodes.write(&path("a"), None);
    sees(&followed, &["1:1"]).await;
    assert_eq!(followed.borrow().trouble.as_deref(), Some("lost"));
}

#[tokio::test(start_paused = true)]
async fn a_change_during_the_last_one_is_not_missed() {
    let (nodes, shared, followed) = follow();
    let names: Vec<String> = (0..100).map(|number| format!("n{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for round in 1..20 {
        let some = &names[..names.len() - round];
        nodes.list(APP, some);
        for name in some {
            nodes.write(&path(name), Some(&data(1, round as u64)));
            if name.ends_with('7') {
                tokio::task::yield_now().await;
            }
        }
    }
    let last = shown(&followed).await.unwrap();
    assert_eq!(last.len(), names.len() - 19);
    assert!(last.iter().all(|one| one == "1:19"), "{last:?}");
    assert_eq!((nodes.followed(), shared.len()), (names.len() - 19, 1));
    drop(followed);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!((nodes.followed(), shared.len()), (0, 0));
}
