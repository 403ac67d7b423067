//! Transport layer: TCP client and server with batched writes and back-pressure.
