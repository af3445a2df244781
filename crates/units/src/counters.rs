//! Counters with the names under which results tell them.

/// A struct of counters: what each is called in results stands beside it. One without a name is told by hand, as where it
/// counts only with some option, or not at all.
#[macro_export]
macro_rules! counters {
    ($(#[$meta:meta])* $vis:vis struct $Counters:ident {
        $($(#[$doc:meta])* $counter:ident $(=> $name:literal)?,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis struct $Counters {
            $($(#[$doc])* pub $counter: u64,)+
        }

        impl $Counters {
            /// Each with its name in results, in their order.
            $vis fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$($(($name, self.$counter),)?)+].into_iter()
            }
        }

        impl ::std::ops::Add for $Counters {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                Self { $($counter: self.$counter + other.$counter,)+ }
            }
        }
    };
}
