//! The log lines of preempt (actions.md 10.5).

use super::*;

#[test]
fn log__preempt() {
    let text = "node n1 cpu=2
        job low priority=10 min=1
          task v cpu=1 x2 @n1 running
        job high priority=100
          task p cpu=1
        job huge priority=90
          task p cpu=9
        job never priority=80
          task p cpu=1 never
        job wide priority=70 topology=hard
          task p cpu=1";
    let logged = |config: &Config| {
        let mut world = World::new(config, text);
        let lines = log_of(|| {
            world.cycle();
        });
        lines.join("\n")
    };
    let expected = [
        "5 Enter Preempt ...",
        "3 Job <default/wide> Queue <default> skip preemption, reason: jobs containing \
         networkTopology do not support preemption",
        "3 Considering Task <default/high-p> on Node <n1>.",
        "3 Try to preempt Task <default/low-v-1> for Task <default/high-p>",
        "3 Preempted <",
        "> for Task <default/high-p> requested <",
        "3 Committing operations ...",
        "3 Considering Task <default/huge-p> on Node <n1>.",
        "3 No validated victims on Node <n1>: not enough resources: requested <",
        "3 No preemptor task in job <default/huge>.",
        "3 Preemptor <default/never-p> failed to preempt Task , err: not eligible: ",
        "4 No preemptors in Queue <default>, break.",
        "5 Leaving Preempt ...",
    ];
    let log = logged(&tp());
    let mut rest = &log[..];
    for line in expected {
        let place = rest.find(line).unwrap_or_else(|| panic!("{line}\n{log}"));
        rest = &rest[place + line.len()..];
    }
    let log = logged(&dry());
    assert!(
        log.contains("3 Try to preempt Task <default/low-v-1> for Task <default/high-p>"),
        "{log}"
    );
}
