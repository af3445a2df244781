//! The target with plain memory behind it: what the transport and the commands cost without a drive. For `make bench-device`.
//!
//!     memory_target HOST:PORT MIB

use smrlab_iscsi::{Target, listener};
use smrlab_scsi::{Change, Disk, Done, Erasing, Extents, Facts, Kind, Modes, Reservations};
use smrlab_units::{Blocks, Lba, Zone, ZoneAction};
use std::error::Error;
use std::net::TcpListener;
use std::ops::Range;
use std::sync::{Arc, RwLock};

struct Memory {
    facts: Facts,
    bytes: RwLock<Vec<u8>>,
    reservations: RwLock<Reservations>,
}

impl Memory {
    fn new(bytes: usize) -> Self {
        let facts = Facts {
            blocks: Blocks(bytes as u64 / 512),
            logical: 512,
            physical: 4096,
            product: "memory".to_owned(),
            serial: "memory".to_owned(),
            rpm: None,
            discards: false,
            kind: Kind::Conventional,
        };
        // All of it is there before anybody measures.
        Self { facts, bytes: RwLock::new(vec![1; bytes]), reservations: RwLock::default() }
    }
}

impl Disk for Memory {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn read(&self, lba: Lba, out: &mut [u8]) -> Done {
        let at = lba.0 as usize * 512;
        let bytes = self.bytes.read().unwrap_or_else(|e| e.into_inner());
        out.copy_from_slice(&bytes[at..at + out.len()]);
        Ok(())
    }

    fn write(&self, lba: Lba, data: &[u8], _fua: bool) -> Done {
        let at = lba.0 as usize * 512;
        self.bytes.write().unwrap_or_else(|e| e.into_inner())[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }

    fn change(&self, lba: Lba, bytes: &mut [u8], fua: bool, change: &mut Change<'_>) -> Done {
        self.read(lba, bytes)?;
        change(bytes)?;
        self.write(lba, bytes, fua)
    }

    fn flush(&self) -> Done {
        Ok(())
    }

    fn discard(&self, _: Lba, _: Blocks) -> Done {
        Ok(())
    }

    fn extents(&self, _: Lba, _: &mut Extents<'_>) -> Done {
        Ok(())
    }

    fn zone(&self, _: ZoneAction, _: Option<Range<Lba>>) -> Done {
        Ok(())
    }

    fn zones(&self, _: Lba, _: &mut dyn FnMut(&Zone) -> bool) {}

    fn erase(&self, _: Erasing, _: bool) -> Done {
        self.bytes.write().unwrap_or_else(|e| e.into_inner()).fill(0);
        Ok(())
    }

    fn modes(&self) -> Modes {
        Modes::default()
    }

    fn set_modes(&self, _: Modes) {}

    fn reserved(&self, look: &mut dyn FnMut(&Reservations)) {
        look(&self.reservations.read().unwrap_or_else(|e| e.into_inner()));
    }

    fn reserve(&self, change: &mut dyn FnMut(&mut Reservations)) {
        change(&mut self.reservations.write().unwrap_or_else(|e| e.into_inner()));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, mib] = &words[..] else { return Err("usage: memory_target HOST:PORT MIB".into()) };
    let disk = Box::new(Memory::new(mib.parse::<usize>()? << 20));
    let target = Target::new("iqn.2026-01.smrlab:bench".to_owned(), disk, 1);
    listener::listen(Arc::new(target), TcpListener::bind(address)?)?;
    loop {
        std::thread::park();
    }
}
