//! A provider of both services.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use dubhe::config::ProtocolConfig;
use dubhe::java::{Array, BigDecimal, BigInteger, Date, IntArray, JavaBytes, LocalDate, LocalDateTime, Set};
use dubhe::{Dubhe, Exception, Export, Url, Value, context};

use crate::api::{Color, Echo, EchoService, Greet, GreetService, User};
use crate::options::{Application, Identity};
use crate::{end, fixtures, out};

/// How many recorded texts are kept.
const RECORDS: usize = 1_000;

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    application: Application,
    #[command(flatten)]
    identity: Identity,
    /// What `who()` answers, with the process number.
    #[arg(long, default_value = "rust")]
    name: String,
    #[arg(long, default_value_t = 20_880)]
    port: u16,
    /// Address to listen on and to register.
    #[arg(long)]
    host: Option<String>,
    #[arg(long)]
    weight: Option<u32>,
    #[arg(long)]
    token: Option<String>,
    /// `greet`: GreetService is exported only when a line comes from standard input.
    #[arg(long)]
    later: Option<String>,
    /// Longest wait for calls at the end, milliseconds.
    #[arg(long, default_value_t = 3_000)]
    shutdown_wait: u64,
}

pub(crate) async fn run(options: Options) -> Result<ExitCode> {
    let mut end = end::listen(options.application.watches_input())?;
    let dubhe = options
        .application
        .builder("demo-provider")
        .protocol(ProtocolConfig { host: options.host.clone(), ..ProtocolConfig::dubbo(options.port) })
        .shutdown_wait(Duration::from_millis(options.shutdown_wait))
        .start()
        .await?;
    let peer = Peer { name: options.name.clone().into(), records: Arc::default() };

    let url = options.export_echo(&dubhe, peer.clone()).await?;
    if options.later.is_none() {
        options.export_greet(&dubhe, peer.clone()).await?;
    }
    dubhe.announce().await?;
    out::line(&format!("READY provider {} {} {}", options.name, std::process::id(), url.port()));

    if options.later.is_some() && end.line().await.is_some() {
        options.export_greet(&dubhe, peer).await?;
        out::line("EXPORTED greet");
    }
    end.asked().await;
    dubhe.shutdown().await;
    out::line("STOPPED");
    Ok(ExitCode::SUCCESS)
}

impl Options {
    async fn export_echo(&self, dubhe: &Dubhe, peer: Peer) -> Result<Url> {
        let mut echo = self.configure(dubhe.service(EchoService::new(peer)));
        if let Some(group) = &self.identity.group {
            echo = echo.group(group);
        }
        if let Some(version) = &self.identity.version {
            echo = echo.version(version);
        }
        echo.export().await?.urls().pop().context("the export has no URL")
    }

    async fn export_greet(&self, dubhe: &Dubhe, peer: Peer) -> Result<()> {
        self.configure(dubhe.service(GreetService::new(peer)))
            .group(&self.identity.greet_group)
            .version(&self.identity.greet_version)
            .export()
            .await?;
        Ok(())
    }

    fn configure<'a>(&self, mut export: Export<'a>) -> Export<'a> {
        for (key, value) in &self.identity.params {
            export = export.param(key, value);
        }
        if let Some(weight) = self.weight {
            export = export.weight(weight);
        }
        if let Some(token) = &self.token {
            export = export.param("token", token);
        }
        export
    }
}

/// Both services.
#[derive(Clone, Debug)]
struct Peer {
    name: Arc<str>,
    records: Arc<Mutex<VecDeque<Option<String>>>>,
}

impl Peer {
    fn identity(&self) -> String {
        format!("{}#{}", self.name, std::process::id())
    }
}

impl Greet for Peer {
    async fn greet(&self, name: String) -> dubhe::Result<String> {
        Ok(format!("hello, {name}"))
    }

    async fn who(&self) -> dubhe::Result<String> {
        Ok(self.identity())
    }
}

macro_rules! echoes {
    ($($method:ident: $type:ty;)*) => {$(
        async fn $method(&self, value: $type) -> dubhe::Result<$type> {
            Ok(value)
        }
    )*};
}

impl Echo for Peer {
    echoes! {
        echo_string: Option<String>;
        echo_boolean: bool;
        echo_byte: i8;
        echo_short: i16;
        echo_int: i32;
        echo_long: i64;
        echo_float: f32;
        echo_double: f64;
        echo_boxed_boolean: Option<bool>;
        echo_boxed_byte: Option<i8>;
        echo_boxed_short: Option<i16>;
        echo_boxed_int: Option<i32>;
        echo_boxed_long: Option<i64>;
        echo_boxed_float: Option<f32>;
        echo_boxed_double: Option<f64>;
        echo_bytes: Option<JavaBytes>;
        echo_int_array: IntArray;
        echo_string_array: Array<Option<String>>;
        echo_date: Option<Date>;
        echo_local_date: Option<LocalDate>;
        echo_local_date_time: Option<LocalDateTime>;
        echo_big_decimal: Option<BigDecimal>;
        echo_big_integer: Option<BigInteger>;
        echo_string_list: Option<Vec<Option<String>>>;
        echo_long_list: Option<Vec<Option<i64>>>;
        echo_user_list: Option<Vec<Option<User>>>;
        echo_string_set: Option<Set<String>>;
        echo_object_map: Option<HashMap<String, Value>>;
        echo_long_map: Option<BTreeMap<String, i64>>;
        echo_color: Option<Color>;
        echo_user: Option<User>;
        echo_node: Value;
    }

    async fn join(&self, text: Option<String>, number: i32, big: i64, flag: bool) -> dubhe::Result<String> {
        Ok(format!("{}/{number}/{big}/{flag}", text.as_deref().unwrap_or("null")))
    }

    async fn return_null(&self) -> dubhe::Result<Option<String>> {
        Ok(None)
    }

    async fn ping(&self) -> dubhe::Result<()> {
        Ok(())
    }

    async fn throw_checked(&self, message: String, code: i32) -> dubhe::Result<()> {
        let exception = Exception::new("dev.dubhe.interop.api.DemoException", message)
            .with_field("code", code)
            .with_field("reason", "asked for");
        Err(exception.into())
    }

    async fn throw_illegal_argument(&self, message: String) -> dubhe::Result<Option<String>> {
        Err(Exception::new("java.lang.IllegalArgumentException", message).into())
    }

    async fn throw_runtime(&self, message: String, code: i32) -> dubhe::Result<Option<String>> {
        let exception = Exception::new("dev.dubhe.interop.api.DemoRuntimeException", message);
        Err(exception.with_field("code", code).into())
    }

    /// A class that no signature names cannot be read everywhere: it goes as a RuntimeException that says its name, as Java's
    /// ExceptionFilter does for classes that consumers may not have.
    async fn throw_undeclared(&self, message: String) -> dubhe::Result<Option<String>> {
        let undeclared = Exception::new("dev.dubhe.interop.api.UndeclaredException", message);
        Err(Exception::new("java.lang.RuntimeException", undeclared.to_string()).into())
    }

    async fn attachments(&self) -> dubhe::Result<BTreeMap<String, String>> {
        let all = context::attachments();
        let seen: BTreeMap<String, String> = all
            .iter()
            .filter(|(key, _)| key.starts_with("demo."))
            .map(|(key, value)| (key.to_owned(), value.to_java_text()))
            .collect();
        context::set_response_attachment("demo.answer", format!("from {}", self.name));
        context::set_response_attachment("demo.count", seen.len().to_string());
        Ok(seen)
    }

    async fn record(&self, text: Option<String>) -> dubhe::Result<()> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.push_back(text);
        if records.len() > RECORDS {
            records.pop_front();
        }
        Ok(())
    }

    async fn recorded(&self) -> dubhe::Result<Vec<Option<String>>> {
        Ok(self.records.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect())
    }

    async fn sleep(&self, millis: i32) -> dubhe::Result<i32> {
        tokio::time::sleep(Duration::from_millis(u64::try_from(millis).unwrap_or(0))).await;
        Ok(millis)
    }

    async fn who(&self) -> dubhe::Result<String> {
        Ok(self.identity())
    }

    async fn big(&self, size: i32) -> dubhe::Result<JavaBytes> {
        match usize::try_from(size) {
            Ok(size) => Ok(fixtures::pattern(size)),
            Err(_) => Err(Exception::new("java.lang.NegativeArraySizeException", size.to_string()).into()),
        }
    }
}
