//! What C is to be told of functions that Rust exports: for tests that hold a header against the code.

/// Without line breaks and comments.
pub fn flat(text: &str) -> String {
    let mut rest = text;
    let mut without = String::new();
    while let Some((before, comment)) = rest.split_once("/*") {
        without.push_str(before);
        rest = comment.split_once("*/").expect("a comment ends").1;
    }
    without.push_str(rest);
    without.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The declarations in C of what is exported by flat Rust source. `c_type` says what C calls the type of a parameter or a result, by the
/// parameter's name and by Rust's name for the type.
pub fn declarations(source: &str, c_type: impl Fn(&str, &str) -> &'static str) -> Vec<String> {
    source.split("extern \"C\" fn ").skip(1).map(|function| declaration(function, &c_type)).collect()
}

fn declaration(function: &str, c_type: impl Fn(&str, &str) -> &'static str) -> String {
    let (name, rest) = function.split_once('(').expect("a list of parameters");
    let (parameters, rest) = rest.split_once(')').expect("its end");
    let returned = rest.split('{').next().expect("a body").trim().strip_prefix("-> ").map(str::trim);
    let parameters = parameters.split(',').map(str::trim).filter(|parameter| !parameter.is_empty());
    let parameters: Vec<String> = parameters
        .map(|parameter| {
            let (name, of) = parameter.split_once(": ").expect("a type");
            format!("{}{name}", c_type(name, of))
        })
        .collect();
    let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
    format!("{}{name}({parameters});", returned.map_or("void ", |of| c_type("", of)))
}
