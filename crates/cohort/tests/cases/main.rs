//! The numbered cases of cohort.md T.1-T.5 and laws against brute force on small trees.

mod brute;
mod classic;
mod fair;
mod hierarchy;
mod histories;
mod laws;
mod notation;
mod order;
mod quota;
mod random;
mod shares;
mod turns;
