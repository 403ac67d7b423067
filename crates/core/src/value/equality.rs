//! Structural equality that takes time in proportion to what is in memory, also where parts are shared.

use std::collections::HashSet;
use std::sync::Arc;

use super::Value;
use super::size::shared_address;

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        equal(self, other, &mut HashSet::new())
    }
}

impl Eq for Value {}

/// `seen` holds pairs of shared parts that are equal or being compared further up; the latter cannot be met again,
/// as an `Arc` tree has no cycles.
fn equal(a: &Value, b: &Value, seen: &mut HashSet<(usize, usize)>) -> bool {
    if let (Some(left), Some(right)) = (shared_address(a), shared_address(b))
        && !seen.insert((left, right))
    {
        return true;
    }
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Long(a), Value::Long(b)) | (Value::Date(a), Value::Date(b)) => a == b,
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Utf16(a), Value::Utf16(b)) => a == b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Ref(a), Value::Ref(b)) => a == b,
        (Value::List(a), Value::List(b)) => {
            Arc::ptr_eq(a, b)
                || a.class == b.class
                    && a.items.len() == b.items.len()
                    && a.items.iter().zip(&b.items).all(|(a, b)| equal(a, b, seen))
        }
        (Value::Map(a), Value::Map(b)) => {
            Arc::ptr_eq(a, b)
                || a.class == b.class
                    && a.entries.len() == b.entries.len()
                    && a.entries
                        .iter()
                        .zip(&b.entries)
                        .all(|((ak, av), (bk, bv))| equal(ak, bk, seen) && equal(av, bv, seen))
        }
        (Value::Object(a), Value::Object(b)) => {
            Arc::ptr_eq(a, b)
                || a.class == b.class
                    && a.fields.len() == b.fields.len()
                    && a.fields
                        .iter()
                        .zip(&b.fields)
                        .all(|((an, av), (bn, bv))| an == bn && equal(av, bv, seen))
        }
        _ => false,
    }
}
