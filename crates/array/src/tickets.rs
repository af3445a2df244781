//! What belongs to each ticket: a dense table, because tickets are small numbers.

use crate::Ticket;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Tickets<T>(Vec<Option<T>>);

impl<T> Default for Tickets<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Tickets<T> {
    /// Keeps `value` for `ticket`.
    // In place: what was just put together from parts is slow to copy.
    #[inline(always)]
    pub(crate) fn put(&mut self, ticket: Ticket, value: T) {
        *self.place(ticket) = Some(value);
    }

    /// Where what belongs to `ticket` is kept.
    #[inline]
    pub(crate) fn place(&mut self, ticket: Ticket) -> &mut Option<T> {
        let i = ticket.0 as usize;
        if i >= self.0.len() {
            self.grow(i + 1);
        }
        &mut self.0[i]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, len: usize) {
        self.0.resize_with(len, || None);
    }

    #[inline]
    pub(crate) fn get(&self, ticket: Ticket) -> Option<&T> {
        self.0.get(ticket.0 as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        self.0.get_mut(ticket.0 as usize)?.as_mut()
    }

    /// Those of two tickets, the second to be changed.
    pub(crate) fn pair(&mut self, first: Ticket, second: Ticket) -> Option<(&T, &mut T)> {
        let pair = self.0.get_disjoint_mut([first.0 as usize, second.0 as usize]);
        let [first, second] = pair.ok()?;
        Some((first.as_ref()?, second.as_mut()?))
    }

    #[inline]
    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<T> {
        self.0.get_mut(ticket.0 as usize)?.take()
    }

    /// The ticket has nothing any more.
    #[inline]
    pub(crate) fn remove(&mut self, ticket: Ticket) {
        if let Some(slot) = self.0.get_mut(ticket.0 as usize) {
            *slot = None;
        }
    }

    /// Those that hold something, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ticket, &T)> {
        self.0.iter().enumerate().filter_map(|(i, t)| Some((Ticket(i as u32), t.as_ref()?)))
    }
}
