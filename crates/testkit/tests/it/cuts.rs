//! Cuts the power at every media operation of every layer that promises to survive that, and shows what the others lose.

use smrlab_stl::Metadata;
use smrlab_testkit::{Cuts, Harness, Losses, drives, layers};

fn cut(text: &str, drive: &str, requests: u64) -> Losses {
    cut_with(Metadata::Nv, text, drive, requests)
}

fn cut_with(metadata: Metadata, text: &str, drive: &str, requests: u64) -> Losses {
    let all = drives::all();
    let (_, drive) = all.iter().find(|d| d.0 == drive).expect("a drive of the kit");
    let mut h = Harness::new(text, drive, metadata).unwrap_or_else(|e| panic!("{e}"));
    Cuts { requests, longest: 40, seed: 5 }.run(&mut h)
}

fn fits(text: &str, drive: &str) -> bool {
    drives::all().iter().any(|(name, d)| *name == drive && Harness::new(text, d, Metadata::Nv).is_ok())
}

#[test]
fn what_was_acknowledged_survives_every_cut() {
    for entry in layers() {
        let journal = entry.params.iter().any(|p| p.name == "journal");
        for text in entry.durable_texts() {
            let fits = ["zones and skew", "tiny"].into_iter().find(|d| fits(&text, d));
            let losses = cut(&text, fits.unwrap_or_else(|| panic!("{text} fits on neither")), 60);
            println!("{text}: {losses:?}");
            assert!(losses.cuts > 100, "{text}: {losses:?}");
            assert_eq!((losses.lost, losses.mixed), (0, 0), "{text}: {losses:?}");
            if journal {
                assert_eq!(losses.torn, 0, "a journal repairs the torn sector too: {text}: {losses:?}");
            }
        }
    }
    let idle = cut("disk-cache,journal=on,idle=10ms,band=16,cache=20%", "tiny", 60);
    assert!(idle.background > 20, "{idle:?}");
    assert_eq!((idle.lost, idle.mixed), (0, 0), "work in the background: {idle:?}");
    let media = cut_with(Metadata::Media, "static-14R(23),journal=on", "zones and skew", 40);
    assert_eq!((media.lost, media.mixed, media.torn), (0, 0, 0), "metadata on the medium: {media:?}");
    let partial = cut("rmw,mode=partial,journal=on", "zones and skew", 60);
    assert_eq!((partial.lost, partial.mixed, partial.torn), (0, 0, 0), "{partial:?}");
}

#[test]
fn in_place_layers_without_a_journal_lose_what_was_acknowledged() {
    for text in [
        "rmw",
        "rmw,mode=partial",
        "disk-cache",
        "static-1234",
        "static-R(4123)",
        "static-124R(3)",
        "static-14R(23)",
    ] {
        let losses = cut(text, "zones and skew", 120);
        println!("{text}: {losses:?}");
        assert!(losses.lost > 0, "{text}: {losses:?}");
    }
}
