#![no_main]

#[allow(dead_code)] // one target uses one entrance
#[path = "../../crates/proto/tests/fuzz/harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    harness::coordinator(bytes);
});
