//! Requests given to services, and their answers.

use std::sync::Arc;

use bytes::BytesMut;
use dubhe_core::BoxFuture;
use dubhe_core::error::RpcError;
use dubhe_core::exchange::{HEADROOM, Reply, RequestFrame, RequestHandler, status};
use dubhe_core::invocation::{ECHO, Invocation};
use tokio::time::Instant;

use crate::invoker::{TIME_LEFT, millis};
use crate::reply::Answers;
use crate::request::{Heads, Refusal, Request, SpecialMethods, decode};
use crate::serializations::Serializations;
use crate::served::Services;

/// Serves the requests of one server.
#[derive(Debug)]
pub(crate) struct Handler(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    services: Arc<Services>,
    serializations: Arc<Serializations>,
    special: SpecialMethods,
    heads: Heads,
}

impl Handler {
    pub(crate) fn new(services: Arc<Services>, serializations: Arc<Serializations>) -> Self {
        Self(Arc::new(Inner {
            services,
            serializations,
            special: SpecialMethods::new(),
            heads: Heads::new(),
        }))
    }
}

impl RequestHandler for Handler {
    fn handle(&self, request: RequestFrame) -> BoxFuture<'static, Reply> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.handle(request).await })
    }

    fn refuse(&self, status: u8, serialization: u8, text: &str) -> Reply {
        refuse(&self.0.serializations, status, serialization, text)
    }
}

impl Inner {
    async fn handle(&self, frame: RequestFrame) -> Reply {
        let Some(known) = self.serializations.by_id(frame.serialization) else {
            let id = frame.serialization;
            let cause = format_args!("java.io.IOException: Unrecognized serialize type from consumer: {id}");
            return self.refusal(&frame, &Refusal::undecodable(cause));
        };
        let request = match decode(&frame, &*known.serialization, &self.services, &self.special, &self.heads)
        {
            Ok(request) => request,
            Err(refusal) => return self.refusal(&frame, &refusal),
        };
        let with_attachments = request.reads_response_attachments;
        let answers = Answers::written_with(known);
        match self.run(&frame, request).await {
            Ok(Ok(response)) => answers.response(&response, with_attachments),
            Ok(Err(error)) => match error.exception() {
                Some(exception) => answers.exception(exception.clone(), with_attachments),
                None => answers.error(error.status().unwrap_or(status::SERVICE_ERROR), &error_text(&error)),
            },
            Err(refusal) => self.refusal(&frame, &refusal),
        }
    }

    async fn run(
        &self,
        frame: &RequestFrame,
        request: Request,
    ) -> Result<Result<dubhe_core::response::Response, RpcError>, Refusal> {
        let Request { served, method, arguments, attachments, .. } = request;
        // As in the reference, an echo asks whether the service is there, not whether it may be used.
        let is_echo = &*method.name == ECHO;
        if !is_echo && !served.admits(attachments.get_str(dubhe_common::keys::TOKEN)) {
            return Err(Refusal::wrong_token(&served, &method.name, frame.peer, frame.local));
        }
        let time_left = attachments.get(TIME_LEFT).or_else(|| attachments.get("_to")).and_then(millis);
        let mut call = Invocation::new(method, arguments);
        *call.attachments_mut() = attachments;
        if let Some(left) = time_left {
            call = call.with_deadline((Instant::now() + left).into_std());
        }
        let _permit = served.permit(call.method_name()).map_err(|text| Refusal {
            status: status::SERVICE_ERROR,
            text: format!("org.apache.dubbo.rpc.RpcException: {text}"),
        })?;
        Ok(served.invoker.invoke(call).await)
    }

    fn refusal(&self, frame: &RequestFrame, refusal: &Refusal) -> Reply {
        tracing::debug!(peer.addr = %frame.peer, status = refusal.status, text = %refusal.text, "request refused");
        refuse(&self.serializations, refusal.status, frame.serialization, &refusal.text)
    }
}

/// An error answer in the request's serialization, if it is known, else in the default one.
fn refuse(serializations: &Serializations, status: u8, serialization: u8, text: &str) -> Reply {
    match serializations.by_id(serialization).or_else(|| serializations.default()) {
        Some(known) => Answers::written_with(known).error(status, text),
        None => Reply { status, serialization, frame: BytesMut::zeroed(HEADROOM) },
    }
}

/// The text of an error that is no exception of the service, as a stack trace begins.
fn error_text(error: &RpcError) -> String {
    let text = error.message();
    let begins_with_class = text.starts_with("java.") || text.starts_with("org.apache.dubbo.");
    if begins_with_class { text.to_owned() } else { format!("org.apache.dubbo.rpc.RpcException: {text}") }
}

/// Answers the requests that providers send back to a consumer: nothing here can be called back.
#[derive(Debug)]
pub(crate) struct NoCallbacks {
    serializations: Arc<Serializations>,
}

impl NoCallbacks {
    pub(crate) fn new(serializations: Arc<Serializations>) -> Self {
        Self { serializations }
    }
}

impl RequestHandler for NoCallbacks {
    fn handle(&self, request: RequestFrame) -> BoxFuture<'static, Reply> {
        let text = "org.apache.dubbo.remoting.RemotingException: this consumer offers no callback service";
        let reply = self.refuse(status::SERVICE_ERROR, request.serialization, text);
        Box::pin(std::future::ready(reply))
    }

    fn refuse(&self, status: u8, serialization: u8, text: &str) -> Reply {
        refuse(&self.serializations, status, serialization, text)
    }
}
