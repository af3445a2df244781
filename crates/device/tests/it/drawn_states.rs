//! Served stacks that are drawn, which begin with each other's state: they do the same next, and lose nothing.

use crate::arrays::{Checked, scratch};
use crate::drawn_stacks::{die, drawn_drive, each, sized, unhurried};
use crate::power;
use crate::state::media;
use smrlab_array::ArrayState;
use smrlab_device::config::StoreKind;
use smrlab_device::{Config, Device};
use smrlab_drive::SavedState;
use smrlab_testkit::{DrawnArray, Rng, cases, drawn, layers, random};
use std::collections::BTreeSet;
use std::path::Path;

/// What has something that is in no state, as docs/arrays.md and docs/device.md say.
const LEFT_OUT: &[&str] = &[
    // Which pages were used last, which groups were being filled or asked for, which pages of tables are in memory.
    "ssd",
    "full-stripe",
    "groups=moving",
    "frequent",
    "recent",
    "tables=zone",
    // Which copy was read last, how full logs are with what is void, which zones are open, at which angle heads are.
    "mirror",
    "parity=log",
    "in media",
    "dm-zoned",
    "max_open",
    "floating",
];

/// The device's state, of an array or of a drive as the only one of `members`.
fn state(device: &Device, dir: &Path) -> ArrayState {
    let file = dir.join("state");
    // What is in the middle of work of its own goes on with that.
    let saved = (0..100_000).any(|_| match device.write_state(&file) {
        Ok(_) => true,
        Err(e) => {
            assert!(e.to_string().contains("try again"), "{e}");
            device.housekeeping();
            false
        }
    });
    assert!(saved, "the array does not come to rest");
    let bytes = std::fs::read(file).unwrap();
    if ArrayState::is_one(&bytes) {
        return ArrayState::decode(&bytes).unwrap();
    }
    ArrayState { members: vec![SavedState::decode(&bytes).unwrap()], ..ArrayState::default() }
}

/// What is in a state, in any order, as text.
fn contents(state: &ArrayState) -> BTreeSet<String> {
    let own = state.records();
    let own = own.iter().map(|r| format!("the array's {} {:?}", r.tag, r.words));
    let members = (0..).zip(&state.members).flat_map(|(i, SavedState { head, written, records, .. })| {
        let own = records.iter().map(move |r| format!("{i}: {} {:?}", r.tag, r.words));
        own.chain([format!("{i}: at {head}, {written:?}")])
    });
    own.chain(members).chain([format!("{:?}", state.array.written)]).collect()
}

/// Both hold the same; what differs is shown.
fn alike(got: &ArrayState, wanted: &ArrayState, what: &str) {
    let (got, wanted) = (contents(got), contents(wanted));
    let (more, less): (Vec<_>, Vec<_>) =
        (got.difference(&wanted).collect(), wanted.difference(&got).collect());
    assert!(more.is_empty() && less.is_empty(), "{what}: {more:#?} and not {less:#?}");
}

/// A stack at work, and another one that begins with its state; both then do the same. Answers that other one.
fn aged(stack: &str, dir: &Path, rng: &mut Rng) -> Checked {
    let own = |store: &str| power::config(stack, StoreKind::Directory(dir.join(store)));
    let first = Device::open(own("first")).unwrap();
    let mut first = Checked::of(first, rng.bits());
    first.write(rng.below(120));
    if rng.one_in(3) {
        first = first.again(own("first"));
    }
    let at_rest = state(&first.device, dir);
    let config = Config { from_state: Some(dir.join("state")), ..own("store") };
    let second = Device::open(config).unwrap();
    let does_alike = !LEFT_OUT.iter().any(|word| stack.contains(word));
    if does_alike {
        alike(&state(&second, dir), &at_rest, "what it began with");
    }
    let seed = rng.bits();
    let mut second = Checked::of(second, seed);
    first.seeded(seed);
    let requests = rng.below(120);
    for checked in [&mut first, &mut second] {
        checked.device.reset_stats();
        checked.write(requests);
    }
    if does_alike {
        assert_eq!(media(&second.device), media(&first.device));
        alike(&state(&second.device, dir), &state(&first.device, dir), "what it came to");
    }
    first.check("of the first");
    second.check("of the other");
    second
}

fn on(rng: &mut Rng, dir: &Path) -> String {
    if rng.one_in(2) { String::new() } else { drawn_drive(rng, dir) }
}

#[test]
fn a_layer_goes_on_where_another_was() {
    let mut rng = random(61);
    for entry in layers().into_iter().filter(|e| e.capabilities.keeps_data) {
        for _ in 0..cases(4) {
            let dir = scratch();
            let Some(stack) = (0..60)
                .find_map(|_| sized(drawn::layer(entry, &mut rng) + &on(&mut rng, dir.path()), &mut rng))
            else {
                continue;
            };
            let seed = rng.bits();
            println!("{stack}, seed {seed}");
            let own = || power::config(&stack, StoreKind::Directory(dir.path().join("store")));
            let second = aged(&stack, dir.path(), &mut Rng::new(seed));
            second.again(own()).check("started again");
        }
    }
}

/// Drives of the second die, and are replaced, over restarts and kills.
#[test]
fn an_array_goes_on_where_another_was() {
    let draw = |rng: &mut Rng| unhurried(DrawnArray::new, |_| true, rng);
    each(62, cases(40), draw, on, |drawn, stack, rng| {
        let dir = scratch();
        let second = aged(stack, dir.path(), rng);
        die(second, drawn, (stack, dir.path()), rng);
    });
}
