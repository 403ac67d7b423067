//! First bytes of values, and bounds of the compact forms.

pub(crate) const STRING_DIRECT: u8 = 0x00;
pub(crate) const STRING_DIRECT_MAX: usize = 0x1f;
pub(crate) const STRING_SHORT: u8 = 0x30;
pub(crate) const STRING_SHORT_MAX: usize = 0x3ff;
pub(crate) const STRING_CHUNK: u8 = b'R';
pub(crate) const STRING_LAST: u8 = b'S';
/// UTF-16 units that Java puts in one chunk.
pub(crate) const STRING_CHUNK_UNITS: usize = 0x8000;

pub(crate) const BINARY_DIRECT: u8 = 0x20;
pub(crate) const BINARY_DIRECT_MAX: usize = 0x0f;
pub(crate) const BINARY_SHORT: u8 = 0x34;
pub(crate) const BINARY_SHORT_MAX: usize = 0x3ff;
pub(crate) const BINARY_CHUNK: u8 = b'A';
pub(crate) const BINARY_LAST: u8 = b'B';
/// Bytes of one chunk that this crate writes, the most that Java's reader takes.
pub(crate) const BINARY_CHUNK_BYTES: usize = 0xffff;

pub(crate) const INT_DIRECT_ZERO: u8 = 0x90;
pub(crate) const INT_BYTE_ZERO: u8 = 0xc8;
pub(crate) const INT_SHORT_ZERO: u8 = 0xd4;
pub(crate) const INT: u8 = b'I';

pub(crate) const LONG_DIRECT_ZERO: u8 = 0xe0;
pub(crate) const LONG_BYTE_ZERO: u8 = 0xf8;
pub(crate) const LONG_SHORT_ZERO: u8 = 0x3c;
pub(crate) const LONG_INT: u8 = 0x59;
pub(crate) const LONG: u8 = b'L';

pub(crate) const DOUBLE: u8 = b'D';
pub(crate) const DOUBLE_ZERO: u8 = 0x5b;
pub(crate) const DOUBLE_ONE: u8 = 0x5c;
pub(crate) const DOUBLE_BYTE: u8 = 0x5d;
pub(crate) const DOUBLE_SHORT: u8 = 0x5e;
/// A 32-bit count of thousandths (the published grammar says a float; no implementation follows it).
pub(crate) const DOUBLE_MILL: u8 = 0x5f;

pub(crate) const DATE_MILLIS: u8 = 0x4a;
pub(crate) const DATE_MINUTES: u8 = 0x4b;

pub(crate) const NULL: u8 = b'N';
pub(crate) const TRUE: u8 = b'T';
pub(crate) const FALSE: u8 = b'F';

pub(crate) const CLASS: u8 = b'C';
pub(crate) const OBJECT: u8 = b'O';
pub(crate) const OBJECT_DIRECT: u8 = 0x60;
pub(crate) const OBJECT_DIRECT_MAX: usize = 0x0f;

pub(crate) const MAP: u8 = b'H';
pub(crate) const TYPED_MAP: u8 = b'M';
pub(crate) const END: u8 = b'Z';

pub(crate) const LIST: u8 = 0x58;
pub(crate) const LIST_VARIABLE: u8 = 0x57;
pub(crate) const LIST_DIRECT: u8 = 0x78;
pub(crate) const TYPED_LIST: u8 = b'V';
pub(crate) const TYPED_LIST_VARIABLE: u8 = 0x55;
pub(crate) const TYPED_LIST_DIRECT: u8 = 0x70;
pub(crate) const LIST_DIRECT_MAX: usize = 7;

pub(crate) const REF: u8 = b'Q';
