#![no_main]

#[path = "../../crates/native/tests/native/reading.rs"]
mod reading;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = reading::read(bytes);
    reading::serve(bytes);
});
