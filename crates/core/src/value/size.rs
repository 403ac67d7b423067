//! How large a value is when its shared parts are written out: hostile input can share its way to astronomic sizes.

use std::collections::HashMap;
use std::sync::Arc;

use super::Value;

/// Most values that a whole value may expand to where it is walked without an own limit (text formats, comparing).
/// Origin: the node limit of the Hessian2 reader.
pub(crate) const MAX_EXPANDED: u64 = 1_000_000;

impl Value {
    /// How many values this one consists of, itself included, shared parts counted at each occurrence. Takes time in
    /// proportion to what is in memory, not to the result; saturates.
    pub fn expanded_size(&self) -> u64 {
        size(self, &mut HashMap::new())
    }

    /// Whether there is a [`Value::Ref`] in it.
    pub fn has_refs(&self) -> bool {
        has_refs(self, &mut HashMap::new())
    }
}

/// Address of a compound value that may occur more than once, and its children.
pub(crate) fn shared_address(value: &Value) -> Option<usize> {
    fn address<T>(arc: &Arc<T>) -> Option<usize> {
        (Arc::strong_count(arc) > 1).then_some(Arc::as_ptr(arc) as usize)
    }
    match value {
        Value::List(list) => address(list),
        Value::Map(map) => address(map),
        Value::Object(object) => address(object),
        _ => None,
    }
}

fn size(value: &Value, known: &mut HashMap<usize, u64>) -> u64 {
    let address = shared_address(value);
    if let Some(size) = address.and_then(|address| known.get(&address)) {
        return *size;
    }
    let sum = match value {
        Value::List(list) => list.items.iter().fold(1_u64, |sum, item| sum.saturating_add(size(item, known))),
        Value::Map(map) => map
            .entries
            .iter()
            .fold(1_u64, |sum, (k, v)| sum.saturating_add(size(k, known)).saturating_add(size(v, known))),
        Value::Object(object) => {
            object.fields.iter().fold(1_u64, |sum, (_, field)| sum.saturating_add(size(field, known)))
        }
        _ => 1,
    };
    if let Some(address) = address {
        known.insert(address, sum);
    }
    sum
}

fn has_refs(value: &Value, known: &mut HashMap<usize, bool>) -> bool {
    let address = shared_address(value);
    if let Some(known) = address.and_then(|address| known.get(&address)) {
        return *known;
    }
    let found = match value {
        Value::Ref(_) => true,
        Value::List(list) => list.items.iter().any(|item| has_refs(item, known)),
        Value::Map(map) => map.entries.iter().any(|(k, v)| has_refs(k, known) || has_refs(v, known)),
        Value::Object(object) => object.fields.iter().any(|(_, field)| has_refs(field, known)),
        _ => false,
    };
    if let Some(address) = address {
        known.insert(address, found);
    }
    found
}
