#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    stackglass_fuzz::unwind_tables::check(bytes);
});
