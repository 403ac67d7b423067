//! The rule of an application, followed.

use std::sync::Arc;
use std::time::Duration;

use dubhe_core::config_center::ConfigText;
use dubhe_core::observation::Observation;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::Instrument;

use crate::rule::{MigrationRule, RuleError};

/// How long a local rule waits for one of the config centre. Text form: `dubbo.application.migration.delay`, milliseconds.
/// Origin: `MigrationRuleListener` of Dubbo 3.3.
pub const DEFAULT_LOCAL_DELAY: Duration = Duration::from_millis(60_000);

/// The rule of the consumer's application, shared by its references: the config centre's text, or a local one.
///
/// Promises: a text that cannot be read is reported and the rule before it stays; a text that was removed is an empty rule; trouble
/// with the config centre changes nothing. The task that follows ends with this value; receivers keep the last rule.
#[derive(Debug)]
pub struct RuleSource {
    rules: watch::Receiver<Arc<RuleInForce>>,
    follower: AbortHandle,
}

/// A rule, and where it comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleInForce {
    /// The rule.
    pub rule: MigrationRule,
    /// Its origin.
    pub origin: RuleOrigin,
    /// Why a newer text is not in force.
    pub refused: Option<RuleError>,
    /// Whether there is nothing to wait for: the config centre has answered, cannot, or does not exist. References wait a moment for
    /// it before they make their first side.
    pub known: bool,
}

/// Where a rule comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleOrigin {
    /// There is none: it says nothing.
    #[default]
    Nowhere,
    /// The config centre.
    ConfigCenter,
    /// The local file.
    Local,
}

/// The text of a local rule file (`dubbo-migration.yaml`), applied once when after `delay` the config centre has no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalRule {
    /// YAML.
    pub text: String,
    /// Default: [`DEFAULT_LOCAL_DELAY`].
    pub delay: Duration,
}

impl LocalRule {
    /// A local rule with the default delay.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), delay: DEFAULT_LOCAL_DELAY }
    }
}

impl RuleSource {
    /// Follows `texts` (group `DUBBO_SERVICEDISCOVERY_MIGRATION`, key `<application>.migration`), if there is a config centre. What is
    /// known of it already is in force at once. Called within a tokio runtime.
    pub fn follow(
        application: &str,
        texts: Option<watch::Receiver<Observation<Option<ConfigText>>>>,
        local: Option<LocalRule>,
    ) -> Self {
        let nothing = RuleInForce { known: texts.is_none(), ..RuleInForce::default() };
        let (sender, rules) = watch::channel(Arc::new(nothing));
        let mut follower = Follower { sender, seen: None };
        let mut texts = texts;
        if let Some(texts) = &mut texts {
            follower.take(texts);
        }
        let due = local.as_ref().map(|local| Instant::now() + local.delay);
        let span = tracing::info_span!("migration_rule", application);
        let task = tokio::spawn(follower.run(texts, local, due).instrument(span));
        Self { rules, follower: task.abort_handle() }
    }

    /// The rule now and from now on.
    pub fn rules(&self) -> watch::Receiver<Arc<RuleInForce>> {
        self.rules.clone()
    }
}

impl Drop for RuleSource {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

struct Follower {
    sender: watch::Sender<Arc<RuleInForce>>,
    /// The text that was looked at last; `Some(None)`: there was none.
    seen: Option<Option<Arc<str>>>,
}

impl Follower {
    async fn run(
        mut self,
        mut texts: Option<watch::Receiver<Observation<Option<ConfigText>>>>,
        mut local: Option<LocalRule>,
        due: Option<Instant>,
    ) {
        loop {
            tokio::select! {
                alive = changed(&mut texts) => match (alive, &mut texts) {
                    (true, Some(texts)) => self.take(texts),
                    // The config centre is closed: what was known stays.
                    _ => texts = None,
                },
                () = until(due), if local.is_some() => {
                    // A text of the config centre that cannot be read is one as well: somebody has to mend it.
                    let is_alone = !matches!(self.seen, Some(Some(_)));
                    if let Some(local) = local.take().filter(|_| is_alone) {
                        self.apply(&local.text, RuleOrigin::Local);
                    }
                }
            }
        }
    }

    fn take(&mut self, texts: &mut watch::Receiver<Observation<Option<ConfigText>>>) {
        // Out of the channel first: reading must not hold its lock.
        let (known, in_trouble) = {
            let seen = texts.borrow_and_update();
            (seen.known.clone(), seen.trouble.is_some())
        };
        let Some(text) = known.map(|text| text.map(|text| text.text)) else {
            if in_trouble {
                let before = RuleInForce::clone(&self.sender.borrow());
                self.publish(before);
            }
            return;
        };
        if self.seen.as_ref() == Some(&text) {
            return;
        }
        match &text {
            Some(text) => self.apply(text, RuleOrigin::ConfigCenter),
            None => {
                let before = RuleInForce::clone(&self.sender.borrow());
                // A local rule that is in force is not the config centre's to remove.
                let stays = before.origin == RuleOrigin::Local;
                self.publish(if stays {
                    RuleInForce { refused: None, ..before }
                } else {
                    RuleInForce::default()
                });
            }
        }
        self.seen = Some(text);
    }

    fn apply(&self, text: &str, origin: RuleOrigin) {
        match MigrationRule::parse(text) {
            Ok(rule) => self.publish(RuleInForce { rule, origin, refused: None, known: true }),
            Err(error) => {
                tracing::error!(%error, ?origin, "migration rule refused");
                let before = RuleInForce::clone(&self.sender.borrow());
                self.publish(RuleInForce { refused: Some(error), ..before });
            }
        }
    }

    fn publish(&self, rule: RuleInForce) {
        let rule = RuleInForce { known: true, ..rule };
        self.sender.send_if_modified(|shown| {
            let is_news = **shown != rule;
            if is_news {
                if rule.origin != RuleOrigin::Nowhere || shown.origin != RuleOrigin::Nowhere {
                    tracing::info!(origin = ?rule.origin, step = ?rule.rule.step, "migration rule in force");
                }
                *shown = Arc::new(rule);
            }
            is_news
        });
    }
}

async fn changed<T>(source: &mut Option<watch::Receiver<T>>) -> bool {
    match source {
        Some(source) => source.changed().await.is_ok(),
        None => std::future::pending().await,
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use dubhe_core::migration::MigrationStep;
    use dubhe_core::observation::Stamp;

    use super::*;

    type Texts = watch::Sender<Observation<Option<ConfigText>>>;

    fn center() -> (Texts, Option<watch::Receiver<Observation<Option<ConfigText>>>>) {
        let (sender, receiver) = watch::channel(Observation::unknown());
        (sender, Some(receiver))
    }

    fn write(center: &Texts, text: Option<&str>) {
        let known = Some(text.map(|text| ConfigText { text: text.into(), version: 1 }));
        center.send_replace(Observation { known, stamp: Stamp::default(), trouble: None });
    }

    async fn next(rules: &mut watch::Receiver<Arc<RuleInForce>>) -> Arc<RuleInForce> {
        rules.changed().await.unwrap();
        Arc::clone(&rules.borrow_and_update())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_known_already_is_in_force_at_once() {
        let (center, texts) = center();
        write(&center, Some("step: FORCE_INTERFACE"));
        let source = RuleSource::follow("shop", texts, None);
        assert_eq!(source.rules().borrow().rule.step, Some(MigrationStep::ForceInterface));
    }

    #[tokio::test(start_paused = true)]
    async fn a_malformed_text_leaves_the_rule_before_it_in_force_and_says_why() {
        let (center, texts) = center();
        let source = RuleSource::follow("shop", texts, None);
        let mut rules = source.rules();
        write(&center, Some("step: FORCE_APPLICATION"));
        next(&mut rules).await;
        write(&center, Some("step: SOMETIMES"));
        let rule = next(&mut rules).await;
        assert_eq!(rule.rule.step, Some(MigrationStep::ForceApplication));
        assert!(rule.refused.as_ref().unwrap().to_string().contains("SOMETIMES"));
        write(&center, Some("step: FORCE_INTERFACE"));
        let rule = next(&mut rules).await;
        assert_eq!((rule.rule.step, &rule.refused), (Some(MigrationStep::ForceInterface), &None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_removed_rule_says_nothing_any_more() {
        let (center, texts) = center();
        let source = RuleSource::follow("shop", texts, None);
        let mut rules = source.rules();
        write(&center, Some("step: FORCE_APPLICATION"));
        next(&mut rules).await;
        write(&center, None);
        assert_eq!(*next(&mut rules).await, RuleInForce { known: true, ..RuleInForce::default() });
    }

    #[tokio::test(start_paused = true)]
    async fn trouble_and_the_end_of_the_config_centre_change_nothing() {
        let (center, texts) = center();
        let source = RuleSource::follow("shop", texts, None);
        let mut rules = source.rules();
        write(&center, Some("step: FORCE_APPLICATION"));
        next(&mut rules).await;
        center.send_replace(Observation { trouble: Some("lost".into()), ..Observation::unknown() });
        drop(center);
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(rules.borrow().rule.step, Some(MigrationStep::ForceApplication));
        assert!(!rules.has_changed().unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn a_local_rule_is_applied_after_its_delay_when_no_other_came() {
        let (center, texts) = center();
        write(&center, None);
        let source = RuleSource::follow("shop", texts, Some(LocalRule::new("step: FORCE_INTERFACE")));
        let mut rules = source.rules();
        assert!(next(&mut rules).await.known);
        let start = Instant::now();
        let rule = next(&mut rules).await;
        assert_eq!(start.elapsed(), DEFAULT_LOCAL_DELAY);
        assert_eq!((rule.rule.step, rule.origin), (Some(MigrationStep::ForceInterface), RuleOrigin::Local));
        write(&center, Some("step: FORCE_APPLICATION"));
        assert_eq!(next(&mut rules).await.origin, RuleOrigin::ConfigCenter);
    }

    #[tokio::test(start_paused = true)]
    async fn a_local_rule_never_replaces_one_of_the_config_centre() {
        let (center, texts) = center();
        write(&center, Some("step: FORCE_APPLICATION"));
        let source = RuleSource::follow("shop", texts, Some(LocalRule::new("step: FORCE_INTERFACE")));
        let rules = source.rules();
        tokio::time::sleep(2 * DEFAULT_LOCAL_DELAY).await;
        assert_eq!(rules.borrow().origin, RuleOrigin::ConfigCenter);
    }

    #[tokio::test(start_paused = true)]
    async fn a_malformed_text_of_the_config_centre_is_not_replaced_by_a_local_rule_but_its_absence_is() {
        let local = || Some(LocalRule::new("step: FORCE_INTERFACE"));
        let (malformed, texts) = center();
        write(&malformed, Some("step: ["));
        let source = RuleSource::follow("shop", texts, local());
        tokio::time::sleep(2 * DEFAULT_LOCAL_DELAY).await;
        let rules = source.rules();
        assert_eq!((rules.borrow().origin, rules.borrow().rule.step), (RuleOrigin::Nowhere, None));
        assert!(rules.borrow().refused.is_some());

        let (center, texts) = center();
        write(&center, Some("step: ["));
        let source = RuleSource::follow("shop", texts, local());
        let mut rules = source.rules();
        assert!(next(&mut rules).await.refused.is_some());
        write(&center, None);
        assert_eq!(*next(&mut rules).await, RuleInForce { known: true, ..RuleInForce::default() });
        assert_eq!(next(&mut rules).await.origin, RuleOrigin::Local);
        // A text that is refused leaves it in force, and is forgotten when it is removed.
        write(&center, Some("step: ["));
        let refused = next(&mut rules).await;
        assert!(refused.refused.is_some() && refused.origin == RuleOrigin::Local);
        write(&center, None);
        let rule = next(&mut rules).await;
        assert_eq!((rule.rule.step, &rule.refused), (Some(MigrationStep::ForceInterface), &None));
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_known_when_the_config_centre_has_answered_cannot_or_does_not_exist() {
        let (answers, texts) = center();
        let source = RuleSource::follow("shop", texts, None);
        assert!(!source.rules().borrow().known);
        write(&answers, None);
        assert!(next(&mut source.rules()).await.known);

        let (fails, texts) = center();
        let source = RuleSource::follow("shop", texts, None);
        fails.send_replace(Observation { trouble: Some("lost".into()), ..Observation::unknown() });
        assert!(next(&mut source.rules()).await.known);

        assert!(RuleSource::follow("shop", None, None).rules().borrow().known);
    }

    #[tokio::test(start_paused = true)]
    async fn a_local_rule_works_without_a_config_centre() {
        let source = RuleSource::follow("shop", None, Some(LocalRule::new("step: FORCE_INTERFACE")));
        assert_eq!(next(&mut source.rules()).await.rule.step, Some(MigrationStep::ForceInterface));
    }
}
