//! One connection over any byte stream: a reading task, a writing task, and the handle that sends.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use dubhe_core::BoxFuture;
use dubhe_core::transport::{Accept, Channel, Receiver, SendError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::queue::Queue;

/// Time that a flushing close may take when the peer does not read. Ours; the reference waits without end.
pub const FLUSH_LIMIT: Duration = Duration::from_secs(10);

/// Time that a closed connection still reads and drops what comes in, so that the peer gets our last bytes instead of
/// a reset.
const LINGER: Duration = Duration::from_millis(500);

/// Free bytes in the read buffer before each read: an idle connection holds the least, a busy one reads many messages
/// at once.
const LEAST_READ: usize = 8 * 1024;
const MOST_READ: usize = 128 * 1024;

/// Messages per system call; above it the kernel's own limit (1024) is far away, and the list stays on the stack.
const WRITE_SLICES: usize = 64;

/// Batches of one message after which a sender counts as alone.
const COMPANY: u8 = 16;

const OWN_CLOSE: &str = "closed by this side";

/// Runs a connection; `None` when `accept` refused it.
pub(crate) fn open<R, W>(
    reader: R,
    writer: W,
    peer: SocketAddr,
    local: SocketAddr,
    accept: &dyn Accept,
) -> Option<Arc<dyn Channel>>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let queue = Arc::new(Queue::new());
    let channel: Arc<dyn Channel> = Arc::new(Connection { queue: Arc::clone(&queue), peer, local });
    let receiver = accept.accept(&channel)?;
    tokio::spawn(read(reader, receiver, Arc::clone(&queue)));
    tokio::spawn(write(writer, queue));
    Some(channel)
}

#[derive(Debug)]
struct Connection {
    queue: Arc<Queue>,
    peer: SocketAddr,
    local: SocketAddr,
}

impl Channel for Connection {
    fn try_send(&self, bytes: Bytes) -> Result<(), SendError> {
        self.queue.try_send(bytes)
    }

    fn send(&self, bytes: Bytes) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(self.queue.send(bytes))
    }

    fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn is_open(&self) -> bool {
        self.queue.is_open()
    }

    fn close(&self, flush: bool) {
        if flush {
            self.queue.close_after_flush(OWN_CLOSE);
        } else {
            self.queue.close_now(OWN_CLOSE);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.queue.close_after_flush(OWN_CLOSE);
    }
}

async fn read<R: AsyncRead + Unpin>(mut reader: R, receiver: Box<dyn Receiver>, queue: Arc<Queue>) {
    let mut reading = Reading { receiver, queue };
    let ending = reading.run(&mut reader).await;
    match &ending {
        // The peer may still read: what is queued goes out.
        Ending::EndOfStream => reading.queue.close_after_flush("closed by the peer"),
        Ending::Failed(reason) => reading.queue.close_now(reason),
        Ending::Halted => {}
    }
    drop(reading);
    if matches!(ending, Ending::Halted) {
        let mut rest = [0; 4096];
        let drained = async { while matches!(reader.read(&mut rest).await, Ok(1..)) {} };
        let _ = tokio::time::timeout(LINGER, drained).await;
    }
}

enum Ending {
    EndOfStream,
    Failed(String),
    /// The writing task or the handle ended the connection.
    Halted,
}

/// Tells the receiver that the connection is closed, even when the receiver itself panics.
struct Reading {
    receiver: Box<dyn Receiver>,
    queue: Arc<Queue>,
}

impl Reading {
    async fn run(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> Ending {
        let mut buffer = BytesMut::with_capacity(LEAST_READ);
        let mut chunk = LEAST_READ;
        let mut halted = pin!(self.queue.reader_halted());
        loop {
            buffer.reserve(chunk);
            let read = tokio::select! {
                biased;
                () = &mut halted => return Ending::Halted,
                read = reader.read_buf(&mut buffer) => read,
            };
            match read {
                Ok(0) => return Ending::EndOfStream,
                Ok(count) => {
                    if count >= chunk {
                        chunk = (chunk * 2).min(MOST_READ);
                    } else if count < chunk / 8 {
                        chunk = (chunk / 2).max(LEAST_READ);
                    }
                    if let Err(reason) = self.receiver.received(&mut buffer) {
                        return Ending::Failed(reason);
                    }
                }
                Err(error) => return Ending::Failed(format!("reading failed: {error}")),
            }
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        // Does nothing when the connection is closing already; otherwise this is a panic or the end of the runtime.
        if self.queue.is_open() {
            self.queue.close_now("the reading task ended");
        }
        self.receiver.closed(&self.queue.reason());
    }
}

async fn write<W: AsyncWrite + Unpin>(mut writer: W, queue: Arc<Queue>) {
    let flush_limit = async {
        queue.flushing().await;
        tokio::time::sleep(FLUSH_LIMIT).await;
    };
    let reason = tokio::select! {
        biased;
        () = queue.writer_halted() => OWN_CLOSE.to_owned(),
        () = flush_limit => "the peer did not read before the close".to_owned(),
        written = write_all(&mut writer, &queue) => match written {
            Ok(()) => OWN_CLOSE.to_owned(),
            Err(error) => format!("writing failed: {error}"),
        },
    };
    queue.close_now(&reason);
}

async fn write_all(writer: &mut (impl AsyncWrite + Unpin), queue: &Queue) -> io::Result<()> {
    let mut batch = VecDeque::new();
    let mut company = 0;
    while queue.wait().await {
        // Among several senders the one that woke this task is rarely alone: let the others that are ready queue theirs
        // too. A lone sender is not kept waiting for nobody.
        if company > 0 {
            tokio::task::yield_now().await;
        }
        queue.take(&mut batch);
        company = if batch.len() > 1 { COMPANY } else { company.max(1) - 1 };
        while !batch.is_empty() {
            let written = write_some(writer, &batch).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            advance(&mut batch, written);
            queue.written(written);
        }
    }
    writer.shutdown().await
}

async fn write_some(writer: &mut (impl AsyncWrite + Unpin), batch: &VecDeque<Bytes>) -> io::Result<usize> {
    if let [only] = batch.as_slices().0
        && batch.len() == 1
    {
        return if only.is_empty() { Ok(0) } else { writer.write(only).await };
    }
    let mut slices = [IoSlice::new(&[]); WRITE_SLICES];
    let mut used = 0;
    for (slice, bytes) in slices.iter_mut().zip(batch) {
        *slice = IoSlice::new(bytes);
        used += 1;
    }
    writer.write_vectored(&slices[..used]).await
}

fn advance(batch: &mut VecDeque<Bytes>, mut written: usize) {
    while let Some(first) = batch.front_mut() {
        if written < first.len() {
            first.advance(written);
            return;
        }
        written -= first.len();
        batch.pop_front();
    }
}
