//! How many bytes does a provider address take, held by a consumer's directory?

use std::time::Duration;

use crate::change::Changes;
use crate::measure::resident_bytes;

/// Resident bytes per address with `n` addresses, names not counted.
pub async fn bytes_per_address(n: usize) -> anyhow::Result<f64> {
    let mut changes = Changes::new(n).await?;
    let before = resident_bytes();
    changes.first().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    Ok((resident_bytes().saturating_sub(before)) as f64 / n as f64)
}
