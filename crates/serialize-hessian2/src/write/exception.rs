//! Throwables.

use std::sync::Arc;

use bytes::BufMut;
use dubhe_core::error::Exception;
use dubhe_core::serialize::SerializeError;

use super::{Name, Writer};
use crate::tag;

/// Fields of `java.lang.Throwable`, as written here.
const THROWABLE: [&str; 4] = ["suppressedExceptions", "stackTrace", "cause", "detailMessage"];

impl Writer<'_> {
    /// A Throwable: no suppressed ones, an empty stack trace (one of another language would say nothing to Java).
    pub(super) fn exception(&mut self, exception: &Exception) -> Result<(), SerializeError> {
        self.begin()?;
        let own: Vec<_> = exception.fields.iter().filter(|(name, _)| !THROWABLE.contains(&&**name)).collect();
        let names = (0..THROWABLE.len() + own.len()).map(|index| match THROWABLE.get(index) {
            Some(name) => Name::Static(name),
            None => Name::Shared(Arc::clone(&own[index - THROWABLE.len()].0)),
        });
        let class = self.class(&Name::Shared(Arc::clone(&exception.class)), names);
        self.instance_head(class);
        self.out.put_u8(tag::NULL);
        self.begin()?;
        self.list_head(Some(Name::Static("[java.lang.StackTraceElement")), 0)?;
        self.end();
        match &exception.cause {
            Some(cause) => self.exception(cause)?,
            None => self.out.put_u8(tag::NULL),
        }
        match &exception.message {
            Some(message) => self.string(message),
            None => self.out.put_u8(tag::NULL),
        }
        for (_, value) in own {
            self.value(value)?;
        }
        self.end();
        Ok(())
    }
}
