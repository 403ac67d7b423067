use super::*;

const AT: Round = Round { epoch: 1, round: 1 };
const NEXT_ROUND: Round = Round { epoch: 1, round: 2 };
const NEXT_EPOCH: Round = Round { epoch: 2, round: 3 };

fn ledger() -> Ledger {
    let mut ledger = Ledger::new(100);
    ledger.attend(0, Some(AT), Instant::now());
    ledger
}

fn ensure(ledger: &mut Ledger, path: &str, data: &'static str) -> Option<usize> {
    ledger.ensure(path.into(), Bytes::from_static(data.as_bytes()), NodeKind::Ephemeral)
}

/// Does all that is due, and says what it was.
fn work(ledger: &mut Ledger, at: Round) -> Vec<Job> {
    let jobs: Vec<_> = std::iter::from_fn(|| ledger.take(0)).collect();
    jobs.iter().for_each(|job| ledger.finish(job, at, Ok(()), Instant::now()));
    jobs
}

fn fail(ledger: &mut Ledger, job: &Job, at: Round, definite: bool) {
    let error = TreeError::Invalid("no".to_owned());
    ledger.finish(job, at, Err((error, definite)), Instant::now());
}

fn holds(ledger: &Ledger, path: &str) -> bool {
    matches!(ledger.standing(path), Standing::Holds)
}

#[test]
fn an_intent_is_carried_out_once() {
    let mut ledger = ledger();
    ensure(&mut ledger, "/a", "x");
    ensure(&mut ledger, "/a", "x");
    assert!(!holds(&ledger, "/a"));
    assert_eq!(work(&mut ledger, AT).len(), 1);
    assert!(holds(&ledger, "/a"));
    assert!(work(&mut ledger, AT).is_empty());
}

#[test]
fn as_many_withdrawals_as_intents_make_it_go() {
    let mut ledger = ledger();
    ensure(&mut ledger, "/a", "x");
    ensure(&mut ledger, "/a", "x");
    work(&mut ledger, AT);
    ledger.withdraw("/a");
    assert!(work(&mut ledger, AT).is_empty());
    ledger.withdraw("/a");
    ledger.withdraw("/a");
    let jobs = work(&mut ledger, AT);
    assert!(jobs.len() == 1 && jobs[0].wanted.is_none());
    assert!(holds(&ledger, "/a") && ledger.entries.is_empty() && ledger.lanes[0].charge == 0);
}

/// C24
#[test]
fn a_new_round_verifies_and_a_new_epoch_makes_again() {
    let mut ledger = ledger();
    ensure(&mut ledger, "/a", "x");
    ledger.ensure("/b".into(), Bytes::new(), NodeKind::Persistent);
    assert!(work(&mut ledger, AT).iter().all(|job| !job.verify));
    ledger.attend(0, None, Instant::now());
    assert!(work(&mut ledger, AT).is_empty() && !holds(&ledger, "/a"));
    ledger.attend(0, Some(NEXT_ROUND), Instant::now());
    assert!(!holds(&ledger, "/a"));
    let jobs = work(&mut ledger, NEXT_ROUND);
    assert!(jobs.len() == 2 && jobs.iter().all(|job| job.verify));
    ledger.attend(0, Some(NEXT_EPOCH), Instant::now());
    let jobs = work(&mut ledger, NEXT_EPOCH);
    assert_eq!(
        jobs.iter().filter(|job| job.verify).map(|job| job.kind).collect::<Vec<_>>(),
        [NodeKind::Persistent]
    );
    assert!(holds(&ledger, "/a") && holds(&ledger, "/b"));
}

/// C25
#[test]
fn what_changes_while_it_is_under_way_is_done_afterwards() {
    let mut ledger = ledger();
    ensure(&mut ledger, "/a", "x");
    let job = ledger.take(0).unwrap();
    ensure(&mut ledger, "/a", "y");
    assert!(ledger.take(0).is_none(), "one step at a time for each path");
    ledger.finish(&job, AT, Ok(()), Instant::now());
    assert!(!holds(&ledger, "/a"));
    let job = ledger.take(0).unwrap();
    assert_eq!(job.wanted.as_ref().unwrap().data, "y");
    ledger.withdraw("/a");
    ledger.withdraw("/a");
    fail(&mut ledger, &job, AT, false);
    let jobs = work(&mut ledger, AT);
    assert!(jobs.len() == 1 && jobs[0].wanted.is_none(), "the failure of a former wish delays nothing");
}

/// C02, C25
#[test]
fn a_failure_is_tried_again_after_its_delay_or_in_the_next_round() {
    let mut ledger = ledger();
    ensure(&mut ledger, "/a", "x");
    let job = ledger.take(0).unwrap();
    fail(&mut ledger, &job, AT, false);
    assert!(ledger.take(0).is_none());
    let retry = ledger.due(0, Instant::now()).unwrap();
    assert_eq!(ledger.due(0, retry), None);
    let job = ledger.take(0).unwrap();
    fail(&mut ledger, &job, AT, false);
    ledger.attend(0, None, Instant::now());
    ledger.attend(0, Some(NEXT_ROUND), Instant::now());
    assert_eq!(work(&mut ledger, NEXT_ROUND).len(), 1);
    assert_eq!(ledger.due(0, retry + Duration::from_secs(100)), None);
    assert!(work(&mut ledger, NEXT_ROUND).is_empty(), "an overtaken retry does nothing");
}

/// C50
#[test]
fn what_keeps_failing_waits_even_through_new_connections() {
    let mut ledger = ledger();
    ensure(&mut ledger, "/a", "x");
    for round in 1..=u64::from(SUSPECT) {
        let at = Round { epoch: 1, round };
        ledger.attend(0, Some(at), Instant::now());
        let job = ledger.take(0).unwrap();
        fail(&mut ledger, &job, at, true);
    }
    assert!(matches!(ledger.standing("/a"), Standing::Refused(_)));
    ledger.attend(0, Some(NEXT_EPOCH), Instant::now());
    assert!(ledger.take(0).is_none());
    ensure(&mut ledger, "/a", "smaller");
    assert!(ledger.take(0).is_some(), "another wish is tried at once");
}

#[test]
fn a_failure_that_missed_a_new_round_is_tried_in_it() {
    let mut ledger = ledger();
    ensure(&mut ledger, "/a", "x");
    let job = ledger.take(0).unwrap();
    ledger.attend(0, Some(NEXT_ROUND), Instant::now());
    fail(&mut ledger, &job, AT, false);
    assert_eq!(work(&mut ledger, NEXT_ROUND).len(), 1);
}

#[test]
fn paths_beyond_the_budget_go_to_further_lanes_and_give_their_room_back() {
    let mut ledger = ledger();
    let path = |index: usize| format!("/{index:0>39}");
    assert_eq!(ensure(&mut ledger, &path(0), ""), None);
    assert_eq!(ensure(&mut ledger, &path(1), ""), None);
    assert_eq!(ensure(&mut ledger, &path(2), ""), Some(1));
    assert_eq!(ensure(&mut ledger, &path(3), ""), None);
    assert_eq!(ledger.lanes.iter().map(|lane| lane.entries).collect::<Vec<_>>(), [2, 2]);
    work(&mut ledger, AT);
    ledger.withdraw(&path(0));
    work(&mut ledger, AT);
    assert_eq!(ensure(&mut ledger, &path(4), ""), None, "there is room again");
    // Persistent nodes belong to no session.
    assert_eq!(ledger.ensure(path(5).into(), Bytes::new(), NodeKind::Persistent), None);
}

/// C93
#[test]
fn closing_takes_ephemeral_nodes_away_and_forgets_the_rest() {
    let mut ledger = ledger();
    ensure(&mut ledger, "/a", "x");
    ledger.ensure("/lasting".into(), Bytes::new(), NodeKind::Persistent);
    work(&mut ledger, AT);
    ensure(&mut ledger, "/never/sent", "x");
    ledger.close();
    assert!(ledger.drained().is_err());
    let jobs = work(&mut ledger, AT);
    assert!(jobs.len() == 1 && &*jobs[0].path == "/a" && jobs[0].wanted.is_none());
    assert!(ledger.drained().is_ok());
    ensure(&mut ledger, "/late", "x");
    assert!(work(&mut ledger, AT).is_empty());
}
