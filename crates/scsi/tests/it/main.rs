//! Commands byte by byte, on a disk in memory.

mod blocks;
mod disk;
mod naive;
mod pages;
mod random;
mod reservations;
mod table;
mod zones;
