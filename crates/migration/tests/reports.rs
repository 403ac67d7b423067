//! What reporters hear of a migration.
#![allow(clippy::unwrap_used)] // a failed set-up is a failed test

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dubhe_common::Url;
use dubhe_core::status_report::{StatusReport, StatusReporter};
use dubhe_migration::{REPORT_GRACE, SideState, report_changes};
use parking_lot::Mutex;
use support::{Reference, Setup};
use tokio::task::JoinHandle;

const CONSUMER: &str =
    "consumer://192.0.2.9/demo.Greeter?interface=demo.Greeter&application=shop&version=1.0.0&group=g";

const INTERFACE_IS_CONSUMED: &str = r#"{"application":"shop","service":"demo.Greeter","type":"consumption","version":"1.0.0","group":"g","status":"interface"}"#;
const APPLICATION_IS_CONSUMED: &str = r#"{"application":"shop","service":"demo.Greeter","type":"consumption","version":"1.0.0","group":"g","status":"app"}"#;

fn step(origin: &str, new: &str, success: bool) -> String {
    format!(
        r#"{{"originStep":"{origin}","application":"shop","service":"demo.Greeter","success":"{success}","newStep":"{new}","type":"migrationStepStatus","version":"1.0.0","group":"g"}}"#
    )
}

#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<String>>);

impl StatusReporter for Recorder {
    fn report(&self, report: &StatusReport) {
        self.0.lock().push(report.to_json());
    }
}

impl Recorder {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

fn reported(reference: &Reference, reporters: Vec<Arc<dyn StatusReporter>>) -> JoinHandle<()> {
    let consumer = Url::parse(CONSUMER).unwrap();
    tokio::spawn(report_changes(reference.invoker.state(), &consumer, reporters.into()))
}

fn recorded(reference: &Reference) -> (Arc<Recorder>, JoinHandle<()>) {
    let recorder = Arc::new(Recorder::default());
    let task = reported(reference, vec![Arc::clone(&recorder) as Arc<dyn StatusReporter>]);
    (recorder, task)
}

#[tokio::test(start_paused = true)]
async fn a_forced_step_and_a_switch_to_the_other_are_reported_in_order() {
    let reference = Setup::new(1, 1, "step: FORCE_INTERFACE").start();
    let (recorder, _task) = recorded(&reference);
    reference.until_step("FORCE_INTERFACE").await;
    reference.rest().await;
    assert_eq!(recorder.take(), [INTERFACE_IS_CONSUMED.to_owned(), step("null", "FORCE_INTERFACE", true)]);
    reference.rule("step: FORCE_APPLICATION");
    reference.until_step("FORCE_APPLICATION").await;
    reference.rest().await;
    assert_eq!(
        recorder.take(),
        [APPLICATION_IS_CONSUMED.to_owned(), step("FORCE_INTERFACE", "FORCE_APPLICATION", true)]
    );
}

#[tokio::test(start_paused = true)]
async fn in_application_first_the_side_that_calls_go_to_is_reported_when_it_changes() {
    let reference = Setup::new(1, 1, "").ready().await;
    let (recorder, _task) = recorded(&reference);
    reference.rest().await;
    assert_eq!(
        recorder.take(),
        [APPLICATION_IS_CONSUMED.to_owned(), step("null", "APPLICATION_FIRST", true)]
    );
    reference.factory.application.set(0);
    reference.rest().await;
    assert_eq!(recorder.take(), [INTERFACE_IS_CONSUMED]);
    reference.factory.interface.set(7);
    reference.rest().await;
    assert_eq!(recorder.take(), Vec::<String>::new());
    reference.factory.application.set(1);
    reference.rest().await;
    assert_eq!(recorder.take(), [APPLICATION_IS_CONSUMED]);
}

#[tokio::test(start_paused = true)]
async fn a_side_that_is_not_there_is_not_consumed() {
    let setup = Setup::new(1, 1, "step: FORCE_INTERFACE");
    setup.factory.interface.hold_making(true);
    let reference = setup.start();
    let (recorder, _task) = recorded(&reference);
    reference.rest().await;
    assert_eq!(recorder.take(), Vec::<String>::new());
    reference.factory.interface.hold_making(false);
    reference.rest().await;
    assert_eq!(recorder.take(), [INTERFACE_IS_CONSUMED.to_owned(), step("null", "FORCE_INTERFACE", true)]);
}

#[tokio::test(start_paused = true)]
async fn a_switch_that_is_blocked_is_reported_once_and_again_when_it_succeeds() {
    let reference = Setup::new(1, 0, "step: FORCE_INTERFACE").ready().await;
    let (recorder, _task) = recorded(&reference);
    reference.rest().await;
    recorder.take();
    let delay = Duration::from_secs(5);
    reference.rule("{step: FORCE_APPLICATION, delay: 5}");
    tokio::time::sleep(delay + REPORT_GRACE - Duration::from_millis(1)).await;
    assert_eq!(recorder.take(), Vec::<String>::new());
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(recorder.take(), [step("FORCE_INTERFACE", "FORCE_APPLICATION", false)]);
    reference.factory.application.set(1);
    reference.until_step("FORCE_APPLICATION").await;
    reference.rest().await;
    assert_eq!(
        recorder.take(),
        [APPLICATION_IS_CONSUMED.to_owned(), step("FORCE_INTERFACE", "FORCE_APPLICATION", true)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_side_that_cannot_be_made_is_reported_once_however_often_it_is_tried() {
    let setup = Setup::new(1, 1, "step: FORCE_APPLICATION");
    setup.factory.application.set_broken(Some("no registry"));
    let reference = setup.start();
    let (recorder, _task) = recorded(&reference);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(reference.factory.application.begun.load(Ordering::SeqCst) > 2);
    assert_eq!(recorder.take(), [step("null", "FORCE_APPLICATION", false)]);
}

#[tokio::test(start_paused = true)]
async fn a_switch_that_is_taken_back_before_it_fails_is_not_reported() {
    let reference = Setup::new(1, 0, "step: FORCE_INTERFACE").ready().await;
    let (recorder, _task) = recorded(&reference);
    reference.rest().await;
    recorder.take();
    reference.rule("step: FORCE_APPLICATION");
    reference.rest().await;
    reference.rule("step: FORCE_INTERFACE");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(recorder.take(), Vec::<String>::new());
}

#[derive(Debug, Default)]
struct Panicking(AtomicUsize);

impl StatusReporter for Panicking {
    fn report(&self, _: &StatusReport) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("out of ink")
    }
}

#[tokio::test(start_paused = true)]
async fn a_reporter_that_panics_keeps_no_report_from_the_others() {
    let reference = Setup::new(1, 1, "step: FORCE_INTERFACE").ready().await;
    let (panicking, recorder) = (Arc::new(Panicking::default()), Arc::new(Recorder::default()));
    let _task = reported(&reference, vec![Arc::clone(&panicking) as _, Arc::clone(&recorder) as _]);
    reference.rest().await;
    reference.rule("step: FORCE_APPLICATION");
    reference.until_step("FORCE_APPLICATION").await;
    reference.rest().await;
    assert_eq!(panicking.0.load(Ordering::SeqCst), 4);
    assert_eq!(recorder.take().len(), 4);
}

#[derive(Debug)]
struct Stuck(Mutex<std::sync::mpsc::Receiver<()>>);

impl StatusReporter for Stuck {
    fn report(&self, _: &StatusReport) {
        // Ends with an error when the test does.
        let _ = self.0.lock().recv();
    }
}

#[tokio::test]
async fn a_reporter_that_blocks_does_not_hold_the_migration_up() {
    let reference = Setup::new(1, 1, "step: FORCE_INTERFACE").ready().await;
    let (release, stuck) = std::sync::mpsc::channel();
    let _task = reported(&reference, vec![Arc::new(Stuck(Mutex::new(stuck)))]);
    reference.rest().await;
    reference.rule("step: FORCE_APPLICATION");
    reference.until_step("FORCE_APPLICATION").await;
    reference.until(|state| state.interface == SideState::Absent).await;
    drop(release);
}

#[tokio::test(start_paused = true)]
async fn reporting_ends_with_the_reference() {
    for close in [true, false] {
        let reference = Setup::new(1, 1, "").ready().await;
        let (_recorder, task) = recorded(&reference);
        reference.rest().await;
        if close {
            reference.invoker.close().await;
        } else {
            drop(reference);
        }
        task.await.unwrap();
    }
}
