//! Which task of a session is the next one: SIMPLE, ORDERED and HEAD OF QUEUE, as SAM-5 has them.

use super::Task;
use crate::pdu::Pdu;
use std::collections::{BTreeMap, BTreeSet};

/// Where a task stands among those of its session: heads of the queue first, and then as they came.
pub(super) type Order = (bool, u64);

/// Tasks whose data came and that wait for a worker, or are being carried out.
#[derive(Default)]
pub(super) struct Work {
    pub(super) queue: BTreeMap<Order, Task>,
    /// By tag: whether the initiator still wants the answer.
    pub(super) running: BTreeMap<u32, bool>,
    pub(super) over: bool,
    came: u64,
    /// All that are not answered, those too whose data are to come.
    open: BTreeSet<Order>,
    /// Those among them that no later one overtakes: ORDERED and HEAD OF QUEUE.
    alone: BTreeSet<Order>,
}

impl Work {
    /// The place of a command that came.
    pub(super) fn place(&mut self, pdu: &Pdu) -> Order {
        let attribute = pdu.flags() & 0x07;
        self.came += 1;
        let order = (attribute != 3, self.came);
        self.open.insert(order);
        if matches!(attribute, 2 | 3) {
            self.alone.insert(order);
        }
        order
    }

    /// A task is answered, or aborted. Whether others may begin now that could not.
    pub(super) fn leave(&mut self, order: Order) -> bool {
        self.open.remove(&order);
        let freed = !self.alone.is_empty();
        self.alone.remove(&order);
        freed
    }

    /// Takes the next task out of the queue, if it may begin: an ORDERED one when all before it are over, others when all ORDERED ones before
    /// them are.
    pub(super) fn next(&mut self) -> Option<Task> {
        let (order, _) = self.queue.first_key_value()?;
        let before = if self.alone.contains(order) { &self.open } else { &self.alone };
        let may = before.first().is_none_or(|first| first >= order);
        may.then(|| self.queue.pop_first()).flatten().map(|(_, task)| task)
    }
}
