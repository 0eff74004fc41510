//! What programs that are linked with the shared library ask for by name: it changes with the interface.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libgestalt.so.3");
}
