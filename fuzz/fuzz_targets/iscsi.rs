#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| smrlab_fuzz::iscsi::run(data));
