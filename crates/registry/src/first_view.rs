//! What a new subscription starts with: the registry's answer, or what stands in for it.

use std::sync::Arc;
use std::time::Duration;

use dubhe_common::Url;
use dubhe_core::registry::ServiceView;
use dubhe_core::tree::{SessionState, TreeError};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use crate::listing::Reader;
use crate::paths::{self, Paths};
use crate::tree_registry::TreeRegistry;

/// When a subscription that gets no answer asks whether it is refused. Origin: ours.
const PROBE_AFTER: Duration = Duration::from_secs(1);

impl TreeRegistry {
    /// Waits for the first view of a subscription; what may stand in for it is put into `sender`.
    pub(crate) async fn first_view(
        &self,
        url: &Url,
        reader: &Reader,
        sender: &watch::Sender<Arc<ServiceView>>,
    ) -> Result<(), TreeError> {
        let mut closed = self.closed.subscribe();
        tokio::select! {
            outcome = self.first_view_while_open(url, reader, sender) => outcome,
            _ = closed.wait_for(|closed| *closed) => Err(TreeError::Closed(self.address.to_string())),
        }
    }

    async fn first_view_while_open(
        &self,
        url: &Url,
        reader: &Reader,
        sender: &watch::Sender<Arc<ServiceView>>,
    ) -> Result<(), TreeError> {
        let deadline = Instant::now() + self.timeout;
        let mut view = sender.subscribe();
        if !is_blank(&view.borrow_and_update()) {
            return Ok(());
        }
        let Err(trouble) = self.view_or_refusal(url, &mut view).await else { return Ok(()) };
        let may_pass = matches!(trouble, TreeError::Unreachable { .. });
        if may_pass && let Some(cached) = self.cached_view(url, reader, &trouble).await {
            replace_if_blank(sender, cached);
            return Ok(());
        }
        if !self.checks(url) && !matches!(trouble, TreeError::Closed(_)) {
            let trouble = Some(Arc::from(trouble.to_string()));
            replace_if_blank(sender, ServiceView { trouble, ..ServiceView::default() });
            return Ok(());
        }
        if may_pass && matches!(timeout_at(deadline, view.changed()).await, Ok(Ok(()))) {
            return Ok(());
        }
        Err(trouble)
    }

    /// Waits for the first view while there is hope: all of `timeout` when the session is alive, else the grace time.
    async fn view_or_refusal(
        &self,
        url: &Url,
        view: &mut watch::Receiver<Arc<ServiceView>>,
    ) -> Result<(), TreeError> {
        let refused = async {
            if !self.connected_in_grace().await {
                return match *self.session.borrow() {
                    SessionState::Closed => TreeError::Closed(self.address.to_string()),
                    _ => self.unreachable("there is no session".to_owned()),
                };
            }
            tokio::time::sleep(PROBE_AFTER).await;
            if let Some(refusal) = self.refusal(url).await {
                return refusal;
            }
            let mut session = self.session.clone();
            let lost = session.wait_for(|state| !matches!(state, SessionState::Connected { .. }));
            match timeout(self.timeout.saturating_sub(PROBE_AFTER), lost).await {
                Ok(_) => self.unreachable("the session was lost".to_owned()),
                Err(_) => self.unreachable(format!("no answer within {} ms", self.timeout.as_millis())),
            }
        };
        tokio::select! {
            biased;
            seen = view.changed() => seen.map_err(|_| TreeError::Closed(self.address.to_string())),
            refusal = refused => Err(refusal),
        }
    }

    /// What the store has against reading what `url` asks for.
    async fn refusal(&self, url: &Url) -> Option<TreeError> {
        let name = Paths::name(url).ok().filter(|_| !paths::is_wildcard(url));
        let path = match name {
            Some(name) => self.paths.category(&name, paths::categories(url).first()?),
            None => self.paths.root().to_owned(),
        };
        let refusal = self.tree.list(&path).await.err()?;
        matches!(refusal, TreeError::Denied { .. } | TreeError::Invalid(_)).then_some(refusal)
    }

    async fn cached_view(&self, url: &Url, reader: &Reader, trouble: &TreeError) -> Option<ServiceView> {
        let cache = self.cache.as_ref().filter(|_| !paths::is_wildcard(url))?;
        let view = cache.view(url, reader, &self.urls).await?;
        tracing::warn!(
            registry.addr = %self.address,
            rpc.service = url.service_interface(),
            error = %trouble,
            "using addresses from the cache file"
        );
        Some(ServiceView { trouble: Some(Arc::from(trouble.to_string())), from_cache: true, ..view })
    }

    fn unreachable(&self, reason: String) -> TreeError {
        TreeError::Unreachable { address: self.address.to_string(), reason }
    }
}

/// Puts a stand-in where no view has been published yet.
fn replace_if_blank(sender: &watch::Sender<Arc<ServiceView>>, view: ServiceView) {
    sender.send_if_modified(|current| {
        let blank = is_blank(current);
        if blank {
            *current = Arc::new(view);
        }
        blank
    });
}

fn is_blank(view: &ServiceView) -> bool {
    let categories = [&view.configurators, &view.routers, &view.providers, &view.consumers];
    categories.iter().all(|category| category.urls().is_none())
}
