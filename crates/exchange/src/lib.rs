//! Exchange layer: frames, request and response matching, timeouts, heartbeats, read-only, drain.
