use std::any::Any;
use std::fmt::Write;
use std::sync::Arc;

/// Shows the text of a string, a boolean or a whole number to `look`, without allocation. Returns `false` for any other type.
pub(crate) fn with_simple_text(value: &dyn Any, look: &mut dyn FnMut(&str)) -> bool {
    macro_rules! try_texts {
        ($($text:ty),*) => {
            $(if let Some(text) = value.downcast_ref::<$text>() {
                look(text);
                return true;
            })*
        };
    }
    macro_rules! try_numbers {
        ($($number:ty),*) => {
            $(if let Some(number) = value.downcast_ref::<$number>() {
                let mut digits = Digits { bytes: [0; 24], used: 0 };
                // An i64 with its sign has at most 20 characters.
                if write!(digits, "{number}").is_ok() {
                    look(digits.as_str());
                    return true;
                }
            })*
        };
    }
    try_texts!(String, &'static str, Arc<str>, Box<str>);
    try_numbers!(i32, i64, i16, i8);
    if let Some(flag) = value.downcast_ref::<bool>() {
        look(if *flag { "true" } else { "false" });
        return true;
    }
    false
}

struct Digits {
    bytes: [u8; 24],
    used: usize,
}

impl Digits {
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.used]).unwrap_or_default()
    }
}

impl Write for Digits {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = self.bytes.get_mut(self.used..self.used + text.len()).ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.used += text.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &dyn Any) -> Option<String> {
        let mut seen = None;
        with_simple_text(value, &mut |text| seen = Some(text.to_owned())).then_some(seen).flatten()
    }

    #[test]
    fn usual_types_show_the_text_that_java_prints() {
        assert_eq!(shown(&"a").as_deref(), Some("a"));
        assert_eq!(shown(&String::from("b")).as_deref(), Some("b"));
        assert_eq!(shown(&i64::MIN).as_deref(), Some("-9223372036854775808"));
        assert_eq!(shown(&true).as_deref(), Some("true"));
        assert_eq!(shown(&1.5_f64), None);
    }
}
