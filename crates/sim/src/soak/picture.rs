//! The curves of a soak as a picture in SVG that needs nothing else: memory, values in tables, durations of
//! cycles and waiting times over the simulated hours, each below the other from zero on.

use std::fmt::Write;

use super::sample::SoakSample;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 30.0;
/// Height of a curve, and of the room below it.
const HEIGHT: f64 = 110.0;
const BELOW: f64 = 40.0;

/// A curve with its title. The values are in the unit that the title names.
struct SoakCurve {
    title: &'static str,
    value: fn(&SoakSample) -> f64,
}

const CURVES: [SoakCurve; 4] = [
    SoakCurve { title: "resident memory, MiB", value: |it| it.resident_kib as f64 / 1_024.0 },
    SoakCurve { title: "values in tables, thousands", value: |it| it.n_values() as f64 / 1_000.0 },
    SoakCurve {
        title: "median duration of a cycle, ms",
        value: |it| it.cycles.median_micros as f64 / 1_000.0,
    },
    SoakCurve {
        title: "median waiting time of a pod, ms",
        value: |it| it.waits.median_micros as f64 / 1_000.0,
    },
];

/// Returns the picture.
pub fn svg(title: &str, samples: &[SoakSample]) -> String {
    let height = TOP + CURVES.len() as f64 * (HEIGHT + BELOW);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"18\" font-size=\"14\">{title}</text>\n"
    );
    let last_hour = samples.last().map_or(1.0, |it| it.hour).max(1e-6);
    for (number, curve) in CURVES.iter().enumerate() {
        let top = TOP + number as f64 * (HEIGHT + BELOW) + 20.0;
        draw(&mut out, curve, samples, (top, last_hour));
    }
    out + "</svg>\n"
}

fn draw(out: &mut String, curve: &SoakCurve, samples: &[SoakSample], (top, last_hour): (f64, f64)) {
    let most = samples.iter().map(curve.value).fold(0.0, f64::max).max(1e-6);
    let bottom = top + HEIGHT - 20.0;
    let x = |hour: f64| LEFT + hour / last_hour * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| bottom - value / most * (bottom - top);
    let points = samples.iter().map(|it| format!("{:.1},{:.1}", x(it.hour), y((curve.value)(it))));
    let points = points.collect::<Vec<_>>().join(" ");
    let (label, right) = (LEFT - 6.0, WIDTH - RIGHT);
    // Writing into a string cannot fail.
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"{:.1}\">{}</text>\n\
         <path d=\"M{LEFT} {top:.1}H{right:.1}M{LEFT} {bottom:.1}H{right:.1}\" stroke=\"#ddd\"/>\n\
         <text x=\"{label}\" y=\"{:.1}\" text-anchor=\"end\">{most:.1}</text>\n\
         <text x=\"{label}\" y=\"{bottom:.1}\" text-anchor=\"end\">0</text>\n\
         <text x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">{last_hour:.1} h</text>\n\
         <polyline points=\"{points}\" fill=\"none\" stroke=\"#06c\"/>",
        top - 6.0,
        curve.title,
        top + 4.0,
        bottom + 16.0,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_curve_goes_from_left_to_right_and_has_its_highest_value() {
        let sample = |number: u32| SoakSample {
            hour: f64::from(number),
            resident_kib: 1_024 * u64::from(number),
            ..SoakSample::default()
        };
        let made = svg("two hours", &[sample(1), sample(2)]);
        assert_eq!(made.matches("<polyline").count(), CURVES.len());
        // Half of the time and half of the memory, then all of both.
        assert!(made.contains("points=\"380.0,95.0 700.0,50.0\""), "{made}");
        assert!(made.contains(">2.0</text>"), "{made}");
    }
}
