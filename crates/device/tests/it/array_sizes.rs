//! How large served arrays are, and their drives.

use crate::arrays::{ARRAYS, config, layers, scratch};
use smrlab_device::config::StoreKind;
use smrlab_device::{Config, Device};

/// The size that the host is to see is that of the array.
#[test]
fn the_size_is_that_of_the_array() {
    for array in ARRAYS {
        for layer in layers(array) {
            let dir = scratch();
            let wanted = 768 << 10;
            let device = Device::open(Config { host_size: Some(wanted), ..config(array, layer, dir.path()) });
            assert_eq!(device.unwrap().size(), wanted, "{array} on {layer}");
        }
    }
}

#[test]
fn arrays_of_drives_that_count_less_than_they_have_are_served_whole() {
    for drive in ["seagate-st8000dm004", "wd-ultrastar-dc-hc680"] {
        let whole = Config::new("a", drive, "cmr", StoreKind::Memory);
        let array = Config { array: Some("mirror".to_owned()), ..whole.clone() };
        let [one, two] =
            [&whole, &array].map(|c| Device::open(c.clone()).unwrap_or_else(|e| panic!("{drive}: {e}")));
        assert!(two.size() <= one.size() && two.size() > one.size() / 100 * 99, "{drive}");
        // Shortened, its drives are as long as one alone.
        let medium = [&whole, &array].map(|c| {
            let device = Device::open(Config { size: Some(1 << 30), ..c.clone() }).unwrap();
            device.medium(Some(0)).unwrap().with_runs(|s| s.blocks())
        });
        assert_eq!(medium[0], medium[1], "{drive}");
    }
}
