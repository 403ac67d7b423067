//! How many calls go over one connection, beside a bare tokio echo in the same run?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dubhe::config::ProtocolConfig;
use dubhe::java::JavaBytes;
use dubhe::{Dubhe, MemoryStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

use crate::measure::percentile;

/// Bytes of a call's argument and of its reply.
pub const PAYLOAD: usize = 1024;

/// The service that is called.
#[dubhe::service(interface = "dev.dubhe.bench.Bench")]
pub trait Bench {
    /// Answers its argument.
    async fn echo(&self, payload: JavaBytes) -> dubhe::Result<JavaBytes>;
}

/// Answers what it gets.
#[derive(Debug)]
pub struct Echo;

impl Bench for Echo {
    async fn echo(&self, payload: JavaBytes) -> dubhe::Result<JavaBytes> {
        Ok(payload)
    }
}

/// What came of a run.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Calls per second.
    pub per_second: f64,
    /// Median time of a call.
    pub p50: Duration,
    /// 99th percentile.
    pub p99: Duration,
}

/// A provider and a consumer in this process, over one TCP connection on loopback.
#[derive(Debug)]
pub struct Pair {
    provider: Dubhe,
    consumer: Dubhe,
    client: BenchClient,
}

impl Pair {
    /// Starts both.
    pub async fn start() -> anyhow::Result<Self> {
        let store = MemoryStore::new();
        let loopback = ProtocolConfig { host: Some("127.0.0.1".to_owned()), ..ProtocolConfig::dubbo(0) };
        let application = |name: &str| {
            Dubhe::builder(name).memory_store(&store).registry("memory://local?file.cache=false")
        };
        let provider = application("bench-provider").protocol(loopback).start().await?;
        provider.service(BenchService::new(Echo)).param("threads", 1_000).export().await?;
        let consumer = application("bench-consumer").start().await?;
        let client =
            consumer.reference::<BenchClient>().retries(0).timeout(Duration::from_secs(10)).get().await?;
        Ok(Self { provider, consumer, client })
    }

    /// One call.
    pub async fn call(&self, payload: &JavaBytes) -> dubhe::Result<usize> {
        Ok(self.client.echo(payload.clone()).await?.0.len())
    }

    /// `callers` at a time for `duration`.
    pub async fn run(&self, callers: usize, duration: Duration) -> anyhow::Result<Rate> {
        let client = self.client.clone();
        load(callers, duration, move || {
            let client = client.clone();
            async move {
                let payload = JavaBytes(vec![7; PAYLOAD]);
                let reply = client.echo(payload).await?;
                anyhow::ensure!(reply.0.len() == PAYLOAD, "the reply has another size");
                Ok(())
            }
        })
        .await
    }

    /// Ends both.
    pub async fn stop(self) {
        self.consumer.shutdown().await;
        self.provider.shutdown().await;
    }
}

/// The floor: length-prefixed frames with an id over one connection, pending calls in a slot table, a server task per call. No
/// serialization, no routing, no time limits.
#[derive(Clone, Debug)]
pub struct Floor {
    calls: mpsc::UnboundedSender<(Vec<u8>, oneshot::Sender<Vec<u8>>)>,
}

impl Floor {
    /// Starts server and client.
    pub async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (calls, queue) = mpsc::unbounded_channel();
        tokio::spawn(drive(stream, queue));
        Ok(Self { calls })
    }

    /// One call.
    pub async fn call(&self, payload: Vec<u8>) -> anyhow::Result<usize> {
        let (reply, waiting) = oneshot::channel();
        self.calls.send((payload, reply))?;
        Ok(waiting.await?.len())
    }

    /// `callers` at a time for `duration`.
    pub async fn run(&self, callers: usize, duration: Duration) -> anyhow::Result<Rate> {
        let floor = self.clone();
        load(callers, duration, move || {
            let floor = floor.clone();
            async move {
                anyhow::ensure!(floor.call(vec![7; PAYLOAD]).await? == PAYLOAD, "the reply has another size");
                Ok(())
            }
        })
        .await
    }
}

/// Frames: 4 bytes length of what follows, 8 bytes id, payload.
async fn serve(stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let (read, write) = stream.into_split();
    let (replies, queue) = mpsc::unbounded_channel();
    tokio::spawn(write_all(write, queue));
    let mut read = BufReader::with_capacity(64 * 1024, read);
    while let Ok(frame) = read_frame(&mut read).await {
        let replies = replies.clone();
        tokio::spawn(async move {
            let _ = replies.send(frame);
        });
    }
}

async fn drive(stream: TcpStream, mut calls: mpsc::UnboundedReceiver<(Vec<u8>, oneshot::Sender<Vec<u8>>)>) {
    let (read, write) = stream.into_split();
    let (frames, queue) = mpsc::unbounded_channel();
    tokio::spawn(write_all(write, queue));
    let pending =
        Arc::new(std::sync::Mutex::new(std::collections::HashMap::<u64, oneshot::Sender<Vec<u8>>>::new()));
    let waiting = Arc::clone(&pending);
    tokio::spawn(async move {
        let mut read = BufReader::with_capacity(64 * 1024, read);
        while let Ok(frame) = read_frame(&mut read).await {
            let Some(id) = frame.get(..8).and_then(|id| id.try_into().ok()).map(u64::from_be_bytes) else {
                return;
            };
            let caller = waiting.lock().ok().and_then(|mut waiting| waiting.remove(&id));
            if let Some(caller) = caller {
                let _ = caller.send(frame[8..].to_vec());
            }
        }
    });
    let mut id = 0_u64;
    while let Some((payload, reply)) = calls.recv().await {
        id += 1;
        if let Ok(mut pending) = pending.lock() {
            pending.insert(id, reply);
        }
        let mut frame = Vec::with_capacity(8 + payload.len());
        frame.extend_from_slice(&id.to_be_bytes());
        frame.extend_from_slice(&payload);
        if frames.send(frame).is_err() {
            return;
        }
    }
}

async fn read_frame<R: AsyncReadExt + Unpin>(read: &mut R) -> std::io::Result<Vec<u8>> {
    let length = read.read_u32().await? as usize;
    let mut frame = vec![0; length];
    read.read_exact(&mut frame).await?;
    Ok(frame)
}

async fn write_all(mut write: OwnedWriteHalf, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) {
    let (mut batch, mut buffer) = (Vec::new(), Vec::new());
    while queue.recv_many(&mut batch, 256).await > 0 {
        buffer.clear();
        for frame in batch.drain(..) {
            buffer.extend_from_slice(&(frame.len() as u32).to_be_bytes());
            buffer.extend_from_slice(&frame);
        }
        if write.write_all(&buffer).await.is_err() {
            return;
        }
    }
}

/// Keeps `callers` calls under way for `duration`.
async fn load<F, C>(callers: usize, duration: Duration, call: F) -> anyhow::Result<Rate>
where
    F: Fn() -> C + Clone + Send + 'static,
    C: Future<Output = anyhow::Result<()>> + Send,
{
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..callers {
        let (call, stop, done) = (call.clone(), Arc::clone(&stop), Arc::clone(&done));
        tasks.spawn(async move {
            let mut times = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let start = Instant::now();
                call().await?;
                times.push(start.elapsed());
                done.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(times)
        });
    }
    tokio::time::sleep(duration).await;
    let per_second = done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    let mut times = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        times.extend(joined??);
    }
    Ok(Rate { per_second, p50: percentile(&mut times, 50), p99: percentile(&mut times, 99) })
}
