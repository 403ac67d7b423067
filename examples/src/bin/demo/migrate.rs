//! The story of a migration: a fleet registered by interface becomes one registered by application, and no call fails.

use std::time::Duration;

use anyhow::{Result, ensure};
use dubhe::SideKind::{Application, Interface};
use dubhe::core::migration::MigrationStep::{ApplicationFirst, ForceApplication, ForceInterface};

use crate::board;
use crate::load::{Load, Tally};
use crate::options::Options;
use crate::road::{PROVIDERS, Road, name};
use crate::table::Table;
use crate::view::View;

/// Phases of the story, each with the same time.
const PHASES: f64 = 10.0;

/// Runs it; `true` when no call failed and each phase was reached.
pub(crate) async fn run(options: &Options) -> Result<bool> {
    let tally = Tally::default();
    let mut road = Road::start(&options.registry).await?;
    let table = Table::new(&tally, road.greeter());
    table.say(&format!("registry: {}", options.registry));
    let load = Load::start(road.greeter(), &tally);
    let watch = table.watch();

    let walked = walk(&mut road, &table, Duration::from_secs_f64(options.seconds / PHASES)).await;

    load.stop().await;
    watch.stop().await;
    table.end();
    if let Err(error) = &walked {
        board::complain(&format!("demo: {error:#}"));
    }
    road.stop().await;
    Ok(table.summary() && walked.is_ok())
}

/// From one model to the other, and the way back that nobody is there for.
async fn walk(road: &mut Road, table: &Table, time: Duration) -> Result<()> {
    table.phase("1 all registered by interface");
    road.reach(&View::of(ApplicationFirst, Some(PROVIDERS), Some(0), Interface)).await?;
    tokio::time::sleep(time).await;

    for index in 0..PROVIDERS {
        table.phase(&format!("2 {} now in both models", name(index)));
        road.replace(index, "all").await?;
        // One instance is enough: the default threshold is 0.
        road.reach(&View::of(ApplicationFirst, Some(PROVIDERS), Some(index + 1), Application)).await?;
        tokio::time::sleep(time).await;
    }

    table.phase("3 rule: FORCE_APPLICATION");
    road.put_rule(ForceApplication).await?;
    road.reach(&View::of(ForceApplication, None, Some(PROVIDERS), Application)).await?;
    tokio::time::sleep(time).await;

    for index in 0..PROVIDERS {
        table.phase(&format!("4 {} by application only", name(index)));
        road.replace(index, "instance").await?;
        road.reach(&View::of(ForceApplication, None, Some(PROVIDERS), Application)).await?;
        tokio::time::sleep(time).await;
    }
    let left = road.interface_nodes().await?;
    ensure!(left == 0, "{left} providers are still registered by interface");

    table.phase("5 rule: FORCE_INTERFACE");
    table.say("no provider is registered by interface any more");
    road.put_rule(ForceInterface).await?;
    road.reach(&View::of(ForceApplication, Some(0), Some(PROVIDERS), Application).blocked()).await?;
    tokio::time::sleep(time).await;
    let blocked = road.explain();

    table.phase("6 the rule is removed");
    table.say(&format!("before, the consumer said: {blocked}"));
    road.remove_rule().await?;
    road.reach(&View::of(ApplicationFirst, Some(0), Some(PROVIDERS), Application)).await?;
    tokio::time::sleep(time).await;
    Ok(())
}
