//! Reading of `#[dubhe(...)]` and of the macros' own arguments.

use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Lit, Meta, Result, Token};

/// `key = "text"` and bare `word` arguments.
pub(crate) struct Arguments(Vec<Meta>);

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        Ok(Self(Punctuated::<Meta, Token![,]>::parse_terminated(input)?.into_iter().collect()))
    }
}

impl Arguments {
    /// Takes the `#[dubhe(...)]` attributes out of `attributes` and gives their arguments.
    pub(crate) fn take(attributes: &mut Vec<Attribute>) -> Result<Self> {
        let mut all = Vec::new();
        let mut kept = Vec::new();
        for attribute in attributes.drain(..) {
            if attribute.path().is_ident("dubhe") {
                all.extend(attribute.parse_args::<Self>()?.0);
            } else {
                kept.push(attribute);
            }
        }
        *attributes = kept;
        Ok(Self(all))
    }

    /// The text of `key = "text"`.
    pub(crate) fn text(&mut self, key: &str) -> Result<Option<String>> {
        let Some(at) = self.0.iter().position(|meta| meta.path().is_ident(key)) else { return Ok(None) };
        match self.0.remove(at) {
            Meta::NameValue(pair) => match pair.value {
                Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(Some(text.value())),
                other => Err(Error::new(other.span(), format!("`{key}` takes a string: {key} = \"...\""))),
            },
            other => Err(Error::new(other.span(), format!("`{key}` takes a value: {key} = \"...\""))),
        }
    }

    /// Whether the bare word `key` is there.
    pub(crate) fn word(&mut self, key: &str) -> bool {
        let at = self.0.iter().position(|meta| matches!(meta, Meta::Path(path) if path.is_ident(key)));
        at.map(|at| self.0.remove(at)).is_some()
    }

    /// An error that names the known arguments if any other was given.
    pub(crate) fn finish(self, known: &str) -> Result<()> {
        match self.0.first() {
            Some(other) => Err(Error::new(other.span(), format!("unknown argument: known are {known}"))),
            None => Ok(()),
        }
    }
}
