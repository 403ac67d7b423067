//! The services of the recorded provider.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dubhe::{ErrorCode, Value};
use tokio::sync::Notify;

pub(crate) const DEMO: &str = "org.apache.dubbo.demo.DemoService";
pub(crate) const GREET: &str = "org.apache.dubbo.demo.GreetService";

#[dubhe::service(interface = "org.apache.dubbo.demo.GreetService", group = "g1", version = "1.0.0")]
pub(crate) trait Greet {
    async fn greet(&self, name: String) -> dubhe::Result<String>;
}

#[dubhe::service(interface = "org.apache.dubbo.demo.DemoService")]
pub(crate) trait Demo {
    async fn runtime(&self, name: String) -> dubhe::Result<String>;
    async fn add(&self, one: i32, other: i32) -> dubhe::Result<i32>;
    async fn record(&self, line: String) -> dubhe::Result<()>;
    async fn sleep(&self, millis: i64) -> dubhe::Result<String>;
    async fn reverse(&self, list: Vec<String>) -> dubhe::Result<Vec<String>>;
    async fn checked(&self, text: String) -> dubhe::Result<String>;
    async fn half(&self, number: f64) -> dubhe::Result<f64>;
    async fn not(&self, is_so: bool) -> dubhe::Result<bool>;
    #[dubhe(name = "over")]
    async fn over_number(&self, number: i32) -> dubhe::Result<String>;
    #[dubhe(name = "over")]
    async fn over_text(&self, text: String) -> dubhe::Result<String>;
    #[allow(clippy::too_many_arguments)] // so has the recorded one
    async fn boxed(
        &self,
        #[dubhe(java = "java.lang.Boolean")] a: Value,
        #[dubhe(java = "java.lang.Byte")] b: Value,
        #[dubhe(java = "java.lang.Character")] c: Value,
        #[dubhe(java = "java.lang.Short")] d: Value,
        #[dubhe(java = "java.lang.Integer")] e: Value,
        #[dubhe(java = "java.lang.Long")] f: Value,
        #[dubhe(java = "java.lang.Float")] g: Value,
        #[dubhe(java = "java.lang.Double")] h: Value,
    ) -> dubhe::Result<String>;
    async fn say_hello(&self, name: String) -> dubhe::Result<String>;
    #[allow(clippy::too_many_arguments)] // so has the recorded one
    async fn prims(
        &self,
        #[dubhe(java = "boolean")] a: Value,
        #[dubhe(java = "byte")] b: Value,
        #[dubhe(java = "char")] c: Value,
        #[dubhe(java = "short")] d: Value,
        #[dubhe(java = "int")] e: Value,
        #[dubhe(java = "long")] f: Value,
        #[dubhe(java = "float")] g: Value,
        #[dubhe(java = "double")] h: Value,
    ) -> dubhe::Result<String>;
    async fn echo_map(&self, #[dubhe(java = "java.util.Map")] map: Value) -> dubhe::Result<Value>;
    async fn echo_bytes(&self, #[dubhe(java = "byte[]")] bytes: Value) -> dubhe::Result<Value>;
    async fn echo_ints(&self, #[dubhe(java = "int[]")] ints: Value) -> dubhe::Result<Value>;
    async fn echo_strings(
        &self,
        #[dubhe(java = "java.lang.String[]")] strings: Value,
    ) -> dubhe::Result<Value>;
    async fn echo_user(
        &self,
        #[dubhe(java = "org.apache.dubbo.demo.User")] user: Value,
    ) -> dubhe::Result<Value>;
    async fn users(&self, count: i32) -> dubhe::Result<Value>;
    async fn echo_object(&self, #[dubhe(java = "java.lang.Object")] object: Value) -> dubhe::Result<Value>;
    async fn do_nothing(&self) -> dubhe::Result<()>;
    async fn add_decimal(
        &self,
        #[dubhe(java = "java.math.BigDecimal")] one: Value,
        #[dubhe(java = "java.math.BigDecimal")] other: Value,
    ) -> dubhe::Result<Value>;
    async fn null_string(&self) -> dubhe::Result<Option<String>>;
    async fn async_hello(&self, name: String) -> dubhe::Result<String>;
    async fn attachments(&self, key: String) -> dubhe::Result<String>;
    async fn next_level(
        &self,
        #[dubhe(java = "org.apache.dubbo.demo.Level")] level: Value,
    ) -> dubhe::Result<Value>;
    async fn echo_long(&self, #[dubhe(java = "java.lang.Long")] number: Value) -> dubhe::Result<i64>;
}

/// Greets; what else it has is there to be registered.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// Whether a call of `sleep` has come.
    pub(crate) sleeps: AtomicBool,
    /// Ends it.
    pub(crate) wake: Notify,
}

/// Methods that no test calls.
macro_rules! not_called {
    ($($name:ident($($argument:ident: $type:ty),*) -> $returns:ty;)*) => {
        $(
            async fn $name(&self, $($argument: $type),*) -> dubhe::Result<$returns> {
                $(drop($argument);)*
                Err(dubhe::Error::new(ErrorCode::Unknown, "no test calls this"))
            }
        )*
    };
}

impl Greet for Arc<Recorded> {
    async fn greet(&self, name: String) -> dubhe::Result<String> {
        Ok(format!("Hello {name}"))
    }
}

#[allow(clippy::drop_non_drop, dropping_copy_types)] // arguments that are not looked at
impl Demo for Arc<Recorded> {
    async fn say_hello(&self, name: String) -> dubhe::Result<String> {
        Ok(format!("Hello {name}"))
    }

    async fn sleep(&self, millis: i64) -> dubhe::Result<String> {
        let wake = self.wake.notified();
        self.sleeps.store(true, Ordering::SeqCst);
        wake.await;
        Ok(format!("slept {millis}"))
    }

    not_called! {
        runtime(name: String) -> String;
        add(one: i32, other: i32) -> i32;
        record(line: String) -> ();
        reverse(list: Vec<String>) -> Vec<String>;
        checked(text: String) -> String;
        half(number: f64) -> f64;
        not(is_so: bool) -> bool;
        over_number(number: i32) -> String;
        over_text(text: String) -> String;
        boxed(a: Value, b: Value, c: Value, d: Value, e: Value, f: Value, g: Value, h: Value) -> String;
        prims(a: Value, b: Value, c: Value, d: Value, e: Value, f: Value, g: Value, h: Value) -> String;
        echo_map(map: Value) -> Value;
        echo_bytes(bytes: Value) -> Value;
        echo_ints(ints: Value) -> Value;
        echo_strings(strings: Value) -> Value;
        echo_user(user: Value) -> Value;
        users(count: i32) -> Value;
        echo_object(object: Value) -> Value;
        do_nothing() -> ();
        add_decimal(one: Value, other: Value) -> Value;
        null_string() -> Option<String>;
        async_hello(name: String) -> String;
        attachments(key: String) -> String;
        next_level(level: Value) -> Value;
        echo_long(number: Value) -> i64;
    }
}
