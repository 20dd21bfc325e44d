//! vcsim.
fn main() {
    let suite = vc_sim::scenario::Suite { paths: std::env::args().skip(1).map(Into::into).collect(), filter: None, write: vc_sim::scenario::Write::Never };
    println!("{}", vc_sim::scenario::run(&suite).unwrap().text());
}
