//! The story of a day: a provider leaves and returns, a rule comes and goes.

use std::time::Duration;

use anyhow::Result;

use crate::board::Board;
use crate::fleet::Fleet;
use crate::load::{Load, Tally};
use crate::options::Options;

/// Runs it; `true` when no call failed.
pub(crate) async fn run(options: &Options) -> Result<bool> {
    let tally = Tally::default();
    let board = Board::new(&tally);
    board.say(&format!("registry: {}", options.registry));
    let mut fleet = Fleet::start(options, &board).await?;
    let load = Load::start(fleet.greeter(), &tally);
    let watch = board.watch();

    let scene = Duration::from_secs_f64(options.seconds / 5.0);
    board.scene("three providers, steady load");
    tokio::time::sleep(scene).await;
    board.scene("provider-2 leaves: unregisters, finishes its calls, closes");
    fleet.leave(1).await;
    tokio::time::sleep(scene).await;
    board.scene("provider-2 returns on a new port");
    fleet.enter(1).await?;
    tokio::time::sleep(scene).await;
    board.scene("a condition rule sends sayHello to provider-1 alone");
    fleet.put_rule(0).await?;
    tokio::time::sleep(scene).await;
    board.scene("the rule is removed");
    fleet.remove_rule().await?;
    tokio::time::sleep(scene).await;

    load.stop().await;
    watch.stop().await;
    fleet.stop().await;
    Ok(board.summary())
}
