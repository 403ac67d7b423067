use std::sync::Arc;

use dubhe_core::value::{List, Map, Value};

/// `value` as a generic caller reads it: objects as maps with their class under `class`, nested ones too. Simple values, dates
/// and binaries stay. Origin: `PojoUtils.generalize`.
pub(crate) fn generalise(value: Value) -> Value {
    match value {
        Value::List(list) => {
            let class = list.class.as_deref().filter(|class| class.starts_with('['));
            let class =
                class.map(|class| if is_simple_array(class) { class.into() } else { "[object".into() });
            Value::List(Arc::new(List { class, items: list.items.iter().cloned().map(generalise).collect() }))
        }
        Value::Map(map) => {
            let entries =
                map.entries.iter().map(|(key, value)| (generalise(key.clone()), generalise(value.clone())));
            Value::Map(Arc::new(Map { class: map.class.clone(), entries: entries.collect() }))
        }
        Value::Object(object) if is_text(&object.class) => Value::Object(object),
        Value::Object(object) => {
            let class = (Value::from("class"), Value::from(Arc::clone(&object.class)));
            let fields = object
                .fields
                .iter()
                .map(|(name, value)| (Value::from(Arc::clone(name)), generalise(value.clone())));
            Value::Map(Arc::new(Map { class: None, entries: std::iter::once(class).chain(fields).collect() }))
        }
        simple => simple,
    }
}

/// Arrays that go as they are.
fn is_simple_array(class: &str) -> bool {
    matches!(
        class,
        "[boolean"
            | "[short"
            | "[int"
            | "[long"
            | "[float"
            | "[double"
            | "[string"
            | "[date"
            | "[java.lang.Integer"
            | "[java.lang.Long"
    )
}

/// Classes that are values of their own and go as they are.
fn is_text(class: &str) -> bool {
    matches!(class, "java.math.BigDecimal" | "java.math.BigInteger")
}
