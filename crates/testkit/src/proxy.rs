//! A TCP proxy that breaks on demand.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::port::Port;

/// Bytes read at once.
const CHUNK: usize = 16 * 1024;

/// Chunks that may be under way in one direction of one connection while a delay holds them.
const IN_FLIGHT: usize = 1_024;

/// Stands between a client and a server on 127.0.0.1, passes bytes on, and can stop doing so in several ways.
///
/// Faults hold until they are taken back. Dropping the value closes everything.
#[derive(Debug)]
pub struct BreakableProxy {
    port: Port,
    shared: Arc<Shared>,
    listening: Mutex<Option<JoinHandle<()>>>,
}

impl BreakableProxy {
    /// Starts a proxy before `target` (`host:port`), on a free port of 127.0.0.1.
    ///
    /// When the target refuses, the proxy has accepted the client already: the client sees its connection reset.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(target: impl Into<String>) -> Result<Self> {
        let port = Port::lease()?;
        let shared = Arc::new(Shared {
            target: target.into(),
            faults: watch::Sender::new(Faults::default()),
            counts: watch::Sender::new(Counts::default()),
            connections: Mutex::default(),
        });
        let proxy = Self { port, shared, listening: Mutex::new(None) };
        proxy.accept().await?;
        Ok(proxy)
    }

    /// `127.0.0.1:port`: what the client connects to.
    pub fn address(&self) -> String {
        self.port.address()
    }

    /// [`Self::address`] as a value.
    pub fn socket_address(&self) -> SocketAddr {
        self.port.socket_address().into()
    }

    /// Resets every connection (RST to both sides) and returns when that is done. New ones are welcome at once.
    pub async fn cut(&self) {
        let mut connections = std::mem::take(&mut *self.shared.tasks());
        connections.shutdown().await;
    }

    /// Refuses new connections from now on, as a port without a listener does. Open ones live on.
    pub async fn refuse(&self) {
        let listening = self.listening().take();
        if let Some(task) = listening {
            task.abort();
            let _ = task.await;
        }
    }

    /// Takes [`Self::refuse`] back.
    ///
    /// # Errors
    /// When the port was lost to somebody else meanwhile.
    pub async fn accept(&self) -> Result<()> {
        if self.listening().is_some() {
            return Ok(());
        }
        let address = self.address();
        let listener =
            TcpListener::bind(&address).await.with_context(|| format!("cannot listen on {address}"))?;
        *self.listening() = Some(tokio::spawn(accept_all(listener, Arc::clone(&self.shared))));
        Ok(())
    }

    /// While on, swallows all bytes of both directions, closes included: the connections look alive and say nothing.
    /// New ones are accepted, and their bytes swallowed too. A connection that lost bytes is no good afterwards; it
    /// goes on swallowing until one side gives up or [`Self::cut`]. To lose nothing, see [`Self::hold`].
    pub fn blackhole(&self, on: bool) {
        self.shared.faults.send_modify(|faults| faults.swallow = on);
    }

    /// While on, keeps the bytes of both directions back, as a network does that is interrupted and heals: they
    /// arrive, in order, when it is switched off.
    pub fn hold(&self, on: bool) {
        self.shared.faults.send_modify(|faults| faults.hold = on);
    }

    /// Delays every byte in both directions by this much; throughput stays. Zero takes it back.
    pub fn delay(&self, delay: Duration) {
        self.delay_to_target(delay);
        self.delay_to_client(delay);
    }

    /// Delays bytes from client to server.
    pub fn delay_to_target(&self, delay: Duration) {
        self.shared.faults.send_modify(|faults| faults.delay[Direction::ToTarget as usize] = delay);
    }

    /// Delays bytes from server to client.
    pub fn delay_to_client(&self, delay: Duration) {
        self.shared.faults.send_modify(|faults| faults.delay[Direction::ToClient as usize] = delay);
    }

    /// Connections that clients hold open now.
    pub fn connections(&self) -> usize {
        self.shared.counts.borrow().open
    }

    /// The most connections that were open at the same time.
    pub fn peak_connections(&self) -> usize {
        self.shared.counts.borrow().peak
    }

    /// Connections that clients have made since the start, also those that the target refused. What is turned away by
    /// [`Self::refuse`] is not seen: to count attempts during an outage, stop the target and let the proxy listen.
    pub fn accepted_total(&self) -> usize {
        self.shared.counts.borrow().accepted
    }

    /// Bytes that went to the server since the start.
    pub fn bytes_to_target(&self) -> u64 {
        self.shared.counts.borrow().bytes[Direction::ToTarget as usize]
    }

    /// Bytes that went to the client since the start.
    pub fn bytes_to_client(&self) -> u64 {
        self.shared.counts.borrow().bytes[Direction::ToClient as usize]
    }

    /// Returns when exactly `count` connections are open.
    pub async fn wait_for_connections(&self, count: usize) {
        self.wait(|counts| counts.open == count).await;
    }

    /// Returns when at least `total` connections have been made since the start.
    pub async fn wait_for_accepted(&self, total: usize) {
        self.wait(|counts| counts.accepted >= total).await;
    }

    async fn wait(&self, condition: impl FnMut(&Counts) -> bool) {
        // The sender lives in `self`, so the channel cannot be closed meanwhile.
        let _ = self.shared.counts.subscribe().wait_for(condition).await;
    }

    fn listening(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BreakableProxy {
    fn drop(&mut self) {
        if let Some(task) = self.listening().take() {
            task.abort();
        }
        self.shared.tasks().abort_all();
    }
}

#[derive(Debug)]
struct Shared {
    target: String,
    faults: watch::Sender<Faults>,
    counts: watch::Sender<Counts>,
    connections: Mutex<JoinSet<()>>,
}

impl Shared {
    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Faults {
    swallow: bool,
    hold: bool,
    delay: [Duration; 2],
}

#[derive(Debug, Default)]
struct Counts {
    open: usize,
    peak: usize,
    accepted: usize,
    bytes: [u64; 2],
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    ToTarget = 0,
    ToClient = 1,
}

async fn accept_all(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                let connection = Connection::new(client, Arc::clone(&shared));
                let mut tasks = shared.tasks();
                while tasks.try_join_next().is_some() {}
                tasks.spawn(connection.serve());
            }
            Err(error) => return tracing::error!(%error, "accept failed, proxy no longer listens"),
        }
    }
}

/// One client's connection. Dropping it before its orderly end resets both sides.
struct Connection {
    client: TcpStream,
    target: Option<TcpStream>,
    shared: Arc<Shared>,
    open: Option<Open>,
    orderly: bool,
}

/// Counts a connection until its client has closed it, whatever the other side still does.
struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.counts.send_modify(|counts| counts.open -= 1);
    }
}

impl Connection {
    fn new(client: TcpStream, shared: Arc<Shared>) -> Self {
        shared.counts.send_modify(|counts| {
            counts.accepted += 1;
            counts.open += 1;
            counts.peak = counts.peak.max(counts.open);
        });
        let open = Some(Open(Arc::clone(&shared)));
        Self { client, target: None, shared, open, orderly: false }
    }

    async fn serve(mut self) {
        if let Err(error) = self.pass().await {
            tracing::debug!(%error, "connection broken");
        }
    }

    async fn pass(&mut self) -> io::Result<()> {
        let target = self.target.insert(TcpStream::connect(&self.shared.target).await?);
        target.set_nodelay(true)?;
        self.client.set_nodelay(true)?;
        let (from_client, to_client) = self.client.split();
        let (from_target, to_target) = target.split();
        let (there, back) = (Direction::ToTarget, Direction::ToClient);
        tokio::try_join!(
            pump(from_client, to_target, &self.shared, there, self.open.take()),
            pump(from_target, to_client, &self.shared, back, None),
        )?;
        self.orderly = true;
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.orderly {
            for stream in std::iter::once(&self.client).chain(&self.target) {
                // With no time to linger, closing sends RST.
                let _ = stream.set_zero_linger();
            }
        }
    }
}

/// A chunk, or the end when it is empty, and when it is due on the other side.
type Parcel = (Instant, Vec<u8>);

async fn pump(
    from: ReadHalf<'_>,
    to: WriteHalf<'_>,
    shared: &Shared,
    direction: Direction,
    open: Option<Open>,
) -> io::Result<()> {
    let (sender, receiver) = mpsc::channel(IN_FLIGHT);
    let taken = async {
        let _open = open;
        take(from, sender, shared, direction).await
    };
    tokio::try_join!(taken, give(to, receiver, shared, direction))?;
    Ok(())
}

/// Reads chunks until the end of the stream, and stamps them.
async fn take(
    mut from: ReadHalf<'_>,
    parcels: mpsc::Sender<Parcel>,
    shared: &Shared,
    direction: Direction,
) -> io::Result<()> {
    loop {
        let mut chunk = vec![0; CHUNK];
        let length = from.read(&mut chunk).await?;
        chunk.truncate(length);
        let due = Instant::now() + shared.faults.borrow().delay[direction as usize];
        if parcels.send((due, chunk)).await.is_err() || length == 0 {
            return Ok(());
        }
    }
}

/// Writes chunks when they are due, unless a fault says otherwise.
async fn give(
    mut to: WriteHalf<'_>,
    mut parcels: mpsc::Receiver<Parcel>,
    shared: &Shared,
    direction: Direction,
) -> io::Result<()> {
    let mut faults = shared.faults.subscribe();
    while let Some((due, chunk)) = parcels.recv().await {
        sleep_until(due).await;
        let swallow = faults
            .wait_for(|faults| faults.swallow || !faults.hold)
            .await
            .map_or(true, |faults| faults.swallow);
        if swallow {
            return swallow_for_ever(parcels).await;
        }
        if chunk.is_empty() {
            return to.shutdown().await;
        }
        to.write_all(&chunk).await?;
        shared.counts.send_modify(|counts| counts.bytes[direction as usize] += chunk.len() as u64);
    }
    Ok(())
}

/// Takes everything and gives nothing, not even the end: this stream misses bytes and must not go on.
async fn swallow_for_ever(mut parcels: mpsc::Receiver<Parcel>) -> io::Result<()> {
    while parcels.recv().await.is_some() {}
    std::future::pending().await
}
