//! Service traits and Java classes from annotated Rust items. Use them through the facade: `#[dubhe::service]`,
//! `#[dubhe::java_class]`.

mod attributes;
mod java_class;
mod service;

use proc_macro::TokenStream;

/// Makes a Dubbo service of a trait: a typed client for consumers, a service object for providers.
///
/// ```text
/// #[dubhe::service(interface = "com.example.Greeter", version = "1.0.0", group = "g1")]
/// pub trait Greeter {
///     async fn say_hello(&self, name: String) -> dubhe::Result<String>;
///
///     #[dubhe(name = "log", one_way)]
///     async fn record(&self, #[dubhe(java = "java.lang.Object")] line: String) -> dubhe::Result<()>;
/// }
/// ```
///
/// Generates `GreeterClient` (implements the trait; made by the facade's `refer`) and `GreeterService` (put an implementation of the
/// trait in, give it to the facade's `export`). Method names become lowerCamelCase unless `name` says otherwise. Parameter types
/// become Java types as `dubhe::JavaType` says unless `java` on a parameter says otherwise. Parameters are taken by value, up to twelve.
/// Every method is `async` and returns `dubhe::Result<T>`.
#[proc_macro_attribute]
pub fn service(arguments: TokenStream, item: TokenStream) -> TokenStream {
    service::expand(arguments.into(), item.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Maps a struct or an enum of unit variants to a Java class.
///
/// ```text
/// #[dubhe::java_class("com.example.User")]
/// #[derive(Clone, Debug)]
/// pub struct User {
///     name: String,
///     home_address: Option<Address>, // field homeAddress
/// }
/// ```
///
/// Derives serde's `Serialize` and `Deserialize` with the class as the name and fields in camelCase (enum constants as written), and
/// implements `dubhe::JavaType`. Fields that a peer does not send take their default when they are `Option`s or carry
/// `#[serde(default)]`; unknown fields are skipped. Serde's field attributes work as usual.
#[proc_macro_attribute]
pub fn java_class(arguments: TokenStream, item: TokenStream) -> TokenStream {
    java_class::expand(arguments.into(), item.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}
