//! MODE SENSE: the pages of caching and of control. Nothing can be changed or saved.

use crate::Sense;
use crate::command::{Answer, Call};

/// Saved values do not exist.
const NOT_SAVED: Sense = Sense { code: [0x39, 0x00], ..Sense::INVALID_FIELD };
/// FUA and DPO are looked at.
const DPOFUA: u8 = 0x10;

/// The pages by their codes; caching: WCE, what was acknowledged is durable after a flush.
const PAGES: [(u8, &[u8]); 2] = [
    (0x08, &[0x08, 0x12, 0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    // Control: GLTSD (nothing is logged), unrestricted reordering.
    (0x0a, &[0x0a, 0x0a, 0x02, 0x10, 0, 0, 0, 0, 0, 0, 0, 0]),
];

/// The pages that are asked for.
fn pages(call: &Call<'_>) -> Answer {
    let (control, code, subpage) = (call.byte(2) >> 6, call.byte(2) & 0x3f, call.byte(3));
    if control == 3 {
        return Err(NOT_SAVED);
    }
    if subpage != 0 && !(code == 0x3f && subpage == 0xff) {
        return Err(Sense::at_field(3));
    }
    let mut data = Vec::new();
    for (_, page) in PAGES.iter().filter(|(own, _)| code == 0x3f || code == *own) {
        data.extend(*page);
        if control == 1 {
            // What can be changed: nothing.
            let at = data.len() - page.len() + 2;
            data[at..].fill(0);
        }
    }
    if data.is_empty() { Err(Sense::at_field(2)) } else { Ok(data) }
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

pub(crate) fn sense_6(call: &Call<'_>) -> Answer {
    let (descriptor, pages) = (descriptor(call), pages(call)?);
    let length = 3 + descriptor.len() + pages.len();
    let mut data = vec![length as u8, 0, DPOFUA, descriptor.len() as u8];
    data.extend(descriptor);
    data.extend(pages);
    Ok(data)
}

/// Long block descriptors may be left out although they were accepted (LLBAA).
pub(crate) fn sense_10(call: &Call<'_>) -> Answer {
    let (descriptor, pages) = (descriptor(call), pages(call)?);
    let length = (6 + descriptor.len() + pages.len()) as u16;
    let [high, low] = length.to_be_bytes();
    let mut data = vec![high, low, 0, DPOFUA, 0, 0, 0, descriptor.len() as u8];
    data.extend(descriptor);
    data.extend(pages);
    Ok(data)
}
