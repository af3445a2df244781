//! A second drive and a second queue, written from what the pages say: everything that waits is in one list that is looked through, plans are
//! lists of items, and the disk and the buffer are the naive ones of `buffer/tests/naive.rs`. Layers are made up: they plan any operations and
//! pauses, acknowledge anywhere, move what was written and work when idle. What is told of random drives must be the same, event by event.

mod compare;
mod made_up;
mod naive;
mod queued;
mod small;
