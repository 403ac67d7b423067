use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Fields, Item, LitStr, Result};

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let class: LitStr = syn::parse2(arguments).map_err(|error| {
        Error::new(error.span(), "name the Java class: #[dubhe::java_class(\"com.example.User\")]")
    })?;
    let name = class.value();
    if !name.contains('.') || name.contains('/') || name.contains(';') {
        return Err(Error::new(
            class.span(),
            "a Java class name has its package and dots, e.g. com.example.User or com.example.Outer$Inner",
        ));
    }
    let mut allow = None;
    let (ident, generics, case) = match syn::parse2::<Item>(item.clone())? {
        Item::Struct(one) if matches!(one.fields, Fields::Named(_) | Fields::Unit) => {
            (one.ident, one.generics, Some(quote!(rename_all = "camelCase",)))
        }
        Item::Enum(one) if one.variants.iter().all(|variant| matches!(variant.fields, Fields::Unit)) => {
            // Java writes its constants in capitals.
            allow = Some(quote!(#[allow(clippy::upper_case_acronyms)]));
            (one.ident, one.generics, None)
        }
        other => {
            return Err(Error::new_spanned(
                other,
                "only structs with named fields and enums of unit variants are Java classes",
            ));
        }
    };
    let descriptor = format!("L{};", name.replace('.', "/"));
    let (implement, types, bounds) = generics.split_for_impl();
    Ok(quote! {
        #[derive(::dubhe::serde::Serialize, ::dubhe::serde::Deserialize)]
        #[serde(crate = "::dubhe::serde", #case rename = #name)]
        #allow
        #item

        impl #implement ::dubhe::JavaType for #ident #types #bounds {
            fn name() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(#name)
            }

            fn descriptor() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(#descriptor)
            }
        }
    })
}
