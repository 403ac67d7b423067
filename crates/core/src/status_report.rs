//! Layer 5, monitor: what became of registrations, of addresses and of migrations, for those who follow a whole fleet.

use std::fmt::Debug;

use dubhe_common::Url;
use serde::Serialize;

use crate::migration::MigrationStep;

/// Receives reports of an application's status (`FrameworkStatusReporter`).
///
/// Called one report at a time per reference or export, never on the path of a call. A reporter should return soon: the next report of the
/// same reference, and the export that is reported, wait for it. One that panics misses that report, and nothing else suffers.
pub trait StatusReporter: Send + Sync + Debug {
    /// Takes a report.
    fn report(&self, report: &StatusReport);
}

/// One report. Its text form, [`StatusReport::to_json`], is that of Dubbo, for consoles that know it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatusReport {
    /// A service was registered at a registry.
    Registration {
        /// The application's name.
        application: String,
        /// The register mode of the registry: `all`, `interface` or `instance`.
        status: String,
    },
    /// The calls of a reference go first to the addresses of the one or the other discovery.
    Consumption {
        /// Which reference.
        reference: Reference,
        /// Where its calls go first.
        status: Consumed,
    },
    /// A migration step was reached, or could not be.
    Migration {
        /// Which reference.
        reference: Reference,
        /// The step that was in force before; `None` at first.
        origin_step: Option<MigrationStep>,
        /// The step that was wanted.
        new_step: MigrationStep,
        /// Whether it was reached.
        success: bool,
    },
}

/// Which reference a report is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The consumer application's name.
    pub application: String,
    /// The interface.
    pub service: String,
    /// Version of the service.
    pub version: Option<String>,
    /// Group of the service.
    pub group: Option<String>,
}

/// Whose addresses are consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consumed {
    /// Those of interface-level discovery: `interface`.
    Interface,
    /// Those of application-level discovery: `app`.
    Application,
}

impl StatusReport {
    /// [`StatusReport::kind`] of [`StatusReport::Registration`].
    pub const REGISTRATION: &'static str = "registration";
    /// [`StatusReport::kind`] of [`StatusReport::Consumption`].
    pub const CONSUMPTION: &'static str = "consumption";
    /// [`StatusReport::kind`] of [`StatusReport::Migration`].
    pub const MIGRATION: &'static str = "migrationStepStatus";

    /// The name of the kind, by which Java's reporters get a report.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Registration { .. } => Self::REGISTRATION,
            Self::Consumption { .. } => Self::CONSUMPTION,
            Self::Migration { .. } => Self::MIGRATION,
        }
    }

    /// The JSON text that `FrameworkStatusReportService` makes, its fields in the order of Java's hash map.
    ///
    /// As there, all values are texts, a version or group that is not set is left out, the first step comes from the text `null`, and a
    /// registration does not name its kind.
    pub fn to_json(&self) -> String {
        let json = match self {
            Self::Registration { application, status } => {
                serde_json::to_string(&RegistrationFields { application, status })
            }
            Self::Consumption { reference, status } => serde_json::to_string(&ConsumptionFields {
                application: &reference.application,
                service: &reference.service,
                r#type: self.kind(),
                version: reference.version.as_deref(),
                group: reference.group.as_deref(),
                status: status.name(),
            }),
            Self::Migration { reference, origin_step, new_step, success } => {
                serde_json::to_string(&MigrationFields {
                    origin_step: origin_step.map_or("null", MigrationStep::name),
                    application: &reference.application,
                    service: &reference.service,
                    success: if *success { "true" } else { "false" },
                    new_step: new_step.name(),
                    r#type: self.kind(),
                    version: reference.version.as_deref(),
                    group: reference.group.as_deref(),
                })
            }
        };
        json.expect("texts have a JSON form")
    }
}

impl Reference {
    /// The reference with this consumer URL.
    pub fn of(consumer: &Url) -> Self {
        let set = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        Self {
            application: consumer.application().unwrap_or_default().to_owned(),
            service: consumer.service_interface().to_owned(),
            version: set(consumer.version()),
            group: set(consumer.group()),
        }
    }
}

impl Consumed {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interface => "interface",
            Self::Application => "app",
        }
    }
}

#[derive(Serialize)]
struct RegistrationFields<'a> {
    application: &'a str,
    status: &'a str,
}

#[derive(Serialize)]
struct ConsumptionFields<'a> {
    application: &'a str,
    service: &'a str,
    r#type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    status: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MigrationFields<'a> {
    origin_step: &'a str,
    application: &'a str,
    service: &'a str,
    success: &'a str,
    new_step: &'a str,
    r#type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(params: &str) -> Reference {
        let url =
            format!("consumer://192.0.2.9/demo.Greeter?interface=demo.Greeter&application=shop{params}");
        Reference::of(&Url::parse(&url).unwrap())
    }

    #[test]
    fn the_text_of_each_kind_is_that_of_dubbo() {
        let full = reference("&version=1.0.0&group=g");
        let registration =
            StatusReport::Registration { application: "shop".to_owned(), status: "all".to_owned() };
        assert_eq!(registration.to_json(), r#"{"application":"shop","status":"all"}"#);
        assert_eq!(registration.kind(), "registration");
        let consumption =
            StatusReport::Consumption { reference: full.clone(), status: Consumed::Application };
        assert_eq!(
            consumption.to_json(),
            r#"{"application":"shop","service":"demo.Greeter","type":"consumption","version":"1.0.0","group":"g","status":"app"}"#
        );
        let migration = StatusReport::Migration {
            reference: full,
            origin_step: Some(MigrationStep::ForceInterface),
            new_step: MigrationStep::ForceApplication,
            success: true,
        };
        assert_eq!(
            migration.to_json(),
            r#"{"originStep":"FORCE_INTERFACE","application":"shop","service":"demo.Greeter","success":"true","newStep":"FORCE_APPLICATION","type":"migrationStepStatus","version":"1.0.0","group":"g"}"#
        );
    }

    #[test]
    fn what_is_not_set_is_left_out_and_the_first_step_comes_from_null() {
        let consumption =
            StatusReport::Consumption { reference: reference("&group="), status: Consumed::Interface };
        assert_eq!(
            consumption.to_json(),
            r#"{"application":"shop","service":"demo.Greeter","type":"consumption","status":"interface"}"#
        );
        let migration = StatusReport::Migration {
            reference: reference(""),
            origin_step: None,
            new_step: MigrationStep::ApplicationFirst,
            success: false,
        };
        assert_eq!(
            migration.to_json(),
            r#"{"originStep":"null","application":"shop","service":"demo.Greeter","success":"false","newStep":"APPLICATION_FIRST","type":"migrationStepStatus"}"#
        );
    }

    #[test]
    fn names_are_escaped_as_json_wants_it() {
        let report =
            StatusReport::Registration { application: "a\"b\n".to_owned(), status: "all".to_owned() };
        assert_eq!(report.to_json(), r#"{"application":"a\"b\n","status":"all"}"#);
    }
}
