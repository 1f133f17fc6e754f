//! `#[stackglass::task]`: each call of an async function becomes a separate task in profiles.
//!
//! The macro works on plain tokens: the body becomes the body of an instrumented async block, and the rest of the
//! function is not inspected. So there is nothing to parse, and no dependency.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// Makes each call of an async function a separate task in profiles. Its name is that of the function, or the given
/// one:
///
/// ```ignore
/// #[stackglass::task]
/// async fn serve(port: u16) -> std::io::Result<()> { todo!() }
///
/// #[stackglass::task("client")]
/// async fn talk(&self) { todo!() }
/// ```
#[proc_macro_attribute]
pub fn task(name: TokenStream, function: TokenStream) -> TokenStream {
    rewritten(name, function).unwrap_or_else(|(what, at)| complaint(what, at))
}

type Complaint = (&'static str, Span);

fn rewritten(name: TokenStream, function: TokenStream) -> Result<TokenStream, Complaint> {
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    let here = Span::call_site();
    let word =
        |token: &TokenTree, word: &str| matches!(token, TokenTree::Ident(ident) if ident.to_string() == word);
    let Some(at) = tokens.iter().position(|token| word(token, "fn")) else {
        return Err(("#[stackglass::task] belongs on an async function", here));
    };
    if !tokens[..at].iter().any(|token| word(token, "async")) {
        let what = "#[stackglass::task] belongs on an async function: a plain one is polled by nobody";
        return Err((what, tokens[at].span()));
    }
    let body = match tokens.pop() {
        Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => body,
        _ => return Err(("#[stackglass::task] needs a function with a body", here)),
    };
    let name = match name.into_iter().collect::<Vec<_>>().as_slice() {
        [] => tokens.get(at + 1).map(|name| name.to_string()).unwrap_or_default(),
        [TokenTree::Literal(text)] if text.to_string().starts_with('"') => {
            return Ok(finished(tokens, body, TokenTree::Literal(text.clone())));
        }
        [other, ..] => {
            return Err(("the name of a task is a text: #[stackglass::task(\"name\")]", other.span()));
        }
    };
    let name = Literal::string(name.trim_start_matches("r#"));
    Ok(finished(tokens, body, TokenTree::Literal(name)))
}

/// `… { ::stackglass::task::instrument(async move { BODY }, NAME).await }`
fn finished(mut function: Vec<TokenTree>, body: Group, name: TokenTree) -> TokenStream {
    // Reports show the place of the body.
    let at = body.span_open().resolved_at(Span::call_site());
    let ident = |text: &str| TokenTree::Ident(Ident::new(text, at));
    let punct = |mark: char, spacing| {
        let mut punct = Punct::new(mark, spacing);
        punct.set_span(at);
        TokenTree::Punct(punct)
    };
    let colons = || [punct(':', Spacing::Joint), punct(':', Spacing::Alone)];
    let mut call: Vec<TokenTree> = Vec::new();
    for part in ["stackglass", "task", "instrument"] {
        call.extend(colons());
        call.push(ident(part));
    }
    let arguments = [ident("async"), ident("move"), TokenTree::Group(body), punct(',', Spacing::Alone), name];
    let mut arguments = Group::new(Delimiter::Parenthesis, arguments.into_iter().collect());
    arguments.set_span(at);
    call.extend([TokenTree::Group(arguments), punct('.', Spacing::Alone), ident("await")]);
    function.push(TokenTree::Group(Group::new(Delimiter::Brace, call.into_iter().collect())));
    function.into_iter().collect()
}

/// A compiler error at that place.
fn complaint(what: &str, at: Span) -> TokenStream {
    let mut text = Literal::string(what);
    text.set_span(at);
    let mut arguments = Group::new(Delimiter::Parenthesis, TokenTree::Literal(text).into());
    arguments.set_span(at);
    let tokens = [
        TokenTree::Ident(Ident::new("compile_error", at)),
        TokenTree::Punct(Punct::new('!', Spacing::Alone)),
        TokenTree::Group(arguments),
        TokenTree::Punct(Punct::new(';', Spacing::Alone)),
    ];
    tokens.into_iter().collect()
}
