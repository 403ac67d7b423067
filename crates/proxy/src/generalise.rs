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
        Value::Object(object) if is_one_value(&object.class) => Value::Object(object),
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

/// Classes that are values of their own and go as they are: numbers, and what Hessian writes in place of a `java.time` value.
fn is_one_value(class: &str) -> bool {
    matches!(class, "java.math.BigDecimal" | "java.math.BigInteger")
        || class.starts_with("com.alibaba.com.caucho.hessian.io.")
}

#[cfg(test)]
mod tests {
    use dubhe_core::response::Payload;
    use dubhe_core::value::java::{BigDecimal, LocalDate};

    use super::*;

    #[derive(serde::Serialize)]
    #[serde(rename = "demo.Color")]
    enum Color {
        Green,
    }

    #[derive(serde::Serialize)]
    #[serde(rename = "demo.Car")]
    struct Car {
        color: Color,
        price: BigDecimal,
        since: LocalDate,
        others: Vec<Color>,
    }

    #[test]
    fn generic_callers_get_maps_for_objects_and_names_for_constants() {
        let (price, since) = (BigDecimal("1.50".to_owned()), LocalDate { year: 2024, month: 2, day: 29 });
        let car = Payload::of(Car { color: Color::Green, price, since, others: vec![Color::Green] });
        let value = generalise(car.to_generic_value().unwrap());
        assert_eq!(value.get("class"), Some(&Value::from("demo.Car")));
        assert_eq!(value.get("color"), Some(&Value::from("Green")));
        assert_eq!(value.get("others"), Some(&Value::list([Value::from("Green")])));
        assert_eq!(value.get("price").and_then(Value::class), Some("java.math.BigDecimal"));
        assert!(value.get("since").and_then(Value::as_object).is_some());
    }
}
