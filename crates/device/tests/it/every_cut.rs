//! The power is cut, or the server killed, at every operation on the stores of an array in turn: before and after every write to
//! the medium of a disk or to the SSD, and before and after every sync. What was flushed, of a killed server what was
//! acknowledged, has to be there; and then a disk is lost, too.

use crate::power::{Allowed, Disk, SECTOR, in_doubt, open, scratch};
use parking_lot::Mutex;
use smrlab_device::Device;
use smrlab_units::rng::Rng;
use std::sync::Arc;
use tempfile::TempDir;

/// Of the device: all stripes are used again and again, and what is made good after a cut is soon made good.
const SIZE: Option<u64> = Some(24 << 10);

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Of what was not synced any sectors are there.
    PowerCut,
    /// Everything that was written is there.
    Kill,
}

/// When a disk is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// With the end, before anything can be made good.
    WithIt,
    /// As soon as all is made good.
    Afterwards,
    Never,
}

/// What comes of all points.
#[derive(Debug, Default)]
struct Found {
    points: u64,
    /// Points at which something was lost.
    lost: u64,
}

fn all(device: &Device) -> Vec<u8> {
    let mut all = vec![0; device.size() as usize];
    device.read(0, &mut all).unwrap();
    all
}

/// What may be read after an end at any time, and what was written last.
struct Known {
    allowed: Allowed,
    model: Vec<u8>,
}

/// A few requests in some stripes at the start and across their borders.
fn work(device: &Device, disk: &Mutex<Disk>, end: End, known: &Mutex<Known>) {
    let mut random = Rng::new(5);
    for stamp in 1..=10 {
        let (start, blocks) = (random.below(24), 1 + random.below(14));
        let (at, n) = ((start * 512) as usize, (blocks * 512) as usize);
        let data: Vec<u8> = match stamp {
            7 => vec![0; n],
            _ => (0..n).map(|i| stamp ^ (i / SECTOR) as u8 | 0x80).collect(),
        };
        let flush = stamp == 5;
        if !flush {
            let known = &mut *known.lock();
            known.allowed.add(at, &data);
            known.model[at..at + n].copy_from_slice(&data);
        }
        match stamp {
            5 => device.flush().unwrap(),
            7 => device.zero(at as u64, n as u64, false).unwrap(),
            _ => device.write(at as u64, &data, stamp == 9).unwrap(),
        }
        let flushed = flush || stamp == 9;
        disk.lock().answered += u64::from(flushed);
        if flushed || end == End::Kill {
            let known = &mut *known.lock();
            known.allowed = Allowed::only(&known.model);
        }
        if stamp % 4 == 0 {
            device.housekeeping();
        }
    }
}

/// Whether anything is lost of what an end left in `image`; a disk that is lost with the end has no store any more.
fn is_lost(array: &str, image: &TempDir, point: u64, (end, loss): (End, Loss), allowed: &Allowed) -> bool {
    let cut_after = |left: u64| {
        let mut disk = Disk::of(image.path(), left, Rng::new(point));
        disk.all_survives = end == End::Kill;
        Arc::new(Mutex::new(disk))
    };
    let boot = |n| if end == End::PowerCut { n } else { 1 };
    if loss == Loss::WithIt {
        let disks = (0..).take_while(|i| image.path().join(format!("disk.{i}")).exists()).count() as u64;
        std::fs::remove_dir_all(image.path().join(format!("disk.{}", point % disks))).unwrap();
    }
    // Now and then recovery does not get to its end either.
    let again = point.is_multiple_of(4).then(|| cut_after(1 + point / 4 % 12)).and_then(|disk| {
        drop(open(array, SIZE, (image.path(), boot(2)), &disk));
        disk.lock().image.take()
    });
    let dir = again.as_ref().unwrap_or(image).path();
    let device = open(array, SIZE, (dir, boot(3)), &Arc::new(Mutex::new(Disk::unwatched())));
    let found = all(&device);
    let mut lost = !allowed.wrong(&found).is_empty();
    if loss == Loss::Afterwards {
        while in_doubt(&device) {
            device.housekeeping();
        }
        let (served, clock) = device.array().unwrap();
        served.fail(clock, point % served.disks() as u64).unwrap();
        lost |= all(&device) != found;
    }
    lost
}

/// All points of an array, `ARRAY over LAYER`, up to that at which so much was lost.
fn every(array: &str, end: End, loss: Loss, enough: u64) -> Found {
    let dir = scratch();
    let disk = Arc::new(Mutex::new(Disk::of(dir.path(), u64::MAX, Rng::new(1))));
    let device = open(array, SIZE, (dir.path(), 1), &disk);
    for (i, byte) in [0x11, 0x22, 0x33].into_iter().enumerate() {
        device.write(i as u64 * 7 * 512, &[byte; 20 * 512], false).unwrap();
    }
    device.close().unwrap();
    drop(device);
    let device = open(array, SIZE, (dir.path(), 1), &disk);
    let model = all(&device);
    let known = Arc::new(Mutex::new(Known { allowed: Allowed::only(&model), model }));
    let found = Arc::new(Mutex::new(Found::default()));
    let see = {
        let (array, known, found) = (array.to_owned(), known.clone(), found.clone());
        move |image: TempDir| {
            let mut found = found.lock();
            if found.lost == enough {
                return;
            }
            let lost = is_lost(&array, &image, found.points, (end, loss), &known.lock().allowed);
            found.points += 1;
            found.lost += u64::from(lost);
        }
    };
    *disk.lock() = Disk::of(dir.path(), u64::MAX, Rng::new(2));
    disk.lock().all_survives = end == End::Kill;
    disk.lock().at_every = Some(Box::new(see));
    work(&device, &disk, end, &known);
    disk.lock().at_every = None;
    assert!(all(&device) == known.lock().model, "{array}: what was written is not what is read");
    let found = std::mem::take(&mut *found.lock());
    println!("{array}, {end:?}, disk lost: {loss:?}: {found:?}");
    assert!(found.points >= 24 || found.lost == enough, "{found:?}");
    found
}

fn nothing_is_lost(array: &str, loss: Loss) {
    for end in [End::PowerCut, End::Kill] {
        assert_eq!(every(array, end, loss, u64::MAX).lost, 0, "{array}, {end:?}, disk lost: {loss:?}");
    }
}

macro_rules! survives {
    ($($name:ident: $array:expr, $loss:ident;)*) => {$(
        #[test]
        fn $name() {
            nothing_is_lost($array, Loss::$loss);
        }
    )*};
}

survives! {
    spanning: "spanning,disks=2 over cmr", Never;
    striped_ssd: "striped,disks=2,chunk=7blk,ssd_write=8KiB,ssd_page=2KiB over s-block", Never;
    raid5: "raid5,disks=3,chunk=4blk over cmr", Afterwards;
    raid5_intent: "raid5,disks=3,chunk=4blk,intent=on over cmr", Afterwards;
    raid5_ssd: "raid5,disks=3,chunk=4blk,ssd_write=8KiB,ssd_page=2KiB over cmr", Afterwards;
    raid5_log: "raid5,disks=4,chunk=8blk,write=modify,parity=log,log=6blk,log_region=16blk over cmr", Afterwards;
    raid5_log_intent:
        "raid5,disks=4,chunk=8blk,write=modify,parity=log,log=9blk,log_region=16blk,log_on=ssd,intent=on over cmr",
        Afterwards;
    raid5_journal: "raid5,disks=4,chunk=4blk,journal=on over s-block", WithIt;
    raid6: "raid6,disks=4,chunk=4blk over cmr", Afterwards;
    raid6_intent: "raid6,disks=4,chunk=4blk,intent=on over s-block", Afterwards;
    raid6_journal: "raid6,disks=5,chunk=4blk,journal=on over cmr", WithIt;
    mirror: "mirror,disks=2,chunk=4blk over cmr", WithIt;
    mirror_of_three: "mirror,disks=3,chunk=4blk over s-block", Afterwards;
    mirror_intent: "mirror,disks=4,chunk=4blk,intent=on over cmr", Afterwards;
    dm_zoned: "dm-zoned,reserved=1,copy=4KiB over zoned,zone=32KiB,conventional=50%", Never;
    zone_log: "zone-log over zoned,zone=8KiB,conventional=0%", Never;
    full_stripe: "full-stripe,disks=3,chunk=4blk,segment=4,batch=2 over cmr", WithIt;
    full_stripe_zones: "full-stripe,disks=3,chunk=8blk,overprovision=0%,batch=3 over zoned,zone=16KiB,conventional=0%", WithIt;
    dvs_moving: "dvs,groups=moving,fill=1,overprovision=0%,disks=4,chunk=2blk,segment=5,batch=4 over s-block", WithIt;
    mirror_of_stripes: "mirror,chunk=4blk / striped,disks=2,chunk=3blk over cmr", WithIt;
    raid5_of_mirrors: "raid5,disks=3,chunk=4blk,intent=on / mirror,chunk=2blk,intent=on over cmr", Afterwards;
    mirror_of_dm_zoned:
        "mirror,chunk=4blk / dm-zoned,reserved=1,copy=4KiB over zoned,zone=32KiB,conventional=50%", WithIt;
    raid5_of_zone_logs: "raid5,disks=3,chunk=8blk / zone-log over zoned,zone=8KiB,conventional=0%", Afterwards;
    raid5_with_ssds: "raid5,disks=3,chunk=4blk / spanning,disks=1,ssd_write=8KiB,ssd_page=2KiB over cmr", Afterwards;
    dvs_journal: "dvs,overprovision=0%,disks=5,chunk=1blk,segment=6,journal=on over cmr", WithIt;
    dvs_journal_s_block: "dvs,overprovision=0%,disks=3,chunk=4blk,segment=3,journal=on over s-block", WithIt;
    dvs_journal_ssd: "dvs,disks=4,chunk=4blk,segment=8,overprovision=20%,journal=on,ssd_write=8KiB,ssd_page=2KiB over cmr", WithIt;
}

/// The control: without the journal rows of a dead disk are lost with the power (the write hole), and to a killed server as well;
/// and DVS loses what it collects.
#[test]
fn what_has_no_journal_loses_something() {
    for (array, loss) in [
        ("raid5,disks=3,chunk=4blk,intent=on over cmr", Loss::WithIt),
        ("raid5,disks=4,chunk=8blk,write=modify,parity=log,log=6blk,log_region=16blk over cmr", Loss::WithIt),
        ("dvs,overprovision=0%,disks=5,chunk=1blk,segment=6 over cmr", Loss::Never),
    ] {
        for end in [End::PowerCut, End::Kill] {
            assert_eq!(every(array, end, loss, 6).lost, 6, "{array}, {end:?}: next to nothing was lost");
        }
    }
}
