//! The mapping of a registry that has no metadata centre.

use std::sync::Arc;

use async_trait::async_trait;
use dubhe_core::mapping::{Applications, ServiceNameMapping};
use dubhe_core::observation::{Observation, Stamp};
use dubhe_core::tree::TreeError;
use tokio::sync::watch;

/// Nobody has mapped anything, and nothing can be: for registries without a metadata centre. Consumers there name the
/// applications themselves (`provided-by`, `subscribed-services`).
#[derive(Debug)]
pub struct NoMapping {
    nobody: watch::Sender<Observation<Applications>>,
}

impl Default for NoMapping {
    fn default() -> Self {
        let known = Observation { known: Some(Arc::default()), stamp: Stamp::default(), trouble: None };
        Self { nobody: watch::Sender::new(known) }
    }
}

#[async_trait]
impl ServiceNameMapping for NoMapping {
    /// Does nothing: who has no metadata centre has chosen that.
    async fn map(&self, _interface: &str, _application: &str) -> Result<(), TreeError> {
        Ok(())
    }

    fn applications(&self, _interface: &str) -> watch::Receiver<Observation<Applications>> {
        self.nobody.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_is_mapped_and_that_is_known() {
        let mapping = NoMapping::default();
        mapping.map("demo.Greeter", "demo").await.unwrap();
        let names = mapping.applications("demo.Greeter");
        assert!(names.borrow().known.as_ref().unwrap().is_empty());
        assert!(names.borrow().trouble.is_none());
    }
}
