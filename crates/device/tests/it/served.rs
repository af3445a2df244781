//! The device as a surface sees it: data come back, survive a restart and a killed process, and errors are errors.

use proptest::prelude::*;
use smrlab_device::config::StoreKind;
use smrlab_device::medium::Mode;
use smrlab_device::{Config, Device};
use smrlab_units::rng::Rng;
use std::path::Path;
use std::sync::Arc;

fn config(layer: &str, store: StoreKind) -> Config {
    Config { mode: Mode::Data, map_budget: 1 << 20, ..Config::new("t", "tiny", layer, store) }
}

/// In memory where that is possible: much of this is made durable again and again.
pub(crate) fn scratch() -> tempfile::TempDir {
    let fast = Path::new("/dev/shm");
    if fast.is_dir() { tempfile::tempdir_in(fast) } else { tempfile::tempdir() }.unwrap()
}

fn at(dir: &Path) -> StoreKind {
    StoreKind::Directory(dir.join("store"))
}

/// Bands in which nothing is live any more are freed by steps that do nothing on the medium: those are recorded, too.
#[test]
fn idle_steps_without_operations_survive_a_killed_server() {
    let dir = scratch();
    let own = || config("steady-log,step=5%,idle=1ms,idle_free=0%,idle_dead=6.5%,tracks=3", at(dir.path()));
    let (mut plain, mut random) = (Vec::new(), Rng::new(3));
    for round in 0..12u8 {
        let device = Device::open(own()).unwrap();
        plain.resize(device.size() as usize, 0);
        let mut all = vec![0; plain.len()];
        device.read(0, &mut all).unwrap();
        assert!(all == plain, "round {round}");
        for i in 0..60u8 {
            let start = random.below(device.size() / 512 - 60) as usize * 512;
            let range = start..start + (1 + random.below(60) as usize) * 512;
            plain[range.clone()].fill(i ^ round << 3 | 1);
            device.write(start as u64, &plain[range], false).unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(3));
        (0..60).for_each(|_| device.housekeeping());
    }
}

/// Every layer that keeps data: what was written is read back, before and after the process ends without a word.
#[test]
fn every_layer_keeps_data_over_a_killed_server() {
    for entry in smrlab_stl::LAYERS.iter().filter(|e| e.capabilities.keeps_data) {
        let dir = scratch();
        let mut plain: Vec<u8> = Vec::new();
        let mut random = Rng::new(1);
        let mut next = |n: u64| random.below(n);
        for round in 0..4 {
            let device = Device::open(config(entry.name, at(dir.path()))).unwrap();
            plain.resize(device.size() as usize, 0);
            let blocks = device.size() / 512;
            for i in 0..300u64 {
                let start = next(blocks);
                let len = (1 + next(24)).min(blocks - start);
                let range = (start * 512) as usize..((start + len) * 512) as usize;
                match next(8) {
                    0 => {
                        device.zero(start * 512, len * 512, false).unwrap();
                        plain[range].fill(0);
                    }
                    1 => device.flush().unwrap(),
                    _ => {
                        plain[range.clone()].fill((i ^ start ^ round) as u8 | 1);
                        device.write(start * 512, &plain[range], false).unwrap();
                    }
                }
            }
            let mut all = vec![0; plain.len()];
            device.read(0, &mut all).unwrap();
            assert!(all == plain, "{}: data differ in round {round}", entry.name);
            if round == 2 {
                device.close().unwrap();
            }
            // Dropped as it is: nothing that the process had yet to do is done.
        }
        let device = Device::open(config(entry.name, at(dir.path()))).unwrap();
        let mut all = vec![0; plain.len()];
        device.read(0, &mut all).unwrap();
        assert!(all == plain, "{}: data differ after the last start", entry.name);
    }
}

/// The raw medium's state, destroyed blocks included, is the same after a restart from the log and from a checkpoint.
#[test]
fn raw_state_survives_restarts() {
    let dir = scratch();
    let mut before = Vec::new();
    for round in 0..5u64 {
        let device = Device::open(config("raw,tracks=3", at(dir.path()))).unwrap();
        let mut all = vec![0; device.size() as usize];
        if round > 0 {
            device.read(0, &mut all).unwrap();
            assert!(all == before, "round {round}");
        }
        for i in 0..200 {
            let start = (i * 7919 + round * 31) * 512 % (device.size() - 8192);
            device.write(start / 512 * 512, &vec![(i + round) as u8; 4096], false).unwrap();
        }
        if round % 2 == 1 {
            device.close().unwrap();
        }
        before.resize(all.len(), 0);
        device.read(0, &mut before).unwrap();
    }
}

#[test]
fn wrong_stores_are_refused_and_not_touched() {
    let dir = scratch();
    let open =
        |layer: &str| Device::open(config(layer, at(dir.path()))).map(|_| ()).map_err(|e| e.to_string());
    let served = Device::open(config("raw", at(dir.path()))).unwrap();
    assert!(open("raw").unwrap_err().contains("served already"));
    served.write(0, &[7; 512], true).unwrap();
    drop(served);
    assert!(open("cmr").unwrap_err().contains("was made with layer"));
    let data = dir.path().join("store/data.000");
    let len = std::fs::metadata(&data).unwrap().len();
    let file = std::fs::OpenOptions::new().write(true).open(&data).unwrap();
    file.set_len(len - 512).unwrap();
    assert!(open("raw").unwrap_err().contains("truncated"));
    file.set_len(len).unwrap();
    let header = dir.path().join("store/header");
    let good = std::fs::read_to_string(&header).unwrap();
    std::fs::write(&header, good.replace("raw", "rav")).unwrap();
    assert!(open("raw").unwrap_err().contains("checksum"));
    std::fs::write(&header, good.replace("store 2", "store 1")).unwrap();
    assert!(open("raw").unwrap_err().contains("version"));
    std::fs::write(&header, &good).unwrap();
    let device = Device::open(config("raw", at(dir.path()))).unwrap();
    let mut block = [0; 512];
    device.read(0, &mut block).unwrap();
    assert_eq!(block, [7; 512]);
    let foreign = dir.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("letter"), "dear").unwrap();
    let e = Device::open(config("raw", StoreKind::Directory(foreign.clone()))).err().unwrap().to_string();
    assert!(e.contains("not a store") && foreign.join("letter").exists(), "{e}");
}

/// A torn tail of the log, as a lost machine leaves it, costs what was not flushed and nothing else.
#[test]
fn a_torn_log_ends_at_its_last_whole_record() {
    let dir = scratch();
    let device = Device::open(config("raw,tracks=1", at(dir.path()))).unwrap();
    for i in 0..10u64 {
        device.write(i * 8192, &[i as u8 + 1; 512], true).unwrap();
    }
    drop(device);
    let log = dir.path().join("store/log.0");
    let mut bytes = std::fs::read(&log).unwrap();
    // Each write is followed by a mark; before them all is the start of the server.
    bytes[(1 + 2 * 7) * 32 + 9] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    let device = Device::open(config("raw,tracks=1", at(dir.path()))).unwrap();
    assert_eq!(device.medium(None).unwrap().with_runs(|s| s.runs().len()), 7);
}

/// A band that was reset is empty after a restart, too; and an array's store is that of no other array.
#[test]
fn what_was_reset_stays_so_and_a_store_is_of_its_array() {
    let dir = scratch();
    let open = || Device::open(config("raw,tracks=2,band=3", at(dir.path()))).unwrap();
    let device = open();
    device.write(0, &[7; 512], false).unwrap();
    assert_eq!(device.raw().unwrap().reset_band(0).unwrap().append, 0);
    drop(device);
    assert_eq!(open().raw().unwrap().band(0).unwrap().append, 0);
    let dir = scratch();
    let of = |array: &str| Config { array: Some(array.into()), ..config("cmr", at(dir.path())) };
    drop(Device::open(of("mirror,disks=2")).unwrap());
    let refused = Device::open(of("striped,disks=2")).map(drop).unwrap_err().to_string();
    assert!(refused.contains("was made with layer"), "{refused}");
}

#[test]
fn modes_and_guards() {
    let mut c = config("raw,tracks=2,band=3", StoreKind::Memory);
    c.mode = Mode::Performance;
    let device = Device::open(c).unwrap();
    let raw = device.raw().unwrap();
    let band = raw.band(0).unwrap();
    assert_eq!((raw.band(0).unwrap().append, band.start), (0, 0));
    let e = device.write(band.guard * 512, &[1; 512], false).unwrap_err();
    assert_eq!(e.errno(), libc::EPERM);
    let told = device.events.after(0).pop().unwrap();
    assert_eq!((told.kind, told.block), ("error", Some(band.guard)));
    // A track, then the one before it: its victims read as garbage with their own address.
    let track = (band.guard / 3) as usize;
    device.write((track * 512) as u64, &vec![9; track * 512], false).unwrap();
    device.write(0, &vec![8; track * 512], false).unwrap();
    let mut block = [0; 512];
    device.read((track * 512) as u64, &mut block).unwrap();
    assert_eq!((u64::from_le_bytes(block[..8].try_into().unwrap()), block[100]), (track as u64, 0xA5));
    let told =
        || device.events.after(0).into_iter().filter(|e| e.kind == "destroyed-read").collect::<Vec<_>>();
    assert_eq!(told().iter().map(|e| e.block).collect::<Vec<_>>(), [Some(track as u64)]);
    (0..200).for_each(|_| device.read((track * 512) as u64, &mut block).unwrap());
    assert_eq!(told().len(), 99, "all are counted, the first ones told");
    let mut both = [0; 1024];
    device.read((track * 512) as u64, &mut both).unwrap();
    let second = u64::from_le_bytes(both[512..520].try_into().unwrap());
    assert_eq!((second, both[612]), (track as u64 + 1, 0xA5), "each block of a read has its own address");
    assert_eq!(raw.band(0).unwrap().append, 2 * track as u64);
    assert_eq!(raw.reset_band(0).unwrap().append, 0);
    device.read((track * 512) as u64, &mut block).unwrap();
    assert_eq!(block, [0; 512]);
    let mut c = config("raw,tracks=2", StoreKind::Memory);
    c.errors = true;
    let device = Device::open(c).unwrap();
    device.write(0, &vec![8; track * 512], false).unwrap();
    assert_eq!(device.read((track * 512) as u64, &mut block).unwrap_err().errno(), libc::EIO);
    assert!(device.events.after(0).iter().any(|e| e.block == Some(track as u64)));
}

#[test]
fn injected_faults_come_when_asked() {
    let device = Device::open(config("raw", StoreKind::Memory)).unwrap();
    let extra: Arc<smrlab_device::control::Extra> = Arc::new(|_, _| None);
    let ask = |line: &str| smrlab_device::control::answer(&device, &*extra, line).map_err(|e| e.to_string());
    ask(r#"{"cmd":"inject","error_at":2,"unreadable":[100,108]}"#).unwrap();
    let mut block = [0; 512];
    device.read(0, &mut block).unwrap();
    assert!(device.read(0, &mut block).is_err() && device.read(0, &mut block).is_ok());
    assert!(device.read(104 * 512, &mut block).is_err());
    device.write(104 * 512, &block, false).unwrap();
    assert!(device.read(104 * 512, &mut block).is_ok() && device.read(105 * 512, &mut block).is_err());
    // Written over to its very ends nothing is left of it, whatever is read around.
    ask(r#"{"cmd":"inject","unreadable":[200,202]}"#).unwrap();
    let mut around = [0; 6 * 512];
    assert!(device.read(198 * 512, &mut around).is_err());
    device.write(200 * 512, &around[..2 * 512], false).unwrap();
    assert!(device.read(198 * 512, &mut around).is_ok() && device.read(105 * 512, &mut block).is_err());
    ask(r#"{"cmd":"inject","clear":true}"#).unwrap();
    assert!(device.read(105 * 512, &mut block).is_ok());
    let idle = || ask(r#"{"cmd":"stats"}"#).unwrap()["host"].as_object().unwrap().values().all(|n| *n == 0);
    assert!(!idle());
    ask(r#"{"cmd":"reset-stats"}"#).unwrap();
    assert!(idle());
    assert!(ask(r#"{"cmd":"inject","sloww":1}"#).unwrap_err().contains("unknown field"));
    let medium = device.medium(None).unwrap().with_runs(|s| s.blocks());
    ask(&format!(r#"{{"cmd":"inject","unreadable":[{},{medium}]}}"#, medium - 1)).unwrap();
    for (first, end) in [(5, medium + 1), (medium, medium + 8), (5, 5)] {
        let refused = ask(&format!(r#"{{"cmd":"inject","unreadable":[{first},{end}]}}"#)).unwrap_err();
        assert!(refused.contains("none of the medium"), "{refused}");
    }
    let cells =
        |n: u64| ask(&format!(r#"{{"cmd":"map","cells":{n}}}"#)).unwrap()["cells"].as_array().unwrap().len();
    let all = medium as usize;
    assert_eq!([100, 5000, 1 << 20].map(cells), [100, 5000.min(all), (1 << 16).min(all)]);
    // Of an array's disks the one that is named.
    let array =
        Device::open(Config { array: Some("mirror,disks=2".into()), ..config("cmr", StoreKind::Memory) });
    let array = array.unwrap();
    let tell = |line: &str| smrlab_device::control::answer(&array, &*extra, line);
    tell(r#"{"cmd":"inject","disk":1,"unreadable":[0,8]}"#).unwrap();
    let readable = |disk| array.medium(Some(disk)).unwrap().read(0, &mut [0; 512]).is_ok();
    assert_eq!([0, 1].map(readable), [true, false]);
    assert!(["inject", "map"].iter().all(|cmd| tell(&format!(r#"{{"cmd":"{cmd}","disk":2}}"#)).is_err()));
    assert!(
        ask(r#"{"cmd":"bands"}"#).is_ok() && ask(r#"{"cmd":"nope"}"#).is_err() && ask("nonsense").is_err()
    );
}

/// Half a block is nothing that a drive has, wherever it is asked for; a size that is no whole number of units is rounded down.
#[test]
fn requests_and_sizes_are_whole_units() {
    let c = Config { block: 4096, host_size: Some(15 * 512), ..config("cmr", StoreKind::Memory) };
    let device = Device::open(c).unwrap();
    assert_eq!((device.size(), device.block_size()), (4096, 4096));
    for block in [512, 4096] {
        let device = Device::open(Config { block, ..config("cmr", StoreKind::Memory) }).unwrap();
        let (unit, end) = (u64::from(block), device.size());
        let uneven = [
            (1, unit),
            (unit / 2, unit),
            (unit, unit - 1),
            (unit, unit / 2),
            (unit, 1),
            (unit - 1, unit + 1),
        ];
        let beyond = [(end, unit), (end - unit, 2 * unit), (end + unit, unit)];
        for (offset, len) in uneven.into_iter().chain(beyond) {
            let mut buf = vec![0; len as usize];
            for e in [
                device.read(offset, &mut buf),
                device.write(offset, &buf, false),
                device.zero(offset, len, false),
                device.trim(offset, len, false),
            ] {
                assert_eq!(e.unwrap_err().errno(), libc::EINVAL, "{len} bytes at {offset}, of {block}");
            }
        }
        device.write(end - unit, &vec![1; block as usize], false).unwrap();
    }
}

/// A line in, a line out; what fails says so, and the next line is answered too.
#[test]
fn the_control_socket_tells_answers_from_errors() {
    use std::io::{BufRead, BufReader, Write};
    let (dir, device) = (scratch(), Device::open(config("cmr", StoreKind::Memory)).unwrap());
    let path = dir.path().join("control");
    smrlab_device::control::listen(device.clone(), &path, Arc::new(|_, _| None)).unwrap();
    let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut ask = |line: &str| -> serde_json::Value {
        writeln!(stream, "{line}").unwrap();
        serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
    };
    for wrong in ["nonsense", r#"{"cmd":"bands"}"#, r#"{"cmd":"nope"}"#] {
        let answer = ask(wrong);
        assert!(answer["error"].is_string() && answer.get("ok").is_none(), "{wrong}: {answer}");
    }
    let answer = ask(r#"{"cmd":"info"}"#);
    assert!(answer["ok"]["size"] == device.size() && answer.get("error").is_none(), "{answer}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever a client asks for: an answer or an error, never the end of the server.
    #[test]
    fn any_request_is_answered(
        requests in prop::collection::vec((0u8..6, any::<u64>(), any::<u32>(), any::<bool>()), 1..40),
        layer in prop_oneof![Just("raw,tracks=4"), Just("cmr"), Just("rmw")],
    ) {
        let device = Device::open(config(layer, StoreKind::Memory)).unwrap();
        for (kind, offset, len, wild) in requests {
            let (offset, len) = if wild {
                (offset, u64::from(len))
            } else {
                (offset % (device.size() + 4096) / 512 * 512, u64::from(len) % 16384 / 512 * 512)
            };
            let mut buf = vec![3; len.min(1 << 20) as usize];
            let inside = |n: usize| {
                let n = n as u64;
                (offset | n).is_multiple_of(512) && offset.checked_add(n).is_some_and(|end| end <= device.size())
            };
            match kind {
                0 => prop_assert_eq!(device.read(offset, &mut buf).is_ok(), inside(buf.len())),
                1 => prop_assert_eq!(device.write(offset, &buf, wild).is_ok(), inside(buf.len())),
                2 => prop_assert!(device.flush().is_ok()),
                3 => prop_assert_eq!(device.trim(offset, len, false).is_ok(), inside(len as usize)),
                4 => prop_assert_eq!(device.zero(offset, len, false).is_ok(), inside(len as usize)),
                _ => {
                    let mut at = offset;
                    let done = device.extents(offset, len, &mut |a, n, _| {
                        assert!(a == at && n > 0);
                        at = a + n;
                    });
                    prop_assert_eq!(done.is_ok(), inside(len as usize));
                    prop_assert!(done.is_err() || len == 0 || at > offset);
                }
            }
        }
    }
}

/// The files of a store, those of its disks too, whose names begin so.
fn files(dir: &Path, begins: &str) -> usize {
    let all = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = all.partition(|path| path.is_dir());
    let own = files.iter().filter(|f| f.file_name().is_some_and(|n| n.to_string_lossy().starts_with(begins)));
    own.count() + folders.iter().map(|folder| self::files(folder, begins)).sum::<usize>()
}

/// A device that is closed leaves a checkpoint of all that it was; one that is dropped leaves its log.
#[test]
fn a_closed_device_leaves_a_checkpoint() {
    let mirror = |layer| Config {
        array: Some("mirror,chunk=8blk,intent=on".to_owned()),
        ..config(layer, StoreKind::Memory)
    };
    for (own, checkpoints) in [
        (config("cmr", StoreKind::Memory), 1),
        (config("rmw", StoreKind::Memory), 1),
        (config("raw,tracks=3", StoreKind::Memory), 1),
        // Each of two disks has one, and the array.
        (mirror("rmw"), 3),
    ] {
        let dir = scratch();
        let layer = own.layer.clone();
        let device = Device::open(Config { store: at(dir.path()), ..own }).unwrap();
        device.write(0, &[7; 8192], false).unwrap();
        device.flush().unwrap();
        assert_eq!(files(dir.path(), "checkpoint."), 0, "{layer}");
        device.close().unwrap();
        assert_eq!(files(dir.path(), "checkpoint."), checkpoints, "{layer}");
    }
}

/// As much as the whole drive offers can be asked for, and no block more.
#[test]
fn a_host_may_ask_for_all_that_a_drive_offers() {
    for layer in ["cmr", "rmw"] {
        let all = Device::open(config(layer, StoreKind::Memory)).unwrap().size();
        let open = |size| Device::open(Config { host_size: Some(size), ..config(layer, StoreKind::Memory) });
        assert_eq!(open(all).unwrap().size(), all, "{layer}");
        let e = open(all + 512).err().unwrap().to_string();
        assert!(e.contains(&format!("offers the host {all} bytes: --size can be no more")), "{e}");
    }
}

/// Without modelled time background work comes step by step between requests, and no request waits for all of it.
#[test]
fn idle_work_waits_for_housekeeping_and_keeps_the_data() {
    let device = Device::open(config("disk-cache,idle=1ms", StoreKind::Memory)).unwrap();
    let background = || device.stats()["media"]["layer"]["idle_cleaned_bands"].as_u64().unwrap_or(0);
    let steps = || device.stats()["media"]["by_cause"].to_string();
    let blocks = device.size() / 512;
    let mut plain = vec![0; device.size() as usize];
    for i in 0..40u64 {
        let at = i * 7919 % (blocks - 1);
        plain[(at * 512) as usize..(at * 512 + 512) as usize].fill(i as u8 + 1);
        device.write(at * 512, &[i as u8 + 1; 512], false).unwrap();
    }
    std::thread::sleep(std::time::Duration::from_millis(20));
    let before = (background(), steps());
    let mut block = [0; 512];
    device.read(0, &mut block).unwrap();
    let counted = |text: &str| text.matches("clean").count();
    assert_eq!(
        (background(), counted(&steps())),
        (before.0, counted(&before.1)),
        "a request did the idle work"
    );
    std::thread::sleep(std::time::Duration::from_millis(20));
    (0..50).for_each(|_| device.housekeeping());
    assert_ne!(steps(), before.1, "nothing was cleaned while idle");
    let mut all = vec![0; plain.len()];
    device.read(0, &mut all).unwrap();
    assert!(all == plain);
}

/// A drive whose head damages the blocks that follow, and not tracks: as it is, and behind layers.
#[test]
fn drives_with_a_block_profile_are_served() {
    for layer in ["raw", "s-block", "disk-cache"] {
        let drive = "cassuto2010-307gb".into();
        let device = Device::open(Config { drive, ..config(layer, StoreKind::Memory) }).unwrap();
        let at = |i: u64| i * (device.size() / 64) / 512 * 512;
        (0..64).for_each(|i| device.write(at(i), &[i as u8 + 1; 4096], false).unwrap());
        let mut buf = [0; 4096];
        for i in 0..64 {
            device.read(at(i), &mut buf).unwrap();
            assert_eq!(buf, [i as u8 + 1; 4096], "{layer}");
        }
        if layer == "raw" {
            // The last block of a write is what the 1999 blocks behind it hold.
            device.write(4096, &[7; 512], false).unwrap();
            device.read(4096 + 1999 * 512 - 3072, &mut buf).unwrap();
            assert_eq!((buf[0], buf[3583], buf[3584]), (7, 7, 0));
        }
    }
}
