//! Enums whose values have names that users see.

/// An enum with a name at each value: `ALL` values, their `NAMES`, and both ways from one to the other.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* pub enum $Enum:ident {
        $($(#[$doc:meta])* $Value:ident $(= $number:literal)? => $name:literal,)+
    }) => {
        $(#[$meta])*
        pub enum $Enum {
            $($(#[$doc])* $Value $(= $number)?,)+
        }

        impl $Enum {
            /// All, in their order.
            pub const ALL: [Self; Self::NAMES.len()] = [$(Self::$Value),+];
            /// Their names, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// What users, results and logs call it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Value => $name,)+
                }
            }

            /// The one with this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}
