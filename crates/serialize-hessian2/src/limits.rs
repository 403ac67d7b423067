/// Bounds on what one body may hold. The defaults suit frames up to Dubbo's payload limit of 8 MiB.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Deepest nesting of lists, maps and objects, in both directions. Default 128: far beyond real data, far below
    /// what fills a stack of 2 MiB.
    pub depth: usize,
    /// Most values in one body, in both directions: lists, maps, objects and references, and everything inside
    /// dynamic values. Default 1,000,000.
    pub values: usize,
    /// Most fields of a class. Default 1,024.
    pub class_fields: usize,
    /// Most class definitions in one body. Default 4,096.
    pub classes: usize,
    /// Most attachments of one message; looking for one takes time in proportion to their number. Default 4,096.
    pub attachments: usize,
    /// Most frames kept of an exception's stack trace; the rest is dropped. Default 1,024, as many as Java keeps.
    pub stack_frames: usize,
    /// Most bytes that references may multiply a body to: that are read again for typed values, or written for dynamic
    /// ones. Default 64 MiB, eight times the payload limit; raise it together with a larger one.
    pub expanded_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 128,
            values: 1_000_000,
            class_fields: 1_024,
            classes: 4_096,
            attachments: 4_096,
            stack_frames: 1_024,
            expanded_bytes: 64 << 20,
        }
    }
}
