//! What [`Tree`] promises.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dubhe_core::observation::Observation;
use dubhe_core::tree::{Children, NodeData, NodeKind, SessionState, Tree, TreeError};
use tokio::sync::watch;
use tokio::time::timeout;

use super::{PATIENCE, TreeFixture};

/// One test per promise of [`Tree`], for the fixture that the expression makes.
#[macro_export]
macro_rules! tree_suite {
    ($fixture:expr) => {
        $crate::tree_suite! { @each $fixture;
            ensure_makes_the_node_and_its_missing_parents
            an_ephemeral_node_goes_with_its_session_and_its_parents_stay
            a_persistent_node_survives_its_session
            ensure_is_undone_by_as_many_withdrawals
            a_repeated_ensure_replaces_the_data_on_the_same_node
            withdrawing_what_was_never_ensured_does_nothing
            an_ephemeral_node_of_another_session_is_replaced_by_our_own
            a_withdrawal_spares_what_another_session_has_taken_over
            an_ephemeral_node_of_our_live_session_is_left_alone
            parents_that_an_operator_deleted_are_made_again
            settled_refuses_an_invalid_path
            settled_ends_when_its_time_is_over
            an_intent_declared_during_an_outage_is_carried_out_after_it
            a_withdrawal_during_an_outage_is_carried_out_after_it
            a_withdrawn_intent_is_not_brought_back_by_a_new_session
            data_replaced_during_an_outage_is_there_after_it
            ephemeral_nodes_are_made_again_in_a_new_session
            children_are_seen_now_and_from_now_on
            children_are_sorted
            children_of_a_missing_node_are_none_until_it_is_made
            children_with_create_make_the_node
            a_node_that_is_deleted_and_made_again_is_followed
            data_is_seen_now_and_from_now_on
            the_last_of_many_changes_is_seen
            observations_are_ordered_by_their_stamp
            a_lost_connection_is_trouble_and_never_an_empty_list
            a_watch_sees_what_changed_during_an_outage
            watches_survive_a_new_session
            a_path_can_be_watched_again_after_the_last_receiver_is_dropped
            two_receivers_of_one_path_see_the_same
            what_is_missing_is_listed_and_read_as_none
            create_makes_a_node_once
            set_compares_the_version
            delete_tells_whether_there_was_something
            delete_spares_a_node_with_children
            reads_end_with_an_error_during_an_outage
            the_session_counts_its_epochs
            close_deletes_own_ephemeral_nodes_and_ends_everything
        }
    };
    (@each $fixture:expr; $($name:ident)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                let fixture = $fixture;
                $crate::suites::tree::$name(&fixture).await;
            }
        )*
    };
}

const DATA: Bytes = Bytes::from_static(b"192.0.2.1");
/// For what must fail by running out of time.
const SHORT: Duration = Duration::from_millis(300);

#[allow(missing_docs, reason = "the names are the sentences")]
mod promises {
    use super::*;

    pub async fn ensure_makes_the_node_and_its_missing_parents(fixture: &dyn TreeFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        let path = format!("{}/a/b/c%2Fd", fixture.root());
        ours.ensure(&path, DATA, NodeKind::Ephemeral);
        ours.settled(&path, PATIENCE).await.unwrap();
        assert_eq!(other.read(&path).await.unwrap().unwrap().bytes, DATA);
        assert_eq!(names(&other, &format!("{}/a/b", fixture.root())).await, ["c%2Fd"]);
    }

    pub async fn an_ephemeral_node_goes_with_its_session_and_its_parents_stay(fixture: &dyn TreeFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        let path = format!("{}/a/b", fixture.root());
        ensured(&ours, &path, NodeKind::Ephemeral).await;
        ours.close().await;
        assert_eq!(other.read(&path).await, Ok(None));
        assert!(names(&other, &format!("{}/a", fixture.root())).await.is_empty());
    }

    pub async fn a_persistent_node_survives_its_session(fixture: &dyn TreeFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        let path = format!("{}/a", fixture.root());
        ensured(&ours, &path, NodeKind::Persistent).await;
        ours.close().await;
        assert_eq!(other.read(&path).await.unwrap().unwrap().bytes, DATA);
    }

    pub async fn ensure_is_undone_by_as_many_withdrawals(fixture: &dyn TreeFixture) {
        let (ours, _f) = fixture.open().await;
        let path = format!("{}/a", fixture.root());
        ours.ensure(&path, DATA, NodeKind::Ephemeral);
        ensured(&ours, &path, NodeKind::Ephemeral).await;
        ours.withdraw(&path);
        ours.settled(&path, PATIENCE).await.unwrap();
        assert!(ours.read(&path).await.unwrap().is_some());
        withdrawn(&ours, &path).await;
        assert_eq!(ours.read(&path).await, Ok(None));
    }

    pub async fn a_repeated_ensure_replaces_the_data_on_the_same_node(fixture: &dyn TreeFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        let path = format!("{}/a", fixture.root());
        ensured(&ours, &path, NodeKind::Ephemeral).await;
        ours.ensure(&path, Bytes::from_static(b"new"), NodeKind::Ephemeral);
        ours.settled(&path, PATIENCE).await.unwrap();
        // A node that was made anew would start at version 0.
        let node = other.read(&path).await.unwrap().unwrap();
        assert_eq!(node, NodeData { bytes: Bytes::from_static(b"new"), version: 1 });
    }

    pub async fn withdrawing_what_was_never_ensured_does_nothing(fixture: &dyn TreeFixture) {
        let (ours, _f) = fixture.open().await;
        let path = format!("{}/a", fixture.root());
        ours.create(&path, DATA).await.unwrap();
        ours.withdraw(&path);
        ours.settled(&format!("{path}/none"), PATIENCE).await.unwrap();
        assert!(ours.read(&path).await.unwrap().is_some());
    }

    // C01
    pub async fn an_ephemeral_node_of_another_session_is_replaced_by_our_own(fixture: &dyn TreeFixture) {
        let ((former, _f), (ours, _g), (other, _h)) =
            (fixture.open().await, fixture.open().await, fixture.open().await);
        let path = format!("{}/a", fixture.root());
        ensured(&former, &path, NodeKind::Ephemeral).await;
        ensured(&ours, &path, NodeKind::Ephemeral).await;
        former.close().await;
        assert!(other.read(&path).await.unwrap().is_some(), "the node went with the former session");
        ours.close().await;
        assert_eq!(other.read(&path).await, Ok(None));
    }

    pub async fn a_withdrawal_spares_what_another_session_has_taken_over(fixture: &dyn TreeFixture) {
        let ((former, _f), (ours, _g)) = (fixture.open().await, fixture.open().await);
        let path = format!("{}/a", fixture.root());
        ensured(&former, &path, NodeKind::Ephemeral).await;
        ensured(&ours, &path, NodeKind::Ephemeral).await;
        former.withdraw(&path);
        let _ = within(former.settled(&path, SHORT)).await;
        assert!(ours.read(&path).await.unwrap().is_some());
    }

    pub async fn parents_that_an_operator_deleted_are_made_again(fixture: &dyn TreeFixture) {
        let ((ours, _f), (operator, _g)) = (fixture.open().await, fixture.open().await);
        let path = format!("{}/p/q/a", fixture.root());
        ensured(&ours, &path, NodeKind::Ephemeral).await;
        withdrawn(&ours, &path).await;
        for parent in ["p/q", "p"] {
            assert_eq!(operator.delete(&format!("{}/{parent}", fixture.root())).await, Ok(true));
        }
        ensured(&ours, &path, NodeKind::Ephemeral).await;
        assert!(operator.read(&path).await.unwrap().is_some());
    }

    // C24
    pub async fn an_ephemeral_node_of_our_live_session_is_left_alone(fixture: &dyn TreeFixture) {
        let ((ours, faults), (other, _g)) = (fixture.open().await, fixture.open().await);
        let path = format!("{}/a", fixture.root());
        ensured(&ours, &path, NodeKind::Ephemeral).await;
        assert_eq!(other.set(&path, Bytes::from_static(b"touched"), None).await, Ok(true));
        faults.cut().await;
        not_connected(&ours).await;
        faults.restore().await;
        connected(&ours).await;
        ours.ensure(&path, DATA, NodeKind::Ephemeral);
        ours.settled(&path, PATIENCE).await.unwrap();
        // A node that was made anew would start at version 0.
        assert!(other.read(&path).await.unwrap().unwrap().version > 0);
    }

    pub async fn settled_refuses_an_invalid_path(fixture: &dyn TreeFixture) {
        let (ours, _f) = fixture.open().await;
        for path in ["relative", "/a//b", "/a/", "/a/../b", "/nul\0"] {
            ours.ensure(path, DATA, NodeKind::Ephemeral);
            let refused = within(ours.settled(path, PATIENCE)).await;
            assert!(matches!(refused, Err(TreeError::Invalid(_))), "{path}: {refused:?}");
            ours.withdraw(path);
        }
    }

    pub async fn settled_ends_when_its_time_is_over(fixture: &dyn TreeFixture) {
        let (ours, faults) = fixture.open().await;
        connected(&ours).await;
        faults.cut().await;
        not_connected(&ours).await;
        let path = format!("{}/a", fixture.root());
        ours.ensure(&path, DATA, NodeKind::Ephemeral);
        let refused = within(ours.settled(&path, SHORT)).await;
        assert!(matches!(refused, Err(TreeError::Unreachable { .. })), "{refused:?}");
        faults.restore().await;
    }

    pub async fn an_intent_declared_during_an_outage_is_carried_out_after_it(fixture: &dyn TreeFixture) {
        let ((ours, faults), (other, _g)) = (fixture.open().await, fixture.open().await);
        connected(&ours).await;
        faults.cut().await;
        not_connected(&ours).await;
        let path = format!("{}/a", fixture.root());
        ours.ensure(&path, DATA, NodeKind::Ephemeral);
        faults.restore().await;
        ours.settled(&path, PATIENCE).await.unwrap();
        assert!(other.read(&path).await.unwrap().is_some());
    }

    // C25
    pub async fn a_withdrawal_during_an_outage_is_carried_out_after_it(fixture: &dyn TreeFixture) {
        let ((ours, faults), (other, _g)) = (fixture.open().await, fixture.open().await);
        let path = format!("{}/a", fixture.root());
        ensured(&ours, &path, NodeKind::Persistent).await;
        faults.cut().await;
        not_connected(&ours).await;
        ours.withdraw(&path);
        assert!(other.read(&path).await.unwrap().is_some());
        faults.restore().await;
        ours.settled(&path, PATIENCE).await.unwrap();
        assert_eq!(other.read(&path).await, Ok(None));
    }

    // C25
    pub async fn a_withdrawn_intent_is_not_brought_back_by_a_new_session(fixture: &dyn TreeFixture) {
        let ((ours, faults), (other, _g)) = (fixture.open().await, fixture.open().await);
        let (kept, gone) = (format!("{}/kept", fixture.root()), format!("{}/gone", fixture.root()));
        ensured(&ours, &kept, NodeKind::Ephemeral).await;
        ensured(&ours, &gone, NodeKind::Ephemeral).await;
        withdrawn(&ours, &gone).await;
        next_epoch(&ours, faults.expire()).await;
        ours.settled(&kept, PATIENCE).await.unwrap();
        assert_eq!(names(&other, &fixture.root()).await, ["kept"]);
    }

    // C25
    pub async fn data_replaced_during_an_outage_is_there_after_it(fixture: &dyn TreeFixture) {
        let ((ours, faults), (other, _g)) = (fixture.open().await, fixture.open().await);
        let path = format!("{}/a", fixture.root());
        ensured(&ours, &path, NodeKind::Ephemeral).await;
        faults.cut().await;
        not_connected(&ours).await;
        ours.ensure(&path, Bytes::from_static(b"latest"), NodeKind::Ephemeral);
        faults.restore().await;
        ours.settled(&path, PATIENCE).await.unwrap();
        assert_eq!(other.read(&path).await.unwrap().unwrap().bytes, "latest");
        next_epoch(&ours, faults.expire()).await;
        ours.settled(&path, PATIENCE).await.unwrap();
        assert_eq!(other.read(&path).await.unwrap().unwrap().bytes, "latest");
    }

    // C02
    pub async fn ephemeral_nodes_are_made_again_in_a_new_session(fixture: &dyn TreeFixture) {
        let ((ours, faults), (other, _g)) = (fixture.open().await, fixture.open().await);
        let paths = ["a", "b", "c"].map(|name| format!("{}/{name}", fixture.root()));
        for path in &paths {
            ensured(&ours, path, NodeKind::Ephemeral).await;
        }
        next_epoch(&ours, faults.expire()).await;
        for path in &paths {
            ours.settled(path, PATIENCE).await.unwrap();
        }
        assert_eq!(names(&other, &fixture.root()).await, ["a", "b", "c"]);
        ours.close().await;
        assert!(names(&other, &fixture.root()).await.is_empty(), "they belong to the new session");
    }

    pub async fn children_are_seen_now_and_from_now_on(fixture: &dyn TreeFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        let path = |name: &str| format!("{}/{name}", fixture.root());
        ensured(&other, &path("a"), NodeKind::Ephemeral).await;
        let mut children = ours.children(&fixture.root(), false);
        known(&mut children, |children| list(children) == ["a"]).await;
        ensured(&other, &path("b"), NodeKind::Ephemeral).await;
        known(&mut children, |children| list(children) == ["a", "b"]).await;
        withdrawn(&other, &path("a")).await;
        known(&mut children, |children| list(children) == ["b"]).await;
        withdrawn(&other, &path("b")).await;
        known(&mut children, |children| children.is_some() && len(children) == 0).await;
    }

    pub async fn children_are_sorted(fixture: &dyn TreeFixture) {
        let (ours, _f) = fixture.open().await;
        for name in ["b", "a%2F", "c", "a", "B"] {
            ours.create(&format!("{}/{name}", fixture.root()), Bytes::new()).await.unwrap();
        }
        let sorted = ["B", "a", "a%2F", "b", "c"];
        assert_eq!(names(&ours, &fixture.root()).await, sorted);
        known(&mut ours.children(&fixture.root(), false), |children| list(children) == sorted).await;
    }

    pub async fn children_of_a_missing_node_are_none_until_it_is_made(fixture: &dyn TreeFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        let path = format!("{}/late", fixture.root());
        let mut children = ours.children(&path, false);
        known(&mut children, Option::is_none).await;
        other.create(&path, Bytes::new()).await.unwrap();
        known(&mut children, |children| children.is_some() && len(children) == 0).await;
        other.create(&format!("{path}/a"), Bytes::new()).await.unwrap();
        known(&mut children, |children| list(children) == ["a"]).await;
    }

    pub async fn children_with_create_make_the_node(fixture: &dyn TreeFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        let path = format!("{}/x/y", fixture.root());
        let mut children = ours.children(&path, true);
        known(&mut children, |children| children.is_some() && len(children) == 0).await;
        ours.close().await;
        assert!(other.list(&path).await.unwrap().is_some(), "it is persistent");
    }

    pub async fn a_node_that_is_deleted_and_made_again_is_followed(fixture: &dyn TreeFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        let path = format!("{}/x", fixture.root());
        let mut children = ours.children(&path, true);
        known(&mut children, Option::is_some).await;
        for _ in 0..3 {
            assert_eq!(other.delete(&path).await, Ok(true));
            known(&mut children, Option::is_none).await;
            other.create(&format!("{path}/a"), Bytes::new()).await.unwrap();
            known(&mut children, |children| list(children) == ["a"]).await;
            assert_eq!(other.delete(&format!("{path}/a")).await, Ok(true));
            known(&mut children, |children| children.is_some() && len(children) == 0).await;
        }
    }

    pub async fn data_is_seen_now_and_from_now_on(fixture: &dyn TreeFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        let path = format!("{}/a", fixture.root());
        let mut data = ours.data(&path);
        known(&mut data, Option::is_none).await;
        other.create(&path, DATA).await.unwrap();
        known(&mut data, |node| *node == Some(NodeData { bytes: DATA, version: 0 })).await;
        assert!(other.set(&path, Bytes::new(), None).await.unwrap());
        known(&mut data, |node| *node == Some(NodeData { bytes: Bytes::new(), version: 1 })).await;
        assert!(other.delete(&path).await.unwrap());
        known(&mut data, Option::is_none).await;
        other.create(&path, DATA).await.unwrap();
        known(&mut data, Option::is_some).await;
    }

    // C97
    pub async fn the_last_of_many_changes_is_seen(fixture: &dyn TreeFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        let mut children = ours.children(&fixture.root(), true);
        let paths: Vec<String> = (0..200).map(|at| format!("{}/n{at:03}", fixture.root())).collect();
        for path in &paths {
            other.ensure(path, DATA, NodeKind::Ephemeral);
        }
        known(&mut children, |children| len(children) == 200).await;
        for path in &paths[1..] {
            other.withdraw(path);
        }
        known(&mut children, |children| list(children) == ["n000"]).await;
    }

    // C05, C06
    pub async fn observations_are_ordered_by_their_stamp(fixture: &dyn TreeFixture) {
        let ((ours, faults), (other, _g)) = (fixture.open().await, fixture.open().await);
        let mut children = ours.children(&fixture.root(), true);
        let writer = {
            let (other, root) = (Arc::clone(&other), fixture.root());
            tokio::spawn(async move {
                for at in 0..50 {
                    other.create(&format!("{root}/n{at:02}"), Bytes::new()).await.unwrap();
                    tokio::task::yield_now().await;
                }
            })
        };
        let (mut last, mut most) = (children.borrow().stamp, 0);
        while most < 50 {
            within(children.changed()).await.unwrap();
            let seen = children.borrow_and_update().clone();
            assert!(seen.stamp >= last, "{:?} after {last:?}", seen.stamp);
            if let Some(known) = &seen.known {
                assert!(len(known) >= most, "an older list came after a newer one");
                most = len(known);
            }
            last = seen.stamp;
        }
        writer.await.unwrap();
        next_epoch(&ours, faults.expire()).await;
        let seen = known(&mut children, |children| len(children) == 50).await;
        assert!(seen.stamp >= last);
    }

    // C20
    pub async fn a_lost_connection_is_trouble_and_never_an_empty_list(fixture: &dyn TreeFixture) {
        let ((ours, faults), (other, _g)) = (fixture.open().await, fixture.open().await);
        let path = format!("{}/a", fixture.root());
        other.create(&path, DATA).await.unwrap();
        let (mut children, mut data) = (ours.children(&fixture.root(), false), ours.data(&path));
        known(&mut children, |children| len(children) == 1).await;
        known(&mut data, Option::is_some).await;
        faults.cut().await;
        let seen = observed(&mut children, |seen| seen.trouble.is_some()).await;
        assert_eq!(list(&seen.known.unwrap()), ["a"]);
        let seen = observed(&mut data, |seen| seen.trouble.is_some()).await;
        assert_eq!(seen.known.unwrap().unwrap().bytes, DATA);
        faults.restore().await;
        observed(&mut children, |seen| seen.trouble.is_none()).await;
        observed(&mut data, |seen| seen.trouble.is_none()).await;
    }

    // C20, C22
    pub async fn a_watch_sees_what_changed_during_an_outage(fixture: &dyn TreeFixture) {
        let ((ours, faults), (other, _g)) = (fixture.open().await, fixture.open().await);
        let path = |name: &str| format!("{}/{name}", fixture.root());
        ensured(&other, &path("a"), NodeKind::Ephemeral).await;
        ensured(&other, &path("b"), NodeKind::Ephemeral).await;
        let mut children = ours.children(&fixture.root(), false);
        let mut data = ours.data(&path("a"));
        known(&mut children, |children| len(children) == 2).await;
        known(&mut data, Option::is_some).await;
        faults.cut().await;
        not_connected(&ours).await;
        withdrawn(&other, &path("b")).await;
        ensured(&other, &path("c"), NodeKind::Ephemeral).await;
        assert!(other.set(&path("a"), Bytes::from_static(b"new"), None).await.unwrap());
        faults.restore().await;
        let seen = known(&mut children, |children| list(children) == ["a", "c"]).await;
        assert_eq!(seen.trouble, None);
        known(&mut data, |node| node.as_ref().is_some_and(|node| node.bytes == "new")).await;
    }

    // C02
    pub async fn watches_survive_a_new_session(fixture: &dyn TreeFixture) {
        let ((ours, faults), (other, _g)) = (fixture.open().await, fixture.open().await);
        let path = |name: &str| format!("{}/{name}", fixture.root());
        other.create(&path("a"), DATA).await.unwrap();
        let (mut children, mut data) = (ours.children(&fixture.root(), false), ours.data(&path("b")));
        known(&mut children, |children| len(children) == 1).await;
        next_epoch(&ours, faults.expire()).await;
        other.create(&path("b"), DATA).await.unwrap();
        known(&mut children, |children| list(children) == ["a", "b"]).await;
        known(&mut data, Option::is_some).await;
        assert!(other.delete(&path("a")).await.unwrap());
        known(&mut children, |children| list(children) == ["b"]).await;
    }

    pub async fn a_path_can_be_watched_again_after_the_last_receiver_is_dropped(fixture: &dyn TreeFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        for round in 1..=5 {
            let mut children = ours.children(&fixture.root(), true);
            other.create(&format!("{}/n{round}", fixture.root()), Bytes::new()).await.unwrap();
            known(&mut children, |children| len(children) == round).await;
            drop(children);
        }
    }

    pub async fn two_receivers_of_one_path_see_the_same(fixture: &dyn TreeFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        let mut one = ours.children(&fixture.root(), true);
        known(&mut one, Option::is_some).await;
        let mut two = ours.children(&fixture.root(), true);
        other.create(&format!("{}/a", fixture.root()), Bytes::new()).await.unwrap();
        known(&mut one, |children| len(children) == 1).await;
        known(&mut two, |children| len(children) == 1).await;
        drop(one);
        other.create(&format!("{}/b", fixture.root()), Bytes::new()).await.unwrap();
        known(&mut two, |children| len(children) == 2).await;
    }

    pub async fn what_is_missing_is_listed_and_read_as_none(fixture: &dyn TreeFixture) {
        let (ours, _f) = fixture.open().await;
        let path = format!("{}/none/at/all", fixture.root());
        assert_eq!(ours.list(&path).await, Ok(None));
        assert_eq!(ours.read(&path).await, Ok(None));
    }

    pub async fn create_makes_a_node_once(fixture: &dyn TreeFixture) {
        let (ours, _f) = fixture.open().await;
        let path = format!("{}/a/b", fixture.root());
        assert_eq!(ours.create(&path, DATA).await, Ok(true));
        assert_eq!(ours.create(&path, Bytes::from_static(b"other")).await, Ok(false));
        assert_eq!(ours.read(&path).await.unwrap().unwrap().bytes, DATA);
    }

    pub async fn set_compares_the_version(fixture: &dyn TreeFixture) {
        let (ours, _f) = fixture.open().await;
        let path = format!("{}/a", fixture.root());
        assert_eq!(ours.set(&path, DATA, None).await, Ok(false), "there is no node");
        ours.create(&path, DATA).await.unwrap();
        assert_eq!(ours.set(&path, Bytes::from_static(b"one"), Some(0)).await, Ok(true));
        assert_eq!(ours.set(&path, Bytes::from_static(b"lost"), Some(0)).await, Ok(false));
        assert_eq!(ours.set(&path, Bytes::from_static(b"two"), None).await, Ok(true));
        let node = ours.read(&path).await.unwrap().unwrap();
        assert_eq!(node, NodeData { bytes: Bytes::from_static(b"two"), version: 2 });
    }

    pub async fn delete_tells_whether_there_was_something(fixture: &dyn TreeFixture) {
        let (ours, _f) = fixture.open().await;
        let path = format!("{}/a", fixture.root());
        ours.create(&path, DATA).await.unwrap();
        assert_eq!(ours.delete(&path).await, Ok(true));
        assert_eq!(ours.delete(&path).await, Ok(false));
        assert_eq!(ours.read(&path).await, Ok(None));
    }

    pub async fn delete_spares_a_node_with_children(fixture: &dyn TreeFixture) {
        let (ours, _f) = fixture.open().await;
        let path = format!("{}/a/b", fixture.root());
        ours.create(&path, DATA).await.unwrap();
        let _ = ours.delete(&format!("{}/a", fixture.root())).await;
        assert!(ours.read(&path).await.unwrap().is_some());
    }

    pub async fn reads_end_with_an_error_during_an_outage(fixture: &dyn TreeFixture) {
        let (ours, faults) = fixture.open().await;
        connected(&ours).await;
        faults.cut().await;
        not_connected(&ours).await;
        let root = fixture.root();
        assert!(matches!(within(ours.list(&root)).await, Err(TreeError::Unreachable { .. })));
        assert!(matches!(within(ours.read(&root)).await, Err(TreeError::Unreachable { .. })));
        assert!(matches!(within(ours.create(&root, DATA)).await, Err(TreeError::Unreachable { .. })));
        faults.restore().await;
        connected(&ours).await;
        assert!(within(ours.list(&root)).await.is_ok());
    }

    pub async fn the_session_counts_its_epochs(fixture: &dyn TreeFixture) {
        let (ours, faults) = fixture.open().await;
        assert_eq!(connected(&ours).await, 1);
        faults.cut().await;
        not_connected(&ours).await;
        faults.restore().await;
        assert_eq!(connected(&ours).await, 1, "the session survives a short outage");
        next_epoch(&ours, faults.expire()).await;
        assert!(connected(&ours).await > 1);
    }

    // C93
    pub async fn close_deletes_own_ephemeral_nodes_and_ends_everything(fixture: &dyn TreeFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        let path = format!("{}/a", fixture.root());
        ensured(&ours, &path, NodeKind::Ephemeral).await;
        let mut children = ours.children(&fixture.root(), false);
        known(&mut children, |children| len(children) == 1).await;
        within(ours.close()).await;
        within(ours.close()).await;
        assert_eq!(other.read(&path).await, Ok(None));
        assert_eq!(*ours.session().borrow(), SessionState::Closed);
        while within(children.changed()).await.is_ok() {}
        assert!(matches!(within(ours.read(&path)).await, Err(TreeError::Closed(_))));
        assert!(matches!(within(ours.settled(&path, PATIENCE)).await, Err(TreeError::Closed(_))));
        ours.ensure(&path, DATA, NodeKind::Ephemeral);
        assert_eq!(other.read(&path).await, Ok(None));
    }
}
pub use promises::*;

async fn within<T>(work: impl Future<Output = T>) -> T {
    timeout(PATIENCE, work).await.expect("it ends in time")
}

/// Waits for an observation that fits.
async fn observed<T: Clone>(
    watch: &mut watch::Receiver<Observation<T>>,
    mut fits: impl FnMut(&Observation<T>) -> bool,
) -> Observation<T> {
    within(watch.wait_for(|seen| fits(seen))).await.expect("the watch goes on").clone()
}

/// Waits for a known value that fits.
async fn known<T: Clone>(
    watch: &mut watch::Receiver<Observation<T>>,
    mut fits: impl FnMut(&T) -> bool,
) -> Observation<T> {
    observed(watch, |seen| seen.known.as_ref().is_some_and(&mut fits)).await
}

async fn connected(tree: &Arc<dyn Tree>) -> u64 {
    let mut session = tree.session();
    let state = within(session.wait_for(|state| matches!(state, SessionState::Connected { .. }))).await;
    match *state.expect("the session goes on") {
        SessionState::Connected { epoch } => epoch,
        _ => unreachable!("waited for"),
    }
}

async fn not_connected(tree: &Arc<dyn Tree>) {
    let mut session = tree.session();
    let lost = within(session.wait_for(|state| !matches!(state, SessionState::Connected { .. }))).await;
    lost.expect("the session goes on");
}

/// Runs `fault` and waits for the session after the present one.
async fn next_epoch(tree: &Arc<dyn Tree>, fault: impl Future<Output = ()>) {
    let before = connected(tree).await;
    fault.await;
    let mut session = tree.session();
    let next = |state: &SessionState| matches!(state, SessionState::Connected { epoch } if *epoch > before);
    within(session.wait_for(next)).await.expect("the session goes on");
}

async fn ensured(tree: &Arc<dyn Tree>, path: &str, kind: NodeKind) {
    tree.ensure(path, DATA, kind);
    tree.settled(path, PATIENCE).await.expect("the node can be made");
}

async fn withdrawn(tree: &Arc<dyn Tree>, path: &str) {
    tree.withdraw(path);
    tree.settled(path, PATIENCE).await.expect("the node can be deleted");
}

async fn names(tree: &Arc<dyn Tree>, path: &str) -> Vec<String> {
    list(&tree.list(path).await.expect("the store answers")).into_iter().map(str::to_owned).collect()
}

fn list(children: &Option<Children>) -> Vec<&str> {
    children.iter().flat_map(|children| children.iter().map(|name| &**name)).collect()
}

fn len(children: &Option<Children>) -> usize {
    children.as_ref().map_or(0, |children| children.len())
}
