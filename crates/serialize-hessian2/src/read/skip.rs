//! Stepping over values that nobody wants.

use super::head::Head;
use super::{Reader, Result};
use crate::tag;

impl Reader {
    /// Steps over the next value. What is in it enters the tables like anything else.
    pub(super) fn skip(&mut self) -> Result<()> {
        let (at, head) = self.head()?;
        match head {
            Head::Str(first) => {
                if self.plain(first)?.is_none() {
                    self.text(first)?;
                }
            }
            Head::Binary(first) => {
                self.binary(first)?;
            }
            Head::List { len, .. } => {
                let index = self.begin(at)?;
                self.skip_items(len)?;
                self.end(index);
            }
            Head::Map { .. } => {
                let index = self.begin(at)?;
                while !self.at_end_mark()? {
                    self.skip()?;
                    self.skip()?;
                }
                self.end(index);
            }
            Head::Object(class) => {
                let index = self.begin(at)?;
                for _ in 0..class.values() {
                    self.skip()?;
                }
                self.end(index);
            }
            Head::Ref(index) => {
                if index >= self.compounds.len() {
                    return Err(self.no_target(index));
                }
            }
            Head::Null | Head::Bool(_) | Head::Int(_) | Head::Long(_) | Head::Double(_) | Head::Date(_) => {}
        }
        Ok(())
    }

    /// Steps over the rest of a list.
    pub(super) fn skip_items(&mut self, len: Option<usize>) -> Result<()> {
        match len {
            Some(len) => (0..len).try_for_each(|_| self.skip()),
            None => {
                while !self.at_end_mark()? {
                    self.skip()?;
                }
                Ok(())
            }
        }
    }

    /// Takes an end mark if one is next.
    pub(super) fn at_end_mark(&mut self) -> Result<bool> {
        let next = self.input.get(self.at).ok_or_else(|| self.truncated())?;
        let end = *next == tag::END;
        self.at += usize::from(end);
        Ok(end)
    }
}
