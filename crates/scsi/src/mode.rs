//! MODE SENSE and MODE SELECT: the pages of error recovery, caching, control, its extension, and informational exceptions. Three of their bits can be changed,
//! and saved.

use crate::command::{Answer, Call};
use crate::{Sense, number};

/// A page of the subpage format: byte 1 says which one, two bytes how long it is.
const SPF: u8 = 0x40;
/// All pages, and all subpages.
const ALL_PAGES: u8 = 0x3f;
const ALL_SUBPAGES: u8 = 0xff;
/// Saved values do not exist.
const NOT_SAVED: Sense = Sense { code: [0x39, 0x00], ..Sense::INVALID_FIELD };
/// FUA and DPO are looked at; the disk is protected against writes.
const DPOFUA: u8 = 0x10;
const PROTECTED: u8 = 0x80;

/// What hosts can change, until the disk is reset or started again: then it is as it was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// WCE: what was acknowledged is durable after a flush; off: with its acknowledgement.
    pub write_cache: bool,
    /// D_SENSE: sense data have descriptors, and so room for blocks beyond 2^32.
    pub descriptors: bool,
    /// SWP: what would change the disk is refused.
    pub write_protected: bool,
    /// What needs the medium is refused until the disk is started; no bit of a page.
    pub stopped: bool,
}

impl Default for Modes {
    fn default() -> Self {
        Self { write_cache: true, descriptors: false, write_protected: false, stopped: false }
    }
}

/// A bit of a page that can be changed, by its name in the standard.
struct Bit {
    name: &'static str,
    page: u8,
    at: usize,
    mask: u8,
}

const WCE: Bit = Bit { name: "WCE", page: 0x08, at: 2, mask: 0x04 };
const D_SENSE: Bit = Bit { name: "D_SENSE", page: 0x0a, at: 2, mask: 0x04 };
const SWP: Bit = Bit { name: "SWP", page: 0x0a, at: 4, mask: 0x08 };

impl Modes {
    /// What can be saved of them, a line for each: what a disk keeps.
    pub fn to_text(mut self) -> String {
        self.bits().map(|(bit, on)| format!("{}={}\n", bit.name, u8::from(*on))).concat()
    }

    /// What was saved; `None`: the text is none of [`to_text`](Self::to_text).
    pub fn from_text(text: &str) -> Option<Self> {
        let mut modes = Self::default();
        for ((bit, on), line) in modes.bits().into_iter().zip(text.lines()) {
            *on = matches!(line.strip_prefix(bit.name)?, "=1");
        }
        (modes.to_text() == text).then_some(modes)
    }

    fn bits(&mut self) -> [(Bit, &mut bool); 3] {
        [(WCE, &mut self.write_cache), (D_SENSE, &mut self.descriptors), (SWP, &mut self.write_protected)]
    }
}

/// The pages without what can be changed, ascending. Error recovery: AWRE (what is written can be read again), times of the drive's own. Control:
/// TST 1 (each initiator has a set of tasks of its own), GLTSD (nothing is logged), unrestricted reordering. Its extension: no clock that a host sets,
/// no priority that commands have at first, sense data as long as they are. Informational exceptions: MRIE 6 (said to who asks for log page 2Fh).
const PAGES: [&[u8]; 5] = [
    &[0x01, 0x0a, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    &[0x08, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    &[0x0a, 0x0a, 0x22, 0x10, 0, 0, 0, 0, 0, 0, 0, 0],
    &[0x4a, 0x01, 0, 28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    &[0x1c, 0x0a, 0, 0x06, 0, 0, 0, 0, 0, 0, 0, 0],
];

/// Which page it is, and which of its subpages: 0 where it has none (SPF).
fn names(body: &[u8]) -> (u8, u8) {
    (body[0] & 0x3f, if body[0] & SPF != 0 { body[1] } else { 0 })
}

/// A page with these modes, which MODE SELECT takes.
fn page(body: &[u8], mut modes: Modes) -> Vec<u8> {
    let mut out = body.to_vec();
    for (bit, on) in modes.bits() {
        if bit.page == body[0] && *on {
            out[bit.at] |= bit.mask;
        }
    }
    out
}

/// What can be changed of a page.
fn changeable(body: &[u8]) -> Vec<u8> {
    let (mut out, header) = (vec![0; body.len()], if body[0] & SPF != 0 { 4 } else { 2 });
    out[..header].copy_from_slice(&body[..header]);
    for (bit, _) in Modes::default().bits() {
        if bit.page == body[0] {
            out[bit.at] |= bit.mask;
        }
    }
    out
}

/// The pages that are asked for.
fn pages(call: &Call<'_>) -> Answer {
    let (control, code, subpage) = (call.byte(2) >> 6, call.byte(2) & 0x3f, call.byte(3));
    let saved = call.disk.saved();
    if control == 3 && saved.is_none() {
        return Err(NOT_SAVED);
    }
    let of_page: Vec<_> =
        PAGES.into_iter().filter(|body| code == ALL_PAGES || code == names(body).0).collect();
    if of_page.is_empty() {
        return Err(Sense::at_field(2));
    }
    // Of all pages there is subpage 0, or all of them: others are reserved.
    let there = |body: &&[u8]| code != ALL_PAGES && names(body).1 == subpage;
    if !matches!(subpage, 0 | ALL_SUBPAGES) && !of_page.iter().any(there) {
        return Err(Sense::at_field(3));
    }
    let wanted = of_page.iter().filter(|body| subpage == ALL_SUBPAGES || subpage == names(body).1);
    let data: Vec<u8> = wanted
        .flat_map(|body| {
            let mut page = match control {
                0 => page(body, call.disk.modes()),
                1 => changeable(body),
                2 => page(body, Modes::default()),
                _ => page(body, saved.unwrap_or_default()),
            };
            // PS: it can be saved.
            page[0] |= u8::from(saved.is_some()) << 7;
            page
        })
        .collect();
    Ok(data)
}

/// The short block descriptor, unless the host does not want one.
fn descriptor(call: &Call<'_>) -> Vec<u8> {
    if call.byte(1) & 0x08 != 0 {
        return Vec::new();
    }
    let blocks = u32::try_from(call.facts().logical_blocks()).unwrap_or(u32::MAX);
    let mut data = blocks.to_be_bytes().to_vec();
    data.extend(call.facts().logical.to_be_bytes());
    data
}

/// The device-specific parameter of a header.
fn specific(call: &Call<'_>) -> u8 {
    DPOFUA | if call.disk.modes().write_protected { PROTECTED } else { 0 }
}

pub(crate) fn sense_6(call: &Call<'_>) -> Answer {
    let (descriptor, pages) = (descriptor(call), pages(call)?);
    let length = 3 + descriptor.len() + pages.len();
    let mut data = vec![length as u8, 0, specific(call), descriptor.len() as u8];
    data.extend(descriptor);
    data.extend(pages);
    Ok(data)
}

/// Long block descriptors may be left out although they were accepted (LLBAA).
pub(crate) fn sense_10(call: &Call<'_>) -> Answer {
    let (descriptor, pages) = (descriptor(call), pages(call)?);
    let length = (6 + descriptor.len() + pages.len()) as u16;
    let [high, low] = length.to_be_bytes();
    let mut data = vec![high, low, 0, specific(call), 0, 0, 0, descriptor.len() as u8];
    data.extend(descriptor);
    data.extend(pages);
    Ok(data)
}

pub(crate) fn list_6(call: &Call<'_>) -> u64 {
    call.number(4, 1)
}

pub(crate) fn list_10(call: &Call<'_>) -> u64 {
    call.number(7, 2)
}

pub(crate) fn select_6(call: &Call<'_>) -> Answer {
    select(call, list_6(call) as usize, 4)
}

pub(crate) fn select_10(call: &Call<'_>) -> Answer {
    select(call, list_10(call) as usize, 8)
}

/// MODE SELECT with a list of `length` bytes, of which `header` are its header. Nothing changes before all of it is found to be good.
fn select(call: &Call<'_>, length: usize, header: usize) -> Answer {
    // SP: all that can be saved is, whether it is in the list or not. PF: pages are those of the standard.
    let saves = call.byte(1) & 0x01 != 0;
    if saves && call.disk.saved().is_none() || call.byte(1) & 0x10 == 0 && length > 0 {
        return Err(Sense::at_field(1));
    }
    let modes = if length == 0 { call.disk.modes() } else { selected(call, length, header)? };
    if saves {
        call.told(call.disk.save(modes))?;
    }
    call.disk.set_modes(modes);
    Ok(Vec::new())
}

/// The modes that a list leads to.
fn selected(call: &Call<'_>, length: usize, header: usize) -> Result<Modes, Sense> {
    let list = call.out.get(..length).filter(|l| l.len() >= header).ok_or(Sense::LIST_LENGTH)?;
    let described = if header == 4 { usize::from(list[3]) } else { number(list, 6, 2) as usize };
    // The short descriptor that MODE SENSE gives: its blocks have the length that they have.
    if !matches!(described, 0 | 8) || header == 8 && list[4] & 1 != 0 {
        return Err(Sense::INVALID_LIST);
    }
    let mut rest = list.get(header + described..).ok_or(Sense::LIST_LENGTH)?;
    // As many blocks as there are: 0 is said for that, too, and the largest number where more would not fit.
    let (blocks, block) = (number(list, header, 4), number(list, header + 5, 3));
    let all = call.facts().logical_blocks().min(u64::from(u32::MAX));
    let same = [0, all, u64::from(u32::MAX)].contains(&blocks)
        && [0, u64::from(call.facts().logical)].contains(&block);
    if described == 8 && !same {
        return Err(Sense::INVALID_LIST);
    }
    let mut modes = call.disk.modes();
    while !rest.is_empty() {
        let same = |body: &&[u8]| body[0] == rest[0] && (body[0] & SPF == 0 || rest.get(1) == body.get(1));
        let body = PAGES.into_iter().find(same).ok_or(Sense::INVALID_LIST)?;
        let new = rest.get(..body.len()).ok_or(Sense::LIST_LENGTH)?;
        let (old, mask) = (page(body, modes), changeable(body));
        let kept = |i: usize| (new[i] ^ old[i]) & !mask[i] == 0;
        if new[1] != body[1] || !(2..body.len()).all(kept) {
            return Err(Sense::INVALID_LIST);
        }
        for (bit, on) in modes.bits() {
            if bit.page == body[0] {
                *on = new[bit.at] & bit.mask != 0;
            }
        }
        rest = &rest[body.len()..];
    }
    Ok(modes)
}
