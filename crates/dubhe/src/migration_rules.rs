//! Where the migration rules of an application come from.

use std::io::Read;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dubhe_config::{MAX_FILE_BYTES, MigrationConfig};
use dubhe_core::config_center::{ConfigCenter, MIGRATION_GROUP};
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_migration::{LocalRule, MigrationRule, RuleInForce, RuleSource};
use tokio::sync::watch;

/// The rules of one application: followed once, from the first reference on, for all of them.
#[derive(Debug, Default)]
pub(crate) struct MigrationRules {
    file: Option<LocalRule>,
    source: OnceLock<RuleSource>,
}

impl MigrationRules {
    /// With the rule of the configured file, if there is one.
    ///
    /// Errors: it cannot be read, or is no rule.
    pub(crate) async fn new(config: &MigrationConfig) -> Result<Self, RpcError> {
        let Some(path) = config.file.clone() else { return Ok(Self::default()) };
        let failed = |error: &dyn std::fmt::Display| {
            let key = "dubbo.application.migration.file";
            let path = config.file.as_deref().unwrap_or_default();
            let text = format!("the migration rule in {path} (`{key}`) cannot be used: {error}");
            RpcError::new(ErrorCode::Unknown, text)
        };
        let text = tokio::task::spawn_blocking(move || read(Path::new(&path))).await;
        let text = text.map_err(|stopped| failed(&stopped))?.map_err(|error| failed(&error))?;
        MigrationRule::parse(&text).map_err(|error| failed(&error))?;
        let mut rule = LocalRule::new(text);
        if let Some(delay) = config.delay {
            rule.delay = Duration::from_millis(delay);
        }
        Ok(Self { file: Some(rule), source: OnceLock::new() })
    }

    /// The rule of `application` as it changes; `None` where no rule can be. Called within a tokio runtime.
    pub(crate) fn follow(
        &self,
        application: &str,
        center: Option<&Arc<dyn ConfigCenter>>,
    ) -> Option<watch::Receiver<Arc<RuleInForce>>> {
        if center.is_none() && self.file.is_none() {
            return None;
        }
        let source = self.source.get_or_init(|| {
            let key = format!("{application}.migration");
            let texts = center.map(|center| center.listen(MIGRATION_GROUP, &key));
            RuleSource::follow(application, texts, self.file.clone())
        });
        Some(source.rules())
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        let what = format!("it has more than {MAX_FILE_BYTES} bytes: is it the right file?");
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what));
    }
    Ok(text)
}
