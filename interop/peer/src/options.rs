//! Options of all programs, named as in Java.

use clap::Args;
use dubhe::config::RegistryConfig;
use dubhe::{Dubhe, DubheBuilder};

/// Where the registry is, and who we are.
#[derive(Debug, Args)]
pub(crate) struct Application {
    /// Address of the registry; none by default.
    #[arg(long)]
    registry: Option<String>,
    /// Root of the registry's tree.
    #[arg(long)]
    registry_group: Option<String>,
    /// Milliseconds.
    #[arg(long, default_value_t = 10_000)]
    registry_timeout: u64,
    /// Name of the application.
    #[arg(long)]
    app: Option<String>,
    /// Which models of discovery services are registered for: `interface`, `instance` or `all`.
    #[arg(long, default_value = "interface")]
    register_mode: String,
    /// Where consumers find the metadata of this application's instance: `local` or `remote`.
    #[arg(long, default_value = "local")]
    metadata: String,
    /// Port of the metadata service; by default that of the services.
    #[arg(long)]
    metadata_port: Option<u16>,
    /// `FORCE_INTERFACE`, `APPLICATION_FIRST` or `FORCE_APPLICATION`, for all references.
    #[arg(long)]
    migration: Option<String>,
    /// `ignore`: the end of standard input does not stop the program.
    #[arg(long, default_value = "watch")]
    stdin: String,
}

impl Application {
    pub(crate) fn builder(&self, name: &str) -> DubheBuilder {
        let mut builder = Dubhe::builder(self.app.as_deref().unwrap_or(name));
        let application = &mut builder.config().application;
        application.register_mode = Some(self.register_mode.clone());
        application.metadata_type = Some(self.metadata.clone());
        application.metadata_service_port = self.metadata_port;
        application.migration.step.clone_from(&self.migration);
        let Some(address) = &self.registry else { return builder };
        builder.registry_config(RegistryConfig {
            group: self.registry_group.clone(),
            timeout: Some(self.registry_timeout),
            ..RegistryConfig::at(address)
        })
    }

    pub(crate) fn watches_input(&self) -> bool {
        self.stdin != "ignore"
    }
}

/// Group and version of both services.
#[derive(Debug, Args)]
pub(crate) struct Identity {
    /// Of EchoService.
    #[arg(long)]
    pub(crate) group: Option<String>,
    /// Of EchoService.
    #[arg(long)]
    pub(crate) version: Option<String>,
    #[arg(long, default_value = "g1")]
    pub(crate) greet_group: String,
    #[arg(long, default_value = "1.0.0")]
    pub(crate) greet_version: String,
    /// `key=value`: a parameter of the URLs; any number.
    #[arg(long = "param", value_parser = pair)]
    pub(crate) params: Vec<(String, String)>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("wants key=value")?;
    Ok((key.to_owned(), value.to_owned()))
}
