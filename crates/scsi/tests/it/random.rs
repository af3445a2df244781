//! Commands that nobody would send.

use crate::disk::{HOST, Memory};
use proptest::prelude::*;
use smrlab_scsi::{MOST_BYTES, data_out, execute, execute_absent};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Nothing panics, and no answer is longer than what one command moves and its allocation length.
    #[test]
    fn no_command_does_harm(
        code in prop::sample::select(vec![0x03u8, 0x0a, 0x12, 0x16, 0x17, 0x1a, 0x28, 0x2a, 0x2f, 0x41, 0x42, 0x5a, 0x5e, 0x5f, 0x88, 0x8a, 0x93, 0x94, 0x95, 0x9e, 0xa0, 0xa3]),
        rest in prop::collection::vec(prop_oneof![3 => Just(0u8), 1 => any::<u8>()], 0..20),
        brought in 0usize..9000,
        zoned: bool,
    ) {
        let disk = if zoned { Memory::zoned() } else { Memory::new(416, 512) };
        let cdb: Vec<u8> = [code].into_iter().chain(rest).collect();
        let wanted = data_out(&disk, &cdb);
        prop_assert!(wanted <= MOST_BYTES);
        for answer in [execute(&disk, HOST, &cdb, &vec![0xa5; brought]), execute_absent(&disk, &cdb)] {
            prop_assert!(answer.map_or(0, |data| data.len() as u64) <= MOST_BYTES);
        }
    }
}
