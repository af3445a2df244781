//! What a device lends to who takes a read in pieces is what it reads.

use smrlab_device::config::{StoreKind, Timing};
use smrlab_device::medium::Mode;
use smrlab_device::{Config, Device};
use smrlab_units::rng::Rng;
use std::cell::RefCell;

/// Layers that move what they keep, a medium that destroys, an array, and a queue that keeps reads waiting.
#[test]
fn what_is_lent_is_what_is_read() {
    let of = |layer: &str| Config {
        mode: Mode::Performance,
        ..Config::new("l", "tiny", layer, StoreKind::Memory)
    };
    let array = Config { array: Some("raid5,disks=3,chunk=4KiB".to_owned()), ..of("disk-cache") };
    let queued =
        Config { timing: Timing::Model, speed: 1e5, scheduler: "sptf,depth=4".to_owned(), ..of("s-block") };
    let plain = ["cmr", "s-block", "log", "e-region", "raw,tracks=3"].map(of);
    let mut all_destroyed = 0;
    for config in plain.into_iter().chain([array, queued]) {
        let (device, mut random) = (Device::open(config).unwrap(), Rng::new(5));
        let (about, mut asked) = (device.info(), 0);
        let blocks = device.size() / 512;
        let mut place = || {
            let start = random.below(blocks);
            (start * 512, (1 + random.below(300)).min(blocks - start) * 512)
        };
        for i in 0..200u8 {
            let (at, len) = place();
            match i % 8 {
                0 => device.trim(at, len, false).unwrap(),
                _ => device.write(at, &vec![i | 1; len as usize], false).unwrap(),
            }
            let (at, len) = place();
            let (mut read, lent) = (vec![0xee; len as usize], RefCell::new(vec![0xee; len as usize]));
            asked += len;
            let destroyed = || device.stats()["host"]["destroyed_reads"].as_u64().unwrap();
            let before = destroyed();
            device.read(at, &mut read).unwrap();
            let found = destroyed() - before;
            let take = |from: usize, piece: &[u8]| {
                lent.borrow_mut()[from..from + piece.len()].copy_from_slice(piece)
            };
            device.lend(at, len, &take).unwrap();
            assert!(read == *lent.borrow(), "{about}: request {i}");
            // Either way is told what it found destroyed.
            assert_eq!(destroyed() - before, 2 * found, "{about}: request {i}");
            all_destroyed += found;
        }
        let counted = &device.stats()["host"];
        assert_eq!(
            ["reads", "errors", "bytes_read"].map(|key| counted[key].as_u64().unwrap()),
            [400, 0, 2 * asked],
            "{counted}"
        );
        assert!(device.lend(device.size(), 512, &|_, _| panic!("there is nothing")).is_err());
    }
    assert!(all_destroyed > 0);
}
