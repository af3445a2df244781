//! Writes that a drive's buffer has acknowledged and that are not on the medium yet: what reads must get of them.

use crate::error::{Result, RunError};
use smrlab_stl::HostRequest;
use smrlab_units::{HostOp, counted};

/// In the order in which they were sent, in which those that overlap are carried out: the buffer may take a short one earlier
/// than a long one that was sent before it.
#[derive(Debug, Default)]
pub(super) struct Taken(Vec<HostRequest>);

fn fault(read: &HostRequest, what: &str) -> RunError {
    let (id, lba, blocks) = (read.id, read.lba, counted(read.blocks.0, "block"));
    RunError::Verification(format!("verify-media: request {id} read {blocks} at LBA {lba} {what}"))
}

impl Taken {
    /// Of an append nobody knows where it goes before it is carried out; nothing of its zone overtakes it.
    pub(super) fn add(&mut self, write: &HostRequest) {
        if write.op == HostOp::Write {
            let at = self.0.partition_point(|w| w.id <= write.id);
            self.0.insert(at, *write);
        }
    }

    /// The newest one that was sent before `read` and of which that asks for a block.
    fn newest(&self, read: &HostRequest) -> Option<&HostRequest> {
        let end = read.lba.0 + read.blocks.0;
        let meets = |w: &&HostRequest| w.id < read.id && w.lba.0 < end && read.lba.0 < w.lba.0 + w.blocks.0;
        self.0.iter().rev().find(meets)
    }

    /// The layer refuses a request.
    ///
    /// # Errors
    /// It is a write that was acknowledged.
    pub(super) fn refused(&self, request: &HostRequest) -> Result<()> {
        if !self.0.iter().any(|w| w.id == request.id) {
            return Ok(());
        }
        let told = format!(
            "verify-media: request {} was acknowledged by the drive's buffer, and then refused",
            request.id
        );
        Err(RunError::Verification(told))
    }

    /// The medium carries out a request: a write is there now; a read must not pass by one that is not.
    ///
    /// # Errors
    /// It does.
    pub(super) fn dispatched(&mut self, request: &HostRequest) -> Result<()> {
        self.0.retain(|w| w.id != request.id);
        match self.newest(request).filter(|_| request.op == HostOp::Read) {
            None => Ok(()),
            Some(w) => Err(fault(
                request,
                &format!("from the medium, while the drive's buffer held what request {} wrote there", w.id),
            )),
        }
    }

    /// A read is answered from `write`, which must be the newest of them and hold all of it. Found here anew: this is what judges
    /// the drive's choice.
    ///
    /// # Errors
    /// It is another, or does not hold all.
    pub(super) fn answered(&self, read: &HostRequest, write: &HostRequest) -> Result<()> {
        let end = read.lba.0 + read.blocks.0;
        match self.newest(read) {
            Some(w) if w.id != write.id => {
                Err(fault(read, &format!("from request {}, and request {} wrote there last", write.id, w.id)))
            }
            Some(w) if w.lba <= read.lba && end <= w.lba.0 + w.blocks.0 => Ok(()),
            Some(w) => Err(fault(
                read,
                &format!("from what request {} wrote, which holds a part of them only", w.id),
            )),
            None => Err(fault(read, "from the drive's buffer, which holds no write of them")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::{Blocks, Lba};

    fn request(id: u64, op: HostOp, lba: u64, blocks: u64) -> HostRequest {
        HostRequest::new(op, Lba(lba), Blocks(blocks)).numbered(id)
    }

    #[test]
    fn reads_get_the_newest_write_that_was_taken() {
        let write = |id, lba, blocks| request(id, HostOp::Write, lba, blocks);
        let read = |id, lba, blocks| request(id, HostOp::Read, lba, blocks);
        let mut t = Taken::default();
        t.add(&write(1, 100, 10));
        t.add(&write(3, 104, 2));
        let says = |r: Result<()>| r.map_err(|e| e.to_string()).err().unwrap_or_default();
        let (first, second) = (write(1, 100, 10), write(3, 104, 2));
        assert_eq!(says(t.answered(&read(4, 100, 4), &first)), "");
        assert_eq!(says(t.answered(&read(4, 104, 2), &second)), "");
        let older = says(t.answered(&read(4, 104, 2), &first));
        assert!(older.contains("from request 1, and request 3 wrote there last"), "{older}");
        assert!(
            says(t.answered(&read(4, 103, 2), &second)).contains("what request 3 wrote, which holds a part")
        );
        // Sent before request 3: the older one counts.
        assert_eq!(says(t.answered(&read(2, 103, 2), &first)), "");
        assert!(says(t.answered(&read(4, 90, 10), &first)).contains("holds no write of them"));
        assert!(says(t.dispatched(&read(4, 95, 6))).contains("while the drive's buffer held what request 1"));
        assert_eq!(says(t.dispatched(&read(0, 95, 6))), "");
        // Of two of which the buffer had room for the later one first, the later one counts.
        t.add(&write(2, 104, 1));
        assert_eq!(says(t.answered(&read(4, 104, 2), &second)), "");
        assert!(says(t.refused(&write(2, 104, 1))).contains("request 2 was acknowledged"));
        assert_eq!(says(t.refused(&write(4, 104, 1))), "");
        t.dispatched(&write(2, 104, 1)).unwrap();
        t.dispatched(&write(1, 100, 10)).unwrap();
        assert_eq!(says(t.dispatched(&read(4, 95, 6))), "");
    }
}
