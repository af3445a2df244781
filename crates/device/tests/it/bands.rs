//! Bands of the served raw disk are the disk's own: what is written in one destroys nothing in another, whatever the layout.

use smrlab_device::config::StoreKind;
use smrlab_device::medium::Mode;
use smrlab_device::{Config, Device};
use std::sync::Arc;

/// The large preset in small: three surfaces, groups of four cylinders, two zones.
const LARGE: &str = include_str!("../../../../drives/modern-7200.toml");

const SEEKS: &str = "
[mechanics.read_seek]
curve = \"constant\"
time = { value = 1, unit = \"ms\", kind = \"assumed\", source = \"round number\" }

[mechanics.write_seek]
curve = \"constant\"
time = { value = 1, unit = \"ms\", kind = \"assumed\", source = \"round number\" }
";

fn small(layout: &str) -> String {
    let zones = LARGE.find("list = [").unwrap()..LARGE.find("kind = \"fitted\"").unwrap();
    let text = LARGE.replace(&LARGE[zones], "list = [[14, 40], [11, 32]]\n");
    let text = text.replace("surfaces = { value = 18", "surfaces = { value = 3");
    // A curve that fits so few cylinders.
    let text = text.split("[mechanics.read_seek]").next().unwrap().to_owned() + SEEKS;
    if layout == "hybrid" {
        return text.replace("value = 4096, unit = \"cylinders\"", "value = 4, unit = \"cylinders\"");
    }
    let lines = text.lines().filter(|l| !l.starts_with("group_cylinders"));
    lines.map(|l| l.replace("layout = \"hybrid\"", &format!("layout = \"{layout}\"")) + "\n").collect()
}

fn device(drive: &str, layer: &str) -> Arc<Device> {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    std::fs::write(file.path(), drive).unwrap();
    let drive = file.path().to_string_lossy();
    let config = Config::new("t", &drive, layer, StoreKind::Memory);
    Device::open(Config { mode: Mode::Data, errors: true, map_budget: 1 << 20, ..config }).unwrap()
}

fn write_band(device: &Device, number: u64, with: u8) {
    let band = device.raw().unwrap().band(number).unwrap();
    let data = vec![with; ((band.guard - band.start) * 512) as usize];
    device.write(band.start * 512, &data, false).unwrap();
}

#[test]
fn a_write_in_a_band_destroys_nothing_in_another() {
    for layout in ["hybrid", "surface", "cylinder"] {
        for layer in ["raw,band=1tracks", "raw,band=2tracks,tracks=3", "raw,band=30KiB"] {
            let device = device(&small(layout), layer);
            let bands = device.raw().unwrap().bands();
            assert!(bands > 2, "{layer} on {layout} has {bands} bands");
            (0..bands).for_each(|b| write_band(&device, b, b as u8));
            let mut buf = vec![0; 512];
            for rewritten in (0..bands).rev() {
                write_band(&device, rewritten, rewritten as u8);
                for b in 0..bands {
                    let band = device.raw().unwrap().band(b).unwrap();
                    for block in band.start..band.guard {
                        let place =
                            format!("{layer} on {layout}: block {block} of band {b} after band {rewritten}");
                        device.read(block * 512, &mut buf).unwrap_or_else(|e| panic!("{place}: {e}"));
                        assert_eq!(buf[100], b as u8, "{place}");
                    }
                }
            }
            let band = device.raw().unwrap().band(0).unwrap();
            for start in [band.guard, band.guard - 1] {
                let e = device.write(start * 512, &[1; 1024], false).unwrap_err();
                assert_eq!(e.errno(), libc::EPERM, "a write that is not wholly in a band");
            }
        }
    }
}

#[test]
fn reads_of_destroyed_blocks_are_counted_with_errors_too() {
    let device = device(&small("surface"), "raw");
    device.write(40 * 512, &[7; 512 * 80], false).unwrap();
    device.write(0, &[9; 512 * 40], false).unwrap();
    let mut buf = vec![0; 512 * 40];
    assert_eq!(device.read(40 * 512, &mut buf).unwrap_err().errno(), libc::EIO);
    assert_eq!(device.stats()["host"]["destroyed_reads"], 1);
}
