//! The service that all examples share: as a Java fleet would define it in an interface.

/// `dev.dubhe.demo.Greeter`.
#[dubhe::service(interface = "dev.dubhe.demo.Greeter")]
pub trait Greeter {
    /// Greets, and tells who greeted.
    async fn say_hello(&self, name: String) -> dubhe::Result<Greeting>;
}

/// What a greeter says.
#[dubhe::java_class("dev.dubhe.demo.Greeting")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The text.
    pub text: String,
    /// Name of the provider.
    pub provider: String,
}

/// A greeter with a name.
#[derive(Debug)]
pub struct Named(pub String);

impl Greeter for Named {
    async fn say_hello(&self, name: String) -> dubhe::Result<Greeting> {
        Ok(Greeting { text: format!("Hello {name}"), provider: self.0.clone() })
    }
}
