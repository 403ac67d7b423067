use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{
    Error, FnArg, GenericArgument, ItemTrait, Pat, PathArguments, Result, ReturnType, TraitItem, TraitItemFn,
    Type,
};

use crate::attributes::Arguments;

/// The tuple of arguments reaches this far (see `dubhe_core::invocation::Arguments`).
const MAX_PARAMETERS: usize = 12;

/// Methods of generated clients, which would hide those of the trait.
const OWN_OF_CLIENTS: [&str; 2] = ["with", "client"];

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut arguments: Arguments = syn::parse2(arguments)?;
    let mut item: ItemTrait = syn::parse2(item)?;
    let interface = arguments.text("interface")?.ok_or_else(|| {
        Error::new_spanned(
            &item.ident,
            "name the Java interface: #[dubhe::service(interface = \"com.example.Greeter\")]",
        )
    })?;
    let group = arguments.text("group")?.unwrap_or_default();
    let version = arguments.text("version")?.unwrap_or_default();
    arguments.finish("interface, group, version")?;
    if !item.generics.params.is_empty() {
        return Err(Error::new_spanned(&item.generics, "a service trait has no type parameters"));
    }
    if !item.supertraits.is_empty() {
        return Err(Error::new_spanned(
            &item.supertraits,
            "a service trait has no supertraits: its client could not implement them",
        ));
    }

    let methods = item.items.iter_mut().map(|one| match one {
        TraitItem::Fn(function) => Method::parse(function),
        other => Err(Error::new_spanned(other, "a service trait has methods only")),
    });
    let methods = methods.collect::<Result<Vec<_>>>()?;
    let declared = Declared { item, interface, group, version, methods };
    let (contract, client, service) = (declared.contract(), declared.client(), declared.service());
    Ok(quote!(#contract #client #service))
}

struct Declared {
    item: ItemTrait,
    interface: String,
    group: String,
    version: String,
    methods: Vec<Method>,
}

struct Method {
    ident: Ident,
    java_name: String,
    one_way: bool,
    parameters: Vec<Parameter>,
    returns: Type,
    output: Type,
    attributes: Vec<syn::Attribute>,
}

struct Parameter {
    ident: Ident,
    rust_type: Type,
    java: Option<String>,
}

impl Method {
    fn parse(function: &mut TraitItemFn) -> Result<Self> {
        let mut arguments = Arguments::take(&mut function.attrs)?;
        let java_name =
            arguments.text("name")?.unwrap_or_else(|| camel_case(&function.sig.ident.to_string()));
        let one_way = arguments.word("one_way");
        arguments.finish("name, one_way")?;
        let ident = &function.sig.ident;
        if OWN_OF_CLIENTS.iter().any(|own| ident == own) {
            let text = format!(
                "generated clients have a method `{ident}` of their own: choose another name, and set the Java one by #[dubhe(name = \"{ident}\")]"
            );
            return Err(Error::new_spanned(ident, text));
        }
        if let Some(attribute) = function.attrs.iter().find(|one| one.path().is_ident("cfg")) {
            return Err(Error::new_spanned(
                attribute,
                "a service method is always there: put `cfg` on the trait",
            ));
        }
        if function.sig.asyncness.is_none() {
            return Err(Error::new_spanned(&function.sig, "a service method is async: `async fn`"));
        }
        if function.default.is_some() {
            return Err(Error::new_spanned(&function.sig.ident, "a service method has no default body"));
        }
        let mut inputs = function.sig.inputs.iter_mut();
        if !matches!(inputs.next(), Some(FnArg::Receiver(receiver)) if receiver.reference.is_some() && receiver.mutability.is_none())
        {
            return Err(Error::new_spanned(&function.sig, "a service method takes `&self` first"));
        }
        let parameters = inputs.map(Parameter::parse).collect::<Result<Vec<_>>>()?;
        if parameters.len() > MAX_PARAMETERS {
            return Err(Error::new_spanned(
                &function.sig.inputs,
                "a service method has at most 12 parameters: put them in a struct",
            ));
        }
        let (returns, output) = returned(&function.sig.output, &function.sig.ident)?;
        Ok(Self {
            ident: function.sig.ident.clone(),
            java_name,
            one_way,
            parameters,
            returns,
            output,
            attributes: function.attrs.clone(),
        })
    }

    fn types(&self) -> TokenStream {
        let types = self.parameters.iter().map(Parameter::java_type);
        quote!(&[#(#types),*])
    }

    fn tuple_type(&self) -> TokenStream {
        let types = self.parameters.iter().map(|one| &one.rust_type);
        quote!((#(#types,)*))
    }

    fn signature(&self) -> (TokenStream, TokenStream) {
        let idents: Vec<_> = self.parameters.iter().map(|one| &one.ident).collect();
        let types = self.parameters.iter().map(|one| &one.rust_type);
        (quote!(#(#idents: #types),*), quote!((#(#idents,)*)))
    }
}

impl Parameter {
    fn parse(input: &mut FnArg) -> Result<Self> {
        let FnArg::Typed(typed) = input else {
            return Err(Error::new_spanned(input, "`self` comes first"));
        };
        let mut arguments = Arguments::take(&mut typed.attrs)?;
        let java = arguments.text("java")?;
        arguments.finish("java")?;
        let Pat::Ident(name) = &*typed.pat else {
            return Err(Error::new_spanned(&typed.pat, "a parameter is a plain name"));
        };
        if matches!(&*typed.ty, Type::Reference(_)) {
            return Err(Error::new_spanned(
                &typed.ty,
                "parameters are taken by value, e.g. String instead of &str",
            ));
        }
        Ok(Self { ident: name.ident.clone(), rust_type: (*typed.ty).clone(), java })
    }

    fn java_type(&self) -> TokenStream {
        match &self.java {
            Some(name) => {
                let descriptor = descriptor(name);
                quote!((::std::string::String::from(#name), ::std::string::String::from(#descriptor)))
            }
            None => {
                let rust_type = &self.rust_type;
                quote!((
                    <#rust_type as ::dubhe::JavaType>::name().into_owned(),
                    <#rust_type as ::dubhe::JavaType>::descriptor().into_owned(),
                ))
            }
        }
    }
}

impl Declared {
    /// The trait, with futures that may move between threads.
    fn contract(&self) -> TokenStream {
        let ItemTrait { attrs, vis, ident, .. } = &self.item;
        let methods = self.methods.iter().map(|method| {
            let Method { ident, attributes, output, .. } = method;
            let (parameters, _) = method.signature();
            quote! {
                #(#attributes)*
                fn #ident(&self, #parameters) -> impl ::std::future::Future<Output = #output> + ::std::marker::Send;
            }
        });
        quote! {
            #(#attrs)*
            #vis trait #ident: ::std::marker::Send + ::std::marker::Sync + 'static {
                #(#methods)*
            }
        }
    }

    fn identity(&self, target: &TokenStream, generics: &TokenStream) -> TokenStream {
        let Self { interface, group, version, .. } = self;
        let methods = self.methods.iter().map(|method| &method.java_name);
        quote! {
            impl #generics ::dubhe::ServiceInterface for #target {
                const INTERFACE: &'static str = #interface;
                const GROUP: &'static str = #group;
                const VERSION: &'static str = #version;
                const METHODS: &'static [&'static str] = &[#(#methods),*];
            }
        }
    }

    fn client(&self) -> TokenStream {
        let (vis, name) = (&self.item.vis, &self.item.ident);
        let client = format_ident!("{name}Client");
        let doc = format!("Calls [`{name}`] of a provider. Cheap to clone.");
        let identity = self.identity(&quote!(#client), &quote!());
        let built = self.methods.iter().map(|method| {
            let (java_name, returns, one_way, types) =
                (&method.java_name, &method.returns, method.one_way, method.types());
            quote!(::dubhe::proxy::method::<#returns>(#java_name, #types, #one_way))
        });
        let calls = self.methods.iter().enumerate().map(|(index, method)| {
            let Method { ident, output, .. } = method;
            let (parameters, tuple) = method.signature();
            quote! {
                async fn #ident(&self, #parameters) -> #output {
                    self.client.call(&self.methods[#index], #tuple).await
                }
            }
        });
        quote! {
            #[doc = #doc]
            #[derive(Clone, Debug)]
            #[allow(dead_code)]
            #vis struct #client {
                client: ::dubhe::ServiceClient,
                methods: ::std::sync::Arc<[::std::sync::Arc<::dubhe::Method>]>,
            }

            #[allow(dead_code)]
            impl #client {
                /// The same client with options on each call: attachments, time limits. They replace those that it had.
                #vis fn with(&self, options: ::dubhe::CallOptions) -> Self {
                    Self { client: self.client.with(options), methods: ::std::sync::Arc::clone(&self.methods) }
                }

                /// The untyped client underneath.
                #vis fn client(&self) -> &::dubhe::ServiceClient {
                    &self.client
                }
            }

            #identity

            impl ::dubhe::TypedClient for #client {
                fn from_client(client: ::dubhe::ServiceClient) -> Self {
                    Self { client, methods: ::std::sync::Arc::from([#(#built),*]) }
                }
            }

            impl #name for #client {
                #(#calls)*
            }
        }
    }

    fn service(&self) -> TokenStream {
        let (vis, name, interface) = (&self.item.vis, &self.item.ident, &self.interface);
        let service = format_ident!("{name}Service");
        let doc = format!("Offers an implementation of [`{name}`] to consumers.");
        let identity = self.identity(&quote!(#service<T>), &quote!(<T: #name>));
        let definitions = self.methods.iter().map(|method| {
            let (java_name, types, tuple) = (&method.java_name, method.types(), method.tuple_type());
            quote! {
                ::dubhe::proxy::method_definition(
                    #java_name,
                    #types,
                    ::dubhe::proxy::read_arguments::<#tuple>,
                    ::dubhe::proxy::convert_arguments::<#tuple>,
                )
            }
        });
        let arms = self.methods.iter().enumerate().map(|(index, method)| {
            let (ident, tuple) = (&method.ident, method.tuple_type());
            let (_, names) = method.signature();
            let passed = method.parameters.iter().map(|one| &one.ident);
            quote! {
                #index => {
                    let #names = ::dubhe::proxy::arguments::<#tuple>(call.into_arguments())?;
                    let value = self.implementation.#ident(#(#passed),*).await?;
                    ::std::result::Result::Ok(::dubhe::Response::of(::dubhe::Payload::of(value)))
                }
            }
        });
        quote! {
            #[doc = #doc]
            #[allow(dead_code)]
            #vis struct #service<T> {
                implementation: T,
                definition: ::std::sync::Arc<::dubhe::ServiceDefinition>,
            }

            #[allow(dead_code)]
            impl<T: #name> #service<T> {
                /// The service of `implementation`.
                #vis fn new(implementation: T) -> Self {
                    let methods = ::std::vec![#(#definitions),*];
                    let definition = ::std::sync::Arc::new(::dubhe::ServiceDefinition::new(#interface, methods));
                    Self { implementation, definition }
                }
            }

            #identity

            impl<T: #name> ::dubhe::Service for #service<T> {
                fn definition(&self) -> &::std::sync::Arc<::dubhe::ServiceDefinition> {
                    &self.definition
                }

                fn call(
                    &self,
                    index: usize,
                    call: ::dubhe::Invocation,
                ) -> ::dubhe::BoxFuture<'_, ::dubhe::Result<::dubhe::Response>> {
                    ::std::boxed::Box::pin(async move {
                        match index {
                            #(#arms)*
                            _ => ::std::result::Result::Err(::dubhe::proxy::no_such_index(#interface, index)),
                        }
                    })
                }
            }

            impl<T> ::std::fmt::Debug for #service<T> {
                fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    f.debug_struct(stringify!(#service)).field("definition", &self.definition).finish_non_exhaustive()
                }
            }
        }
    }
}

/// `T` of `dubhe::Result<T>` or `Result<T, E>`, and the whole type.
fn returned(output: &ReturnType, method: &Ident) -> Result<(Type, Type)> {
    let wrong = || Error::new_spanned(method, "a service method returns dubhe::Result<T>");
    let ReturnType::Type(_, whole) = output else { return Err(wrong()) };
    let Type::Path(path) = &**whole else { return Err(wrong()) };
    let last = path.path.segments.last().filter(|last| last.ident == "Result").ok_or_else(wrong)?;
    let PathArguments::AngleBracketed(generics) = &last.arguments else { return Err(wrong()) };
    match generics.args.first() {
        Some(GenericArgument::Type(value)) => Ok((value.clone(), (**whole).clone())),
        _ => Err(wrong()),
    }
}

/// `say_hello` -> `sayHello`.
fn camel_case(name: &str) -> String {
    let mut out = String::new();
    let mut upper = false;
    for c in name.trim_start_matches("r#").chars() {
        match c {
            '_' => upper = !out.is_empty(),
            c if upper => {
                out.extend(c.to_uppercase());
                upper = false;
            }
            c => out.push(c),
        }
    }
    out
}

/// The JVM descriptor of a Java type name: `int[]` -> `[I`, `com.example.User` -> `Lcom/example/User;`.
fn descriptor(name: &str) -> String {
    if let Some(element) = name.strip_suffix("[]") {
        return format!("[{}", descriptor(element));
    }
    match name {
        "boolean" => "Z".to_owned(),
        "byte" => "B".to_owned(),
        "char" => "C".to_owned(),
        "double" => "D".to_owned(),
        "float" => "F".to_owned(),
        "int" => "I".to_owned(),
        "long" => "J".to_owned(),
        "short" => "S".to_owned(),
        class => format!("L{};", class.replace('.', "/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_names_become_camel_case() {
        assert_eq!(camel_case("say_hello"), "sayHello");
        assert_eq!(camel_case("echo"), "echo");
        assert_eq!(camel_case("r#type"), "type");
        assert_eq!(camel_case("get_u2f_key"), "getU2fKey");
    }

    #[test]
    fn java_names_become_descriptors() {
        assert_eq!(descriptor("int"), "I");
        assert_eq!(descriptor("java.lang.String[][]"), "[[Ljava/lang/String;");
    }

    fn error(arguments: &str, item: &str) -> String {
        expand(arguments.parse().unwrap(), item.parse().unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn mistakes_are_told_with_what_to_do() {
        let trait_of = |method: &str| format!("trait Greeter {{ {method} }}");
        let named = r#"interface = "demo.Greeter""#;
        assert!(error("", &trait_of("")).contains("name the Java interface"));
        assert!(error(named, &trait_of("fn hello(&self) -> Result<()>;")).contains("is async"));
        assert!(
            error(named, &trait_of("async fn hello(&self) -> String;")).contains("returns dubhe::Result<T>")
        );
        assert!(
            error(named, &trait_of("async fn hello(&self, name: &str) -> Result<()>;")).contains("by value")
        );
        assert!(error(named, &trait_of("async fn hello() -> Result<()>;")).contains("`&self` first"));
        assert!(
            error(r#"interface = "a", grp = "b""#, &trait_of(""))
                .contains("known are interface, group, version")
        );
    }
}
