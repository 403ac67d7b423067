//! Reading of configuration: a YAML file, then environment variables over it.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;

use crate::application::DubboConfig;
use crate::protocol::ProtocolConfig;
use crate::registry::RegistryConfig;

/// Largest configuration file that is read.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration file {path} cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is larger than [`MAX_FILE_BYTES`].
    #[error(
        "the configuration file {path} has {bytes} bytes, more than {MAX_FILE_BYTES}: is it the right file?"
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// The text is not YAML, or a key or value in it is wrong. The text says which, where, and what is known.
    #[error("{origin}: {reason}")]
    Malformed {
        /// The file, or `the configuration text`.
        origin: String,
        /// What is wrong, with line and column.
        reason: String,
    },
    /// An environment variable has a value that its setting does not take.
    #[error("the environment variable {name}={value} is not {expected}")]
    Environment {
        /// The variable.
        name: String,
        /// Its value.
        value: String,
        /// What it takes.
        expected: &'static str,
    },
}

/// Other sections of the file belong to other programs.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    dubbo: DubboConfig,
}

impl DubboConfig {
    /// Reads the `dubbo` section of a YAML text; other sections are left alone.
    ///
    /// Errors: not YAML; a key that no section has (with the known ones); a value of the wrong kind. All with line and column.
    pub fn from_yaml(text: &str) -> Result<Self, ConfigError> {
        Self::parse(text, "the configuration text")
    }

    /// Reads a YAML file.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let failed = |source| ConfigError::Read { path: path.to_owned(), source };
        let bytes = std::fs::metadata(path).map_err(failed)?.len();
        if bytes > MAX_FILE_BYTES {
            return Err(ConfigError::TooLarge { path: path.to_owned(), bytes });
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        Self::parse(&text, &path.display().to_string())
    }

    fn parse(text: &str, origin: &str) -> Result<Self, ConfigError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        // No excerpts of the file in errors: a password may stand next to the mistake.
        serde_saphyr::from_str_with_options::<Document>(text, serde_saphyr::options! { with_snippet: false })
            .map(|document| document.dubbo)
            .map_err(|error| ConfigError::Malformed { origin: origin.to_owned(), reason: error.to_string() })
    }

    /// Lays `DUBBO_*` environment variables over the configuration: `DUBBO_APPLICATION_NAME`, `DUBBO_APPLICATION_REGISTER_MODE`,
    /// `DUBBO_APPLICATION_METADATA_TYPE`, `DUBBO_APPLICATION_MIGRATION_STEP`, `DUBBO_REGISTRY_ADDRESS`,
    /// `DUBBO_REGISTRY_GROUP`, `DUBBO_REGISTRY_USERNAME`, `DUBBO_REGISTRY_PASSWORD`, `DUBBO_REGISTRY_CHECK`, `DUBBO_PROTOCOL_HOST`,
    /// `DUBBO_CONFIG_CENTER_ADDRESS`, `DUBBO_METADATA_REPORT_ADDRESS`, `DUBBO_PROTOCOL_PORT`, `DUBBO_CONSUMER_TIMEOUT`, `DUBBO_CONSUMER_RETRIES`, `DUBBO_CONSUMER_CHECK`, `DUBBO_PROVIDER_TOKEN`.
    /// Other variables are not looked at; empty ones count as not set.
    pub fn with_environment(
        mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        for (name, value) in variables {
            let value = value.trim();
            if value.is_empty() {
                continue;
            }
            let text = || Some(value.to_owned());
            match name.as_str() {
                "DUBBO_APPLICATION_NAME" => self.application.name = value.to_owned(),
                "DUBBO_APPLICATION_REGISTER_MODE" => self.application.register_mode = text(),
                "DUBBO_APPLICATION_METADATA_TYPE" => self.application.metadata_type = text(),
                "DUBBO_APPLICATION_MIGRATION_STEP" => self.application.migration.step = text(),
                "DUBBO_CONFIG_CENTER_ADDRESS" => {
                    self.config_center.get_or_insert_default().address = value.to_owned()
                }
                "DUBBO_METADATA_REPORT_ADDRESS" => {
                    self.metadata_report.get_or_insert_default().address = value.to_owned()
                }
                "DUBBO_REGISTRY_ADDRESS" => self.registry_mut().address = value.to_owned(),
                "DUBBO_REGISTRY_GROUP" => self.registry_mut().group = text(),
                "DUBBO_REGISTRY_USERNAME" => self.registry_mut().username = text(),
                "DUBBO_REGISTRY_PASSWORD" => self.registry_mut().password = text(),
                "DUBBO_REGISTRY_CHECK" => {
                    self.registry_mut().check = Some(parse(&name, value, "true or false")?)
                }
                "DUBBO_PROTOCOL_HOST" => self.protocol_mut().host = text(),
                "DUBBO_PROTOCOL_PORT" => {
                    self.protocol_mut().port = Some(parse(&name, value, "a port number")?)
                }
                "DUBBO_CONSUMER_TIMEOUT" => {
                    self.consumer.timeout = Some(parse(&name, value, "a number of milliseconds")?)
                }
                "DUBBO_CONSUMER_RETRIES" => self.consumer.retries = Some(parse(&name, value, "a number")?),
                "DUBBO_CONSUMER_CHECK" => self.consumer.check = Some(parse(&name, value, "true or false")?),
                "DUBBO_PROVIDER_TOKEN" => self.provider.token = text(),
                _ => {}
            }
        }
        Ok(self)
    }

    fn registry_mut(&mut self) -> &mut RegistryConfig {
        self.registry.get_or_insert_default()
    }

    fn protocol_mut(&mut self) -> &mut ProtocolConfig {
        self.protocol.get_or_insert_default()
    }
}

fn parse<T: FromStr>(name: &str, value: &str, expected: &'static str) -> Result<T, ConfigError> {
    value.parse().map_err(|_| ConfigError::Environment {
        name: name.to_owned(),
        value: value.to_owned(),
        expected,
    })
}
