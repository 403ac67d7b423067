//! Names and descriptors of Java types, for method signatures.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;

use super::Value;

/// What a Rust type is called in Java.
///
/// Method signatures need the declared Java types, which values alone do not tell. `#[dubhe::java_class("demo.User")]`
/// implements this for a struct or an enum; erased types only, as in Java: `Vec<String>` is `java.util.List`.
pub trait JavaType {
    /// The name as Java source has it: `int`, `java.lang.String`, `demo.User`, `int[]`.
    fn name() -> Cow<'static, str>;

    /// The JVM descriptor: `I`, `Ljava/lang/String;`, `[I`.
    fn descriptor() -> Cow<'static, str> {
        Cow::Owned(descriptor_of(&Self::name()))
    }

    /// The name of the type that can also be null: `java.lang.Integer` for `int`; else the same as [`JavaType::name`].
    fn boxed_name() -> Cow<'static, str> {
        Self::name()
    }
}

/// The JVM descriptor of a Java type name: `int[]` gives `[I`. Accepts also the form of `Class.getName` (`[I`,
/// `[Ljava.lang.String;`).
pub fn descriptor_of(name: &str) -> String {
    if name.starts_with('[') {
        return name.replace('.', "/");
    }
    let mut element = name;
    let mut descriptor = String::with_capacity(name.len() + 2);
    while let Some(inner) = element.strip_suffix("[]") {
        element = inner;
        descriptor.push('[');
    }
    let primitive = match element {
        "void" => "V",
        "boolean" => "Z",
        "byte" => "B",
        "char" => "C",
        "short" => "S",
        "int" => "I",
        "long" => "J",
        "float" => "F",
        "double" => "D",
        class => {
            descriptor.push('L');
            descriptor.extend(class.chars().map(|c| if c == '.' { '/' } else { c }));
            ";"
        }
    };
    descriptor.push_str(primitive);
    descriptor
}

macro_rules! primitives {
    ($($rust:ty, $java:literal, $descriptor:literal, $boxed:literal;)*) => {$(
        impl JavaType for $rust {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($java)
            }

            fn descriptor() -> Cow<'static, str> {
                Cow::Borrowed($descriptor)
            }

            fn boxed_name() -> Cow<'static, str> {
                Cow::Borrowed($boxed)
            }
        }
    )*};
}

primitives! {
    (), "void", "V", "java.lang.Void";
    bool, "boolean", "Z", "java.lang.Boolean";
    i8, "byte", "B", "java.lang.Byte";
    i16, "short", "S", "java.lang.Short";
    i32, "int", "I", "java.lang.Integer";
    i64, "long", "J", "java.lang.Long";
    f32, "float", "F", "java.lang.Float";
    f64, "double", "D", "java.lang.Double";
    char, "char", "C", "java.lang.Character";
}

macro_rules! classes {
    ($([$($generics:tt)*] $rust:ty, $java:literal, $descriptor:literal;)*) => {$(
        impl<$($generics)*> JavaType for $rust {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($java)
            }

            fn descriptor() -> Cow<'static, str> {
                Cow::Borrowed($descriptor)
            }
        }
    )*};
}

classes! {
    [] String, "java.lang.String", "Ljava/lang/String;";
    [] str, "java.lang.String", "Ljava/lang/String;";
    [] Value, "java.lang.Object", "Ljava/lang/Object;";
    [] Bytes, "byte[]", "[B";
    [T] Vec<T>, "java.util.List", "Ljava/util/List;";
    [T] [T], "java.util.List", "Ljava/util/List;";
    [K, V, S] HashMap<K, V, S>, "java.util.Map", "Ljava/util/Map;";
    [K, V] BTreeMap<K, V>, "java.util.Map", "Ljava/util/Map;";
    [T, S] HashSet<T, S>, "java.util.Set", "Ljava/util/Set;";
    [T] BTreeSet<T>, "java.util.Set", "Ljava/util/Set;";
}

impl<T: JavaType> JavaType for Option<T> {
    fn name() -> Cow<'static, str> {
        T::boxed_name()
    }
}

macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<T: JavaType + ?Sized> JavaType for $pointer {
            fn name() -> Cow<'static, str> {
                T::name()
            }

            fn descriptor() -> Cow<'static, str> {
                T::descriptor()
            }

            fn boxed_name() -> Cow<'static, str> {
                T::boxed_name()
            }
        }
    )*};
}

pointers!(&T, Box<T>, Arc<T>);

impl<T: JavaType + ToOwned + ?Sized> JavaType for Cow<'_, T> {
    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn descriptor() -> Cow<'static, str> {
        T::descriptor()
    }

    fn boxed_name() -> Cow<'static, str> {
        T::boxed_name()
    }
}
