//! Methods that only hand on.

/// Methods of a trait that a type does not have of its own, but from this field: each calls the field's of the same name.
#[macro_export]
macro_rules! forward {
    ($to:tt:) => {};
    ($to:tt: fn $method:ident(&mut $own:ident $(, $arg:ident: $type:ty)*) $(-> $out:ty)?; $($rest:tt)*) => {
        fn $method(&mut $own $(, $arg: $type)*) $(-> $out)? {
            $own.$to.$method($($arg),*)
        }
        $crate::forward!($to: $($rest)*);
    };
    ($to:tt: fn $method:ident(&$own:ident $(, $arg:ident: $type:ty)*) $(-> $out:ty)?; $($rest:tt)*) => {
        fn $method(&$own $(, $arg: $type)*) $(-> $out)? {
            $own.$to.$method($($arg),*)
        }
        $crate::forward!($to: $($rest)*);
    };
}
