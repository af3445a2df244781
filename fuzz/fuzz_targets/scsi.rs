#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| smrlab_fuzz::scsi::run(data));
