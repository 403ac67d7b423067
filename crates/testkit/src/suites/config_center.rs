//! What [`ConfigCenter`](dubhe_core::config_center::ConfigCenter) promises.

use dubhe_core::config_center::ConfigText;
use dubhe_core::observation::Observation;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{ConfigCenterFixture, PATIENCE};

/// One test per promise of [`ConfigCenter`](dubhe_core::config_center::ConfigCenter), for the fixture that the expression makes.
#[macro_export]
macro_rules! config_center_suite {
    ($fixture:expr) => {
        $crate::config_center_suite! { @each $fixture;
            what_was_published_is_read
            what_was_never_published_is_none
            a_published_text_is_replaced
            groups_keep_their_keys_apart
            an_emptied_text_is_no_text
            publish_if_creates_only_what_does_not_exist
            publish_if_takes_an_emptied_text_for_none
            publish_if_compares_the_version
            of_many_that_publish_if_one_is_first
            remove_tells_whether_there_was_something
            a_listener_of_a_missing_text_knows_that_there_is_none
            a_listener_sees_a_text_come_change_and_go
            a_listener_sees_a_text_emptied_and_filled
            a_late_listener_gets_the_current_text
            a_text_that_is_removed_and_published_again_is_followed
            two_listeners_of_one_text_see_the_same
            a_text_can_be_listened_to_again_after_the_last_listener_is_gone
            a_lost_connection_is_trouble_and_never_a_removed_text
            a_listener_sees_what_changed_during_an_outage
            listeners_survive_a_new_session
        }
    };
    (@each $fixture:expr; $($name:ident)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                let fixture = $fixture;
                $crate::suites::config_center::$name(&fixture).await;
            }
        )*
    };
}

const GROUP: &str = "dubbo";
const KEY: &str = "demo.Foo::.configurators";

#[allow(missing_docs, reason = "the names are the sentences")]
mod promises {
    use super::*;

    pub async fn what_was_published_is_read(fixture: &dyn ConfigCenterFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        ours.publish(GROUP, KEY, "scope: service\nräksmörgås: 1\n").await.unwrap();
        let read = other.get(GROUP, KEY).await.unwrap().unwrap();
        assert_eq!(&*read.text, "scope: service\nräksmörgås: 1\n");
    }

    pub async fn what_was_never_published_is_none(fixture: &dyn ConfigCenterFixture) {
        let (ours, _f) = fixture.open().await;
        assert_eq!(ours.get(GROUP, KEY).await, Ok(None));
    }

    pub async fn a_published_text_is_replaced(fixture: &dyn ConfigCenterFixture) {
        let (ours, _f) = fixture.open().await;
        ours.publish(GROUP, KEY, "one").await.unwrap();
        let first = ours.get(GROUP, KEY).await.unwrap().unwrap();
        ours.publish(GROUP, KEY, "two").await.unwrap();
        let second = ours.get(GROUP, KEY).await.unwrap().unwrap();
        assert_eq!(&*second.text, "two");
        assert_ne!(first.version, second.version);
    }

    pub async fn groups_keep_their_keys_apart(fixture: &dyn ConfigCenterFixture) {
        let (ours, _f) = fixture.open().await;
        ours.publish("one", KEY, "1").await.unwrap();
        ours.publish("two", KEY, "2").await.unwrap();
        assert_eq!(&*ours.get("one", KEY).await.unwrap().unwrap().text, "1");
        assert_eq!(&*ours.get("two", KEY).await.unwrap().unwrap().text, "2");
        assert_eq!(ours.get("three", KEY).await, Ok(None));
    }

    pub async fn an_emptied_text_is_no_text(fixture: &dyn ConfigCenterFixture) {
        let (ours, _f) = fixture.open().await;
        ours.publish(GROUP, KEY, "one").await.unwrap();
        ours.publish(GROUP, KEY, "").await.unwrap();
        assert_eq!(ours.get(GROUP, KEY).await, Ok(None));
        assert_eq!(ours.remove(GROUP, KEY).await, Ok(false));
    }

    pub async fn publish_if_creates_only_what_does_not_exist(fixture: &dyn ConfigCenterFixture) {
        let (ours, _f) = fixture.open().await;
        assert_eq!(ours.publish_if(GROUP, KEY, "one", None).await, Ok(true));
        assert_eq!(ours.publish_if(GROUP, KEY, "two", None).await, Ok(false));
        assert_eq!(&*ours.get(GROUP, KEY).await.unwrap().unwrap().text, "one");
    }

    pub async fn publish_if_takes_an_emptied_text_for_none(fixture: &dyn ConfigCenterFixture) {
        let (ours, _f) = fixture.open().await;
        ours.publish(GROUP, KEY, "").await.unwrap();
        assert_eq!(ours.publish_if(GROUP, KEY, "one", None).await, Ok(true));
        assert_eq!(&*ours.get(GROUP, KEY).await.unwrap().unwrap().text, "one");
    }

    pub async fn publish_if_compares_the_version(fixture: &dyn ConfigCenterFixture) {
        let (ours, _f) = fixture.open().await;
        assert_eq!(ours.publish_if(GROUP, KEY, "none", Some(0)).await, Ok(false));
        ours.publish(GROUP, KEY, "one").await.unwrap();
        let version = ours.get(GROUP, KEY).await.unwrap().unwrap().version;
        assert_eq!(ours.publish_if(GROUP, KEY, "two", Some(version)).await, Ok(true));
        assert_eq!(ours.publish_if(GROUP, KEY, "three", Some(version)).await, Ok(false));
        assert_eq!(&*ours.get(GROUP, KEY).await.unwrap().unwrap().text, "two");
    }

    pub async fn of_many_that_publish_if_one_is_first(fixture: &dyn ConfigCenterFixture) {
        let ((one, _f), (two, _g)) = (fixture.open().await, fixture.open().await);
        one.publish(GROUP, KEY, "start").await.unwrap();
        let version = Some(one.get(GROUP, KEY).await.unwrap().unwrap().version);
        let (first, second) = tokio::join!(
            one.publish_if(GROUP, KEY, "one", version),
            two.publish_if(GROUP, KEY, "two", version)
        );
        assert_ne!(first.unwrap(), second.unwrap());
    }

    pub async fn remove_tells_whether_there_was_something(fixture: &dyn ConfigCenterFixture) {
        let (ours, _f) = fixture.open().await;
        assert_eq!(ours.remove(GROUP, KEY).await, Ok(false));
        ours.publish(GROUP, KEY, "one").await.unwrap();
        assert_eq!(ours.remove(GROUP, KEY).await, Ok(true));
        assert_eq!(ours.get(GROUP, KEY).await, Ok(None));
    }

    pub async fn a_listener_of_a_missing_text_knows_that_there_is_none(fixture: &dyn ConfigCenterFixture) {
        let (ours, _f) = fixture.open().await;
        let mut listener = ours.listen(GROUP, KEY);
        sees(&mut listener, None).await;
    }

    pub async fn a_listener_sees_a_text_come_change_and_go(fixture: &dyn ConfigCenterFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        let mut listener = ours.listen(GROUP, KEY);
        sees(&mut listener, None).await;
        for text in ["one", "two"] {
            other.publish(GROUP, KEY, text).await.unwrap();
            sees(&mut listener, Some(text)).await;
        }
        other.remove(GROUP, KEY).await.unwrap();
        sees(&mut listener, None).await;
    }

    pub async fn a_listener_sees_a_text_emptied_and_filled(fixture: &dyn ConfigCenterFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        let mut listener = ours.listen(GROUP, KEY);
        other.publish(GROUP, KEY, "one").await.unwrap();
        sees(&mut listener, Some("one")).await;
        other.publish(GROUP, KEY, "").await.unwrap();
        sees(&mut listener, None).await;
        other.publish(GROUP, KEY, "two").await.unwrap();
        sees(&mut listener, Some("two")).await;
    }

    // C37
    pub async fn a_late_listener_gets_the_current_text(fixture: &dyn ConfigCenterFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        other.publish(GROUP, KEY, "one").await.unwrap();
        let mut early = ours.listen(GROUP, KEY);
        sees(&mut early, Some("one")).await;
        let mut late = ours.listen(GROUP, KEY);
        sees(&mut late, Some("one")).await;
        other.publish(GROUP, KEY, "two").await.unwrap();
        sees(&mut early, Some("two")).await;
        sees(&mut late, Some("two")).await;
    }

    pub async fn a_text_that_is_removed_and_published_again_is_followed(fixture: &dyn ConfigCenterFixture) {
        let ((ours, _f), (other, _g)) = (fixture.open().await, fixture.open().await);
        let mut listener = ours.listen(GROUP, KEY);
        for round in 0..3 {
            let text = format!("round {round}");
            other.publish(GROUP, KEY, &text).await.unwrap();
            sees(&mut listener, Some(&text)).await;
            other.remove(GROUP, KEY).await.unwrap();
            if round == 1 {
                sees(&mut listener, None).await;
            }
        }
    }

    pub async fn two_listeners_of_one_text_see_the_same(fixture: &dyn ConfigCenterFixture) {
        let (ours, _f) = fixture.open().await;
        let (mut one, mut two) = (ours.listen(GROUP, KEY), ours.listen(GROUP, KEY));
        ours.publish(GROUP, KEY, "text").await.unwrap();
        sees(&mut one, Some("text")).await;
        sees(&mut two, Some("text")).await;
    }

    pub async fn a_text_can_be_listened_to_again_after_the_last_listener_is_gone(
        fixture: &dyn ConfigCenterFixture,
    ) {
        let (ours, _f) = fixture.open().await;
        for text in ["one", "two", "three"] {
            let mut listener = ours.listen(GROUP, KEY);
            ours.publish(GROUP, KEY, text).await.unwrap();
            sees(&mut listener, Some(text)).await;
        }
    }

    pub async fn a_lost_connection_is_trouble_and_never_a_removed_text(fixture: &dyn ConfigCenterFixture) {
        let (ours, faults) = fixture.open().await;
        ours.publish(GROUP, KEY, "text").await.unwrap();
        let mut listener = ours.listen(GROUP, KEY);
        sees(&mut listener, Some("text")).await;
        faults.cut().await;
        let during = until(&mut listener, |seen| seen.trouble.is_some()).await;
        assert_eq!(known(&during), Some(Some("text")));
        faults.restore().await;
        let after = until(&mut listener, |seen| seen.trouble.is_none()).await;
        assert_eq!(known(&after), Some(Some("text")));
    }

    pub async fn a_listener_sees_what_changed_during_an_outage(fixture: &dyn ConfigCenterFixture) {
        let ((ours, faults), (other, _g)) = (fixture.open().await, fixture.open().await);
        other.publish(GROUP, KEY, "before").await.unwrap();
        let mut listener = ours.listen(GROUP, KEY);
        sees(&mut listener, Some("before")).await;
        faults.cut().await;
        until(&mut listener, |seen| seen.trouble.is_some()).await;
        other.publish(GROUP, KEY, "during").await.unwrap();
        faults.restore().await;
        sees(&mut listener, Some("during")).await;
    }

    pub async fn listeners_survive_a_new_session(fixture: &dyn ConfigCenterFixture) {
        let ((ours, faults), (other, _g)) = (fixture.open().await, fixture.open().await);
        other.publish(GROUP, KEY, "before").await.unwrap();
        let mut listener = ours.listen(GROUP, KEY);
        sees(&mut listener, Some("before")).await;
        faults.expire().await;
        other.publish(GROUP, KEY, "after").await.unwrap();
        sees(&mut listener, Some("after")).await;
    }
}

pub use promises::*;

type Listener = watch::Receiver<Observation<Option<ConfigText>>>;

async fn until(
    listener: &mut Listener,
    fits: impl FnMut(&Observation<Option<ConfigText>>) -> bool,
) -> Observation<Option<ConfigText>> {
    let seen = timeout(PATIENCE, listener.wait_for(fits)).await.map(|seen| seen.unwrap().clone());
    seen.unwrap_or_else(|_| panic!("still {:?}", *listener.borrow()))
}

/// Waits until exactly this text is known, without trouble.
async fn sees(listener: &mut Listener, text: Option<&str>) {
    until(listener, |seen| seen.trouble.is_none() && known(seen) == Some(text)).await;
}

fn known(seen: &Observation<Option<ConfigText>>) -> Option<Option<&str>> {
    seen.known.as_ref().map(|text| text.as_ref().map(|text| &*text.text))
}
