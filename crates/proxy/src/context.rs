//! What a service method can know of the call that it serves, and say back.
//!
//! Inside the task of a served call these functions see that call; anywhere else they see nothing. A task that the method
//! spawns is outside.

use std::borrow::Cow;
use std::cell::RefCell;

use dubhe_core::invocation::Attachments;
use dubhe_core::value::Value;

tokio::task_local! {
    static CURRENT: RefCell<Served>;
}

#[derive(Debug, Default)]
struct Served {
    request: Attachments,
    response: Attachments,
}

/// The attachments that came with the call being served; empty outside of one.
pub fn attachments() -> Attachments {
    CURRENT.try_with(|served| served.borrow().request.clone()).unwrap_or_default()
}

/// One string attachment of the call being served.
pub fn attachment(key: &str) -> Option<String> {
    CURRENT.try_with(|served| served.borrow().request.get_str(key).map(str::to_owned)).ok().flatten()
}

/// Sends an attachment back with the response; `false` outside of a served call.
pub fn set_response_attachment(key: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> bool {
    CURRENT.try_with(|served| served.borrow_mut().response.set(key, value)).is_ok()
}

/// Runs `serve` as the serving of a call with these attachments; gives its outcome and the attachments of the response.
pub(crate) async fn serving<F: Future>(request: Attachments, serve: F) -> (F::Output, Attachments) {
    let served = RefCell::new(Served { request, response: Attachments::new() });
    CURRENT
        .scope(served, async {
            let output = serve.await;
            let response = CURRENT.with(|served| std::mem::take(&mut served.borrow_mut().response));
            (output, response)
        })
        .await
}
