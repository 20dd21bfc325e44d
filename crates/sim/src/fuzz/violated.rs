//! The cluster of a story that has violated something, as a scenario for `vcsim test`.

use vc_conf::Config;

use super::check;
use crate::scenario::{ScenarioNames, ScenarioTitle, scenario_text};
use crate::serve::Store;

/// Returns the objects of the API server, and what a scheduler that begins with them decides first.
///
/// # Errors
/// An object cannot be written.
pub(super) fn scenario(
    store: &Store,
    config: &Config,
    now_micros: i64,
    violations: &[String],
) -> Result<String, String> {
    let about = format!(
        "The end of a story in which the simulation found: {}. What is expected is what a scheduler \
         decides first that begins with these objects.",
        violations.join("; ")
    );
    let title = ScenarioTitle { name: "fuzz/violated".to_owned(), about };
    let effects = check::plain_simulation(store, config, now_micros).cycle().effects;
    let mut before = check::plain_simulation(store, config, now_micros);
    let engine = before.engine_after_cycle();
    scenario_text(title, engine, &effects, now_micros, ScenarioNames::Real).map(|it| it.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::configs;
    use crate::fuzz::outside_event::OutsideEvent;
    use crate::fuzz::script::{JobSpec, NodeSize};
    use crate::fuzz::world::World;
    use crate::scenario::Scenario;
    use crate::serve::{LOG_CAPACITY, in_process};

    #[tokio::test]
    async fn what_a_new_scheduler_decides_is_expected() {
        let (_router, store) = in_process(1, |_| LOG_CAPACITY);
        let mut world = World::new(store);
        world.begin(&[NodeSize { cpus: 2, pods: 10 }]).unwrap();
        let job = JobSpec { pods: 2, min: 2, cpu_milli: 1_000, ..JobSpec::lone("j") };
        world.apply(&OutsideEvent::Job(job)).unwrap();
        let config = configs::read("actions: \"allocate\"\ntiers:\n- plugins:\n  - name: gang\n");
        let violations = ["I2: 1 of 2".to_owned()];
        let text = scenario(&world.store, &config.unwrap().config, 0, &violations).unwrap();
        let scenario = Scenario::parse(&"violated.yaml".into(), &text).unwrap();
        let binds = scenario.run(vc_engine::Evaluator::Fast).unwrap().binds;
        let pods: Vec<&str> = binds.iter().map(|(pod, _)| pod.as_str()).collect();
        assert_eq!(pods, ["default/j-0", "default/j-1"]);
        assert!(text.contains("bindCount: 2") || text.contains("default/j-1: "), "{text}");
        assert!(text.contains("I2: 1 of 2"), "{text}");
    }
}
