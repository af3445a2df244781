//! What layers say that they take is what an allocator counts.
#![allow(unsafe_code)] // An allocator is unsafe by nature; this one counts and passes everything on.

use smrlab_stl::{BuildContext, HostRequest, LAYERS, Plan};
use smrlab_testkit::drives;
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local!(static LIVE: Cell<isize> = const { Cell::new(0) });

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.set(LIVE.get() + layout.size() as isize);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size() as isize);
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a layer holds beside its maps: lists that it works with.
const BESIDE: isize = 4096;

#[test]
fn layers_say_what_their_maps_take() {
    let drive = drives::plain(4000, 64, 2, 16);
    for entry in LAYERS {
        for options in entry.tested {
            let text = format!("{},{options}", entry.name);
            let empty = LIVE.get();
            let Ok(built) = smrlab_stl::build(&text, &BuildContext::new(drive.clone())) else { continue };
            let (mut layer, mut random) = (built.layer, Rng::new(3));
            let space = layer.host_blocks().0;
            let (at_first, said_at_first) = (LIVE.get(), layer.map_bytes() as isize);
            assert!(said_at_first <= at_first - empty, "{text}: {said_at_first} of {}", at_first - empty);
            let mut plan = Plan::new(false, false);
            for _ in 0..20_000 {
                let (lba, blocks) = (Lba(random.below(space - 16)), Blocks(1 + random.below(16)));
                plan.clear();
                layer.submit(SimTime::ZERO, &HostRequest::new(HostOp::Write, lba, blocks), &mut plan);
            }
            drop(plan);
            let (grown, said) = (LIVE.get() - at_first, layer.map_bytes() as isize - said_at_first);
            let beside = match entry.name {
                // The bands that rmw holds in memory while it rewrites them are no maps.
                "rmw" => grown,
                // All of its map is small trees, as full as they happen to be.
                "floating" => BESIDE + grown / 4,
                _ => BESIDE,
            };
            assert!((grown - beside..=grown).contains(&said), "{text}: {said} of {grown} bytes");
            // Zones have their states from the beginning on.
            let before = entry.name == "zoned";
            assert!(said > 500 || before, "{text}: {said} bytes after 20 000 requests");
        }
    }
}
