//! Throwables.

use std::sync::Arc;

use dubhe_core::error::Exception;
use dubhe_core::value::{Object, Value};

use super::{Reader, Result};

/// The class that a Throwable of unknown class counts as.
const THROWABLE: &str = "java.lang.Throwable";

impl Reader {
    pub(super) fn exception(&mut self) -> Result<Exception> {
        let at = self.at;
        match self.value()? {
            Value::Object(object) => Ok(self.exception_of(&object)),
            // A peer that does not know the class sends its fields.
            value @ Value::Map(_) => {
                let fields = value
                    .as_map()
                    .unwrap_or_default()
                    .iter()
                    .filter_map(|(key, value)| Some((Arc::from(key.as_str()?), value.clone())));
                let class = value.get("class").and_then(Value::as_str).unwrap_or(THROWABLE);
                Ok(self.exception_of(&Object { class: class.into(), fields: fields.collect() }))
            }
            other => Err(self.error(at, format_args!("an exception must be an object, not {other:?}"))),
        }
    }

    /// The exception that an object is. A cause that is a reference closes a cycle: mostly to the exception itself,
    /// which is how Java says that there is none.
    fn exception_of(&self, object: &Object) -> Exception {
        let mut exception = Exception {
            class: Arc::clone(&object.class),
            message: None,
            fields: Vec::new(),
            cause: None,
            stack_trace: Vec::new(),
        };
        for (name, value) in &object.fields {
            match (&**name, value) {
                ("detailMessage", Value::Null) | ("suppressedExceptions", _) => {}
                ("detailMessage", message) => exception.message = Some(message.to_java_text().into()),
                ("cause", Value::Object(cause)) => exception.cause = Some(Box::new(self.exception_of(cause))),
                ("cause", _) => {}
                ("stackTrace", trace) => {
                    exception.stack_trace = trace
                        .as_list()
                        .unwrap_or_default()
                        .iter()
                        .take(self.limits.stack_frames)
                        .map(frame)
                        .collect();
                }
                _ => exception.fields.push((Arc::clone(name), value.without_cycles())),
            }
        }
        exception
    }
}

/// `class.method(file:line)`, as Java prints it.
fn frame(element: &Value) -> Arc<str> {
    let text = |name| element.field(name).and_then(Value::as_str).map(start_of);
    let (class, method) = (text("declaringClass").unwrap_or("?"), text("methodName").unwrap_or("?"));
    let line = element.field("lineNumber").and_then(Value::as_int).unwrap_or(-1);
    let place = match (text("fileName"), line) {
        (_, -2) => "Native Method".to_owned(),
        (Some(file), 0..) => format!("{file}:{line}"),
        (Some(file), _) => file.to_owned(),
        (None, _) => "Unknown Source".to_owned(),
    };
    format!("{class}.{method}({place})").into()
}

/// A name, cut after 1 KiB: many frames may share one text.
fn start_of(name: &str) -> &str {
    name.char_indices().nth(1_024).map_or(name, |(end, _)| &name[..end])
}
