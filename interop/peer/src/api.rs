//! The services and classes of `dev.dubhe.interop.api`, as a Rust program declares them.

use std::collections::{BTreeMap, HashMap};

use dubhe::java::{Array, BigDecimal, BigInteger, Date, IntArray, JavaBytes, LocalDate, LocalDateTime, Set};
use dubhe::{Result, Value};

/// Class of the bean that can point at itself. Its shape is what counts, so it stays a [`Value`].
pub(crate) const NODE: &str = "dev.dubhe.interop.api.Node";

/// The service of the matrix. Each `echo` method answers its argument.
#[dubhe::service(interface = "dev.dubhe.interop.api.EchoService")]
pub(crate) trait Echo {
    async fn echo_string(&self, value: Option<String>) -> Result<Option<String>>;
    async fn echo_boolean(&self, value: bool) -> Result<bool>;
    async fn echo_byte(&self, value: i8) -> Result<i8>;
    async fn echo_short(&self, value: i16) -> Result<i16>;
    async fn echo_int(&self, value: i32) -> Result<i32>;
    async fn echo_long(&self, value: i64) -> Result<i64>;
    async fn echo_float(&self, value: f32) -> Result<f32>;
    async fn echo_double(&self, value: f64) -> Result<f64>;
    async fn echo_boxed_boolean(&self, value: Option<bool>) -> Result<Option<bool>>;
    async fn echo_boxed_byte(&self, value: Option<i8>) -> Result<Option<i8>>;
    async fn echo_boxed_short(&self, value: Option<i16>) -> Result<Option<i16>>;
    async fn echo_boxed_int(&self, value: Option<i32>) -> Result<Option<i32>>;
    async fn echo_boxed_long(&self, value: Option<i64>) -> Result<Option<i64>>;
    async fn echo_boxed_float(&self, value: Option<f32>) -> Result<Option<f32>>;
    async fn echo_boxed_double(&self, value: Option<f64>) -> Result<Option<f64>>;
    async fn echo_bytes(&self, value: Option<JavaBytes>) -> Result<Option<JavaBytes>>;
    async fn echo_int_array(&self, value: IntArray) -> Result<IntArray>;
    async fn echo_string_array(&self, value: Array<Option<String>>) -> Result<Array<Option<String>>>;
    async fn echo_date(&self, value: Option<Date>) -> Result<Option<Date>>;
    async fn echo_local_date(&self, value: Option<LocalDate>) -> Result<Option<LocalDate>>;
    async fn echo_local_date_time(&self, value: Option<LocalDateTime>) -> Result<Option<LocalDateTime>>;
    async fn echo_big_decimal(&self, value: Option<BigDecimal>) -> Result<Option<BigDecimal>>;
    async fn echo_big_integer(&self, value: Option<BigInteger>) -> Result<Option<BigInteger>>;
    async fn echo_string_list(
        &self,
        value: Option<Vec<Option<String>>>,
    ) -> Result<Option<Vec<Option<String>>>>;
    async fn echo_long_list(&self, value: Option<Vec<Option<i64>>>) -> Result<Option<Vec<Option<i64>>>>;
    async fn echo_user_list(&self, value: Option<Vec<Option<User>>>) -> Result<Option<Vec<Option<User>>>>;
    async fn echo_string_set(&self, value: Option<Set<String>>) -> Result<Option<Set<String>>>;
    async fn echo_object_map(
        &self,
        value: Option<HashMap<String, Value>>,
    ) -> Result<Option<HashMap<String, Value>>>;
    async fn echo_long_map(
        &self,
        value: Option<BTreeMap<String, i64>>,
    ) -> Result<Option<BTreeMap<String, i64>>>;
    async fn echo_color(&self, value: Option<Color>) -> Result<Option<Color>>;
    async fn echo_user(&self, value: Option<User>) -> Result<Option<User>>;
    async fn echo_node(&self, #[dubhe(java = "dev.dubhe.interop.api.Node")] value: Value) -> Result<Value>;

    async fn join(&self, text: Option<String>, number: i32, big: i64, flag: bool) -> Result<String>;
    async fn return_null(&self) -> Result<Option<String>>;
    async fn ping(&self) -> Result<()>;
    async fn throw_checked(&self, message: String, code: i32) -> Result<()>;
    async fn throw_illegal_argument(&self, message: String) -> Result<Option<String>>;
    async fn throw_runtime(&self, message: String, code: i32) -> Result<Option<String>>;
    async fn throw_undeclared(&self, message: String) -> Result<Option<String>>;
    async fn attachments(&self) -> Result<BTreeMap<String, String>>;
    #[dubhe(one_way)]
    async fn record(&self, text: Option<String>) -> Result<()>;
    async fn recorded(&self) -> Result<Vec<Option<String>>>;
    async fn sleep(&self, millis: i32) -> Result<i32>;
    async fn who(&self) -> Result<String>;
    async fn big(&self, size: i32) -> Result<JavaBytes>;
}

/// A second service, with group and version.
#[dubhe::service(interface = "dev.dubhe.interop.api.GreetService", group = "g1", version = "1.0.0")]
pub(crate) trait Greet {
    async fn greet(&self, name: String) -> Result<String>;
    async fn who(&self) -> Result<String>;
}

#[dubhe::java_class("dev.dubhe.interop.api.User")]
#[derive(Clone, Debug, Default, PartialEq)]
#[serde(default)]
pub(crate) struct User {
    pub(crate) name: Option<String>,
    pub(crate) age: i32,
    pub(crate) id: Option<i64>,
    pub(crate) active: bool,
    pub(crate) score: Option<f64>,
    pub(crate) color: Option<Color>,
    pub(crate) birthday: Option<Date>,
    pub(crate) balance: Option<BigDecimal>,
    pub(crate) address: Option<Address>,
    pub(crate) tags: Option<Vec<Option<String>>>,
    pub(crate) counters: Option<BTreeMap<String, i64>>,
    pub(crate) history: Option<Vec<Address>>,
    pub(crate) photo: Option<JavaBytes>,
    pub(crate) since: Option<LocalDate>,
    pub(crate) nickname: Option<String>,
}

#[dubhe::java_class("dev.dubhe.interop.api.Address")]
#[derive(Clone, Debug, Default, PartialEq)]
#[serde(default)]
pub(crate) struct Address {
    pub(crate) street: Option<String>,
    pub(crate) city: Option<String>,
    pub(crate) zip: i32,
}

#[dubhe::java_class("dev.dubhe.interop.api.Color")]
#[derive(Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Color {
    Red,
    Green,
    Blue,
}
