//! Layers and arrays with parameters that are drawn from their own tables: sets of them that nobody wrote down. Not every one is accepted.

use crate::{Rng, layers};
use smrlab_array::entry::{BELOW, Takes};
use smrlab_array::{ARRAYS, ArrayEntry, parse};
use smrlab_stl::LayerEntry;
use smrlab_units::spec::{Kind, Param};

/// Sizes for layers, and for arrays, of small drives.
const LAYERS_SIZES: &[&str] = &["1%", "5%", "20%", "16blk", "40blk", "64blk"];
const ARRAYS_SIZES: &[&str] =
    &["1blk", "2blk", "3blk", "4blk", "7blk", "8blk", "12blk", "24blk", "64blk", "200blk", "10%"];
/// Most drives of one array: more of them show nothing else.
const MOST_DISKS: u64 = 6;
/// Zones that fit the drives of the kit.
const ZONES: &[&str] = &["8KiB", "16KiB", "20KiB", "32KiB", "44KiB"];

fn one_of(rng: &mut Rng, from: &[&str]) -> String {
    from[rng.below(from.len() as u64) as usize].to_owned()
}

/// A value for a parameter of this kind; none for free text.
fn value(kind: Kind, sizes: &[&str], rng: &mut Rng) -> Option<String> {
    Some(match kind {
        Kind::Switch => one_of(rng, &["on", "off"]),
        Kind::Choice(words) => one_of(rng, words),
        Kind::Share(least, most) => {
            let least = least.max(0.0);
            format!("{}%", 100.0 * (least + (most.min(0.5) - least).max(0.0) * rng.below(100) as f64 / 100.0))
        }
        Kind::Count(least, most) => {
            let some = [least, least + 1, least + 2, least + 5, 8, 16, 24, 40, 100];
            some[rng.below(some.len() as u64) as usize].clamp(least, most).to_string()
        }
        Kind::Real(least, most) => {
            (least + (most.min(3.0) - least).max(0.0) * rng.below(10) as f64 / 10.0).to_string()
        }
        Kind::Time => one_of(rng, &["0ms", "1ms", "5ms", "50ms"]),
        Kind::Band => one_of(rng, &["2tracks", "3tracks", "5tracks", "40blk"]),
        Kind::Size => one_of(rng, sizes),
        Kind::Text => return None,
    })
}

/// `text` with a quarter of these parameters, a half, or three quarters: what only some together show is seldom among few.
fn with_some(mut text: String, params: &[Param], sizes: &[&str], rng: &mut Rng) -> String {
    let quarters = 1 + rng.below(3);
    for param in params {
        if rng.below(4) < quarters
            && let Some(value) = value(param.kind, sizes, rng)
        {
            text += &format!(",{}={value}", param.name);
        }
    }
    text
}

/// The layer with some of its parameters.
pub fn layer(entry: &LayerEntry, rng: &mut Rng) -> String {
    with_some(entry.name.to_owned(), entry.params, LAYERS_SIZES, rng)
}

/// The same for power cuts: with the journal that the layer has.
pub fn durable_layer(entry: &LayerEntry, rng: &mut Rng) -> String {
    let others: Vec<Param> = entry.params.iter().filter(|p| p.name != "journal").copied().collect();
    let journal = if others.len() < entry.params.len() { ",journal=on" } else { "" };
    with_some(format!("{}{journal}", entry.name), &others, LAYERS_SIZES, rng)
}

/// An array of drives, or one in three times of such arrays, and what its drives are.
pub struct DrawnArray {
    /// The array.
    pub text: String,
    /// The layer of its drives.
    pub layer: String,
}

impl DrawnArray {
    /// Draws one, over any layer that keeps data.
    pub fn new(rng: &mut Rng) -> Self {
        Self::over(rng, |rng| {
            let all: Vec<_> = layers().into_iter().filter(|e| e.capabilities.keeps_data).collect();
            layer(all[rng.below(all.len() as u64) as usize], rng)
        })
    }

    /// Draws one over a layer that survives power cuts.
    pub fn durable(rng: &mut Rng) -> Self {
        Self::over(rng, |rng| {
            let all: Vec<_> = layers().into_iter().filter(|e| e.capabilities.survives_cut).collect();
            durable_layer(all[rng.below(all.len() as u64) as usize], rng)
        })
    }

    /// Draws one over a layer that `layer` draws, or over zones.
    fn over(rng: &mut Rng, layer: impl Fn(&mut Rng) -> String) -> Self {
        let several: Vec<_> = ARRAYS.iter().filter(|entry| !entry.params.is_empty()).collect();
        let lowest = several[rng.below(several.len() as u64) as usize];
        let mut text = array(lowest, rng);
        if rng.one_in(3) {
            // Who keeps zones stands on drives.
            let above: Vec<_> = several.iter().filter(|entry| entry.takes == Takes::Drives).collect();
            text = array(above[rng.below(above.len() as u64) as usize], rng) + BELOW + &text;
        }
        let zoned = lowest.takes == Takes::Zones || lowest.takes == Takes::Both && rng.one_in(2);
        let layer = if zoned {
            let conventional = if lowest.name == "dm-zoned" { 30 + rng.below(20) } else { 10 * rng.below(2) };
            format!(
                "zoned,zone={},conventional={conventional}%,max_open={}",
                one_of(rng, ZONES),
                1 + rng.below(6)
            )
        } else {
            layer(rng)
        };
        Self { text, layer }
    }

    /// The array's text has one of these words in each array that any other stands on, or in itself.
    fn all_have(&self, words: &[&str]) -> bool {
        self.text.split(BELOW).all(|part| words.iter().any(|word| part.contains(word)))
    }

    /// A log is written over only where nothing is needed.
    fn is_log(&self) -> bool {
        self.all_have(&["full-stripe", "groups=moving"])
    }

    /// What was acknowledged survives a power cut.
    pub fn survives_cut(&self) -> bool {
        let in_place = |part: &str| {
            part.starts_with("dvs") && !part.contains("groups=moving") && !part.contains("journal=on")
        };
        !self.text.split(BELOW).any(in_place)
    }

    /// The same, and after it each block reads the same again and again: without `intent=on` copies of a mirror differ.
    pub fn is_one_after_cut(&self) -> bool {
        let copies_differ = |part: &str| part.starts_with("mirror") && !part.contains("intent=on");
        self.survives_cut() && !self.text.split(BELOW).any(copies_differ)
    }

    /// After a power cut any of the drives that may be lost may be lost.
    pub fn fits_after_cut(&self) -> bool {
        self.survives_cut()
            && self.losses() > 0
            && (self.is_log() || self.all_have(&["intent=on", "journal=on"]))
    }

    /// A drive may be lost with the power.
    pub fn survives_cut_and_loss(&self) -> bool {
        self.survives_cut() && self.losses() > 0 && (self.is_log() || self.all_have(&["journal=on"]))
    }

    /// How many drives may be dead at a time.
    pub fn losses(&self) -> usize {
        parse(&self.text).map_or(0, |chosen| chosen.capabilities().losses as usize)
    }
}

/// The array with some of its parameters, its chunk of a few blocks and its drives a handful.
fn array(entry: &ArrayEntry, rng: &mut Rng) -> String {
    let mut text = entry.name.to_owned();
    let mut rest = Vec::new();
    for param in entry.params {
        match (param.name, param.kind) {
            ("chunk", _) => text += &format!(",chunk={}blk", [1, 2, 3, 4, 8][rng.below(5) as usize]),
            ("disks" | "copies", Kind::Count(least, _)) if rng.one_in(2) => {
                text += &format!(",{}={}", param.name, least + rng.below(MOST_DISKS - least + 1));
            }
            ("disks" | "copies", _) => {}
            _ => rest.push(*param),
        }
    }
    let text = with_some(text, &rest, ARRAYS_SIZES, rng);
    if !rng.one_in(4) {
        return text;
    }
    let caches: Vec<Param> = entry.parameters().into_iter().filter(|p| p.name.starts_with("ssd_")).collect();
    with_some(text + ",ssd_page=2blk", &caches, ARRAYS_SIZES, rng)
}
