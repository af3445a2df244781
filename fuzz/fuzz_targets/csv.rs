#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| smrlab_fuzz::read("csv,columns=time:us;op;offset:B;size:4KiB;device", data));
