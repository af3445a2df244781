//! What an array works on: requests of the host's and jobs of its own, each under a ticket.

use smrlab_stl::HostRequest;

/// A piece of work under way: a small number, used again once the work has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u32);

/// What is done under a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A request of the host's.
    Host(HostRequest),
    /// Work of the array's own.
    Job(Job),
}

/// Work of an array's own, as others hand it on: the array that planned it knows it as one of its [`tasks!`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Which task.
    pub kind: u32,
    /// What it is about: a unit, a row, a group.
    pub of: u64,
    /// Work that is under way waits for it: it begins even when nothing else does.
    pub awaited: bool,
}

/// Declares what an array does by itself: an enum whose variants each hold a number, and how [`Job`]s stand for them, the first by
/// the number `FIRST` and so on.
macro_rules! tasks {
    ($(#[$meta:meta])* $vis:vis enum $name:ident from $first:literal { $($(#[$doc:meta])* $task:ident,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $($(#[$doc])* $task(u64),)* }

        impl $name {
            /// The task that a job stands for; `None`: it is none of these.
            $vis fn of(job: $crate::job::Job) -> Option<Self> {
                let all: &[fn(u64) -> Self] = &[$(Self::$task),*];
                all.get(job.kind.checked_sub($first)? as usize).map(|task| task(job.of))
            }
        }

        impl From<$name> for $crate::job::Job {
            fn from(task: $name) -> Self {
                enum Kind { $($task,)* }
                match task {
                    $($name::$task(of) => Self { kind: $first + Kind::$task as u32, of, awaited: false },)*
                }
            }
        }
    };
}
pub(crate) use tasks;
