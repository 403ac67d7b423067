//! `java.time` in the compact mode of later hessian-lite releases: a class without fields whose instances are
//! followed by one long. Every other class without fields has nothing after it, so these two are told by name.

use std::sync::Arc;

use dubhe_core::value::Value;
use dubhe_core::value::java::{LocalDate, LocalTime};
use dubhe_core::value::to_value;

use super::{Class, Reader, Result};

#[derive(Clone, Copy)]
pub(super) enum Compact {
    /// `java.time.LocalDate`: days since the epoch.
    Date,
    /// `java.time.LocalTime`: nanoseconds of the day.
    Time,
}

impl Class {
    pub(super) fn compact(&self) -> Option<Compact> {
        if !self.fields.is_empty() {
            return None;
        }
        match &*self.name {
            "java.time.LocalDate" => Some(Compact::Date),
            "java.time.LocalTime" => Some(Compact::Time),
            _ => None,
        }
    }

    /// How many values follow the head of an instance.
    pub(super) fn values(&self) -> usize {
        if self.compact().is_some() { 1 } else { self.fields.len() }
    }
}

impl Reader {
    /// The long after the head of an instance, as the usual form of the type.
    pub(super) fn compact(&mut self, class: &Arc<Class>, form: Compact) -> Result<Value> {
        let at = self.at;
        let (_, head) = self.head()?;
        let number = match head {
            super::head::Head::Long(number) => number,
            super::head::Head::Int(number) => i64::from(number),
            other => {
                return Err(self.error(at, format_args!("{} holds {}, not a long", class.name, other.kind())));
            }
        };
        let wrong = || self.error(at, format_args!("{number} is no {}", class.name));
        match form {
            Compact::Date => to_value(&LocalDate::from_epoch_day(number).ok_or_else(wrong)?),
            Compact::Time => to_value(&LocalTime::from_nano_of_day(number).ok_or_else(wrong)?),
        }
    }
}
