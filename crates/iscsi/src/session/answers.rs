//! How commands end: data for the host, status and sense data.

use super::{Out, Session};
use crate::pdu::{NO_TAG, Pdu, opcode};
use smrlab_scsi::Refused;
use std::io::{self, Write};
use std::sync::atomic::Ordering::Relaxed;

/// Statuses of SAM-5.
const CHECK_CONDITION: u8 = 0x02;
const CONFLICT: u8 = 0x18;

impl<W: Write + Send> Session<'_, W> {
    /// Sends what a command read and its status; `needed` bytes are what its CDB takes from the host.
    pub(super) fn answer(&self, task: &Pdu, needed: u64, answer: Result<Vec<u8>, Refused>) -> io::Result<()> {
        let (reads, writes) = (task.flags() & 0x40 != 0, task.flags() & 0x20 != 0);
        let out = &mut self.out.lock();
        out.open -= 1;
        let data = answer.as_deref().unwrap_or_default();
        let moved = if needed > 0 { needed } else { data.len() as u64 };
        // What goes the other way is not expected.
        let this_way = moved == 0 || if needed > 0 { writes } else { reads };
        let expected = if this_way { u64::from(task.word(20)) } else { 0 };
        let room = if reads { data.len().min(expected as usize) } else { 0 };
        // O: the command has more data than the host said; U: less.
        let (flag, left) = match moved.cmp(&expected) {
            std::cmp::Ordering::Greater => (0x04, moved - expected),
            std::cmp::Ordering::Less => (0x02, expected - moved),
            std::cmp::Ordering::Equal => (0, 0),
        };
        if room > 0 {
            return self.data_in(out, task, &data[..room], (flag, left as u32));
        }
        let mut pdu = Pdu::new(opcode::RESPONSE).with(16, task.tag()).with(44, left as u32);
        pdu.header[1] |= flag;
        let mut body = Vec::new();
        match answer {
            Ok(_) => {}
            Err(Refused::Conflict) => pdu.header[3] = CONFLICT,
            Err(Refused::Check(sense)) => {
                pdu.header[3] = CHECK_CONDITION;
                let sense = sense.data(self.target.disk.modes().descriptors);
                body.extend((sense.len() as u16).to_be_bytes());
                body.extend(sense);
            }
        }
        out.send(pdu, &body)
    }

    /// Data for the host; the last PDU has the status.
    fn data_in(&self, out: &mut Out<W>, task: &Pdu, data: &[u8], residual: (u8, u32)) -> io::Result<()> {
        let length = self.most_sent.load(Relaxed);
        let mut at = 0;
        let mut in_burst = 0;
        for (number, piece) in data.chunks(length).enumerate() {
            let end = at + piece.len() == data.len();
            in_burst += piece.len();
            // A sequence ends where the next piece would make it longer than a burst.
            let last = end || in_burst + length > self.agreed.burst;
            let mut pdu = Pdu::new(opcode::DATA_IN);
            pdu.header[1] = u8::from(last) << 7 | if end { 0x01 | residual.0 } else { 0 };
            pdu.header[8..16].copy_from_slice(&task.header[8..16]);
            let pdu = pdu
                .with(16, task.tag())
                .with(20, NO_TAG)
                .with(36, number as u32)
                .with(40, at as u32)
                .with(44, if end { residual.1 } else { 0 });
            if end {
                return out.send(pdu, piece);
            }
            out.send_between(pdu, piece)?;
            at += piece.len();
            if last {
                in_burst = 0;
            }
        }
        Ok(())
    }
}
