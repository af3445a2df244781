//! Bugs that nobody thought of: every operator of a file exchanged for others, and bodies for plain answers.

use super::Bug;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// What stands there instead of an operator.
const INSTEAD: &[(&str, &[&str])] = &[
    ("==", &["!="]),
    ("!=", &["=="]),
    ("<", &["<=", ">"]),
    (">", &[">=", "<"]),
    ("<=", &["<", ">"]),
    (">=", &[">", "<"]),
    ("&&", &["||"]),
    ("||", &["&&"]),
    ("+", &["-", "*"]),
    ("-", &["+", "/"]),
    ("*", &["+", "/"]),
    ("/", &["%", "*"]),
    ("%", &["/", "+"]),
    ("+=", &["-=", "*="]),
    ("-=", &["+=", "/="]),
    ("*=", &["+=", "/="]),
    ("/=", &["%=", "*="]),
    ("<<", &[">>"]),
    (">>", &["<<"]),
    ("&", &["|", "^"]),
    ("|", &["&", "^"]),
    ("^", &["&", "|"]),
    ("&=", &["|="]),
    ("|=", &["&=", "^="]),
];

/// What a function answers instead, by the text of its type.
fn answers(output: &str) -> &'static [&'static str] {
    match output {
        "" => &["()"],
        "bool" => &["true", "false"],
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i32" | "i64" => &["0", "1"],
        "f64" => &["0.0", "1.0", "-1.0"],
        "String" => &["String::new()"],
        _ if output.starts_with("Option<") => &["None"],
        _ if output.starts_with("Vec<") => &["Vec::new()"],
        _ if output == "Result<()>" => &["Ok(())"],
        _ => &[],
    }
}

/// The bugs of `file` with this text; its tests have none.
pub fn drawn(file: &str, text: &str) -> Vec<Bug> {
    let mut found = Drawn { file, text, out: Vec::new() };
    if let Ok(parsed) = syn::parse_file(text) {
        found.visit_file(&parsed);
    }
    found.out
}

struct Drawn<'a> {
    file: &'a str,
    text: &'a str,
    out: Vec<Bug>,
}

impl Drawn<'_> {
    fn add(&mut self, place: Range<usize>, what: &str, replace: &str) {
        let line = self.text[..place.start].matches('\n').count() + 1;
        let name = format!("{}:{line}: {what} is {replace} ({})", self.file, place.start);
        let find = &self.text[place.clone()];
        self.out.push(Bug { at: Some(place.start), ..Bug::new(&name, self.file, find, replace) });
    }

    fn body(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let braces = &block.brace_token.span;
        let place = braces.open().byte_range().end..braces.close().byte_range().start;
        let head = &self.text[signature.fn_token.span.byte_range().start..place.start - 1];
        let output = head.split_once("->").map_or("", |(_, o)| o.split("where").next().unwrap_or(o).trim());
        if !block.stmts.is_empty() {
            let what = format!("fn {}", signature.ident);
            answers(output).iter().for_each(|a| self.add(place.clone(), &what, a));
        }
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|a| {
        let cfg = a.path().is_ident("cfg") && a.parse_args::<syn::Path>().is_ok_and(|p| p.is_ident("test"));
        cfg || a.path().is_ident("test")
    })
}

impl<'ast> Visit<'ast> for Drawn<'_> {
    fn visit_item_mod(&mut self, m: &'ast syn::ItemMod) {
        if !is_test(&m.attrs) {
            visit::visit_item_mod(self, m);
        }
    }

    fn visit_item_fn(&mut self, f: &'ast syn::ItemFn) {
        if !is_test(&f.attrs) {
            self.body(&f.sig, &f.block);
            visit::visit_item_fn(self, f);
        }
    }

    fn visit_impl_item_fn(&mut self, f: &'ast syn::ImplItemFn) {
        self.body(&f.sig, &f.block);
        visit::visit_impl_item_fn(self, f);
    }

    fn visit_expr_binary(&mut self, e: &'ast syn::ExprBinary) {
        let place = e.op.span().byte_range();
        let operator = &self.text[place.clone()];
        let others = INSTEAD.iter().find(|(is, _)| *is == operator).map_or(&[][..], |(_, others)| others);
        others.iter().for_each(|other| self.add(place.clone(), operator, other));
        visit::visit_expr_binary(self, e);
    }

    fn visit_expr_unary(&mut self, e: &'ast syn::ExprUnary) {
        if let syn::UnOp::Not(not) = &e.op {
            self.add(not.span.byte_range(), "!", "");
        }
        visit::visit_expr_unary(self, e);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_and_answers_are_exchanged_and_tests_left_alone() {
        let text =
            "fn f(a: u64) -> bool { !(a + 1 < 3) }\n#[cfg(test)]\nmod tests { fn g() -> u8 { 1 + 1 } }\n";
        let found = drawn("f.rs", text);
        let made: Vec<String> = found
            .iter()
            .map(|b| {
                let place = b.place(text).unwrap();
                format!("{}{}{}", &text[..place.start], b.replace, &text[place.end..])
            })
            .map(|t| t.lines().next().unwrap().to_owned())
            .collect();
        let body = |b: &str| format!("fn f(a: u64) -> bool {{{b}}}");
        let wanted = [
            "true",
            "false",
            " (a + 1 < 3) ",
            " !(a + 1 <= 3) ",
            " !(a + 1 > 3) ",
            " !(a - 1 < 3) ",
            " !(a * 1 < 3) ",
        ];
        assert_eq!(made, wanted.map(body));
    }
}
