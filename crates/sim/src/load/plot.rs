//! The creation curve and the bind curve of a load as a picture: pods over seconds, in SVG that
//! needs nothing else.

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
/// Room for the numbers left and below, and for the title above.
const LEFT: f64 = 70.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 40.0;
const RIGHT: f64 = 20.0;
/// Points of a curve at most: more cannot be told apart.
const POINTS: usize = 500;
/// Steps on an axis, about.
const STEPS: f64 = 5.0;

/// How many of something there are over time.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    /// What it counts.
    pub(super) name: &'static str,
    /// Of the line.
    pub(super) color: &'static str,
    /// Seconds at which one more came, in order.
    pub(super) seconds: Vec<f64>,
}

/// The picture.
pub(super) fn svg(title: &str, curves: &[Curve]) -> String {
    let last = curves.iter().filter_map(|curve| curve.seconds.last()).copied();
    let most = curves.iter().map(|curve| curve.seconds.len()).max().unwrap_or_default();
    let plane =
        PlotArea { seconds: last.fold(0.0, f64::max).max(1e-3), count: (most as f64).max(1.0) };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{}</text>\n",
        escaped(title)
    );
    plane.grid(&mut out);
    for (number, curve) in curves.iter().enumerate() {
        plane.line(&mut out, curve);
        let (x, y) = (LEFT + 12.0, TOP + 16.0 * (number as f64 + 1.0));
        let Curve { name, color, .. } = curve;
        // Writing into a string cannot fail.
        let _ = writeln!(out, "<text x=\"{x}\" y=\"{y}\" fill=\"{color}\">{name}</text>");
    }
    out + "</svg>\n"
}

/// The coordinates: how far the axes reach.
struct PlotArea {
    seconds: f64,
    count: f64,
}

impl PlotArea {
    fn x(&self, seconds: f64) -> f64 {
        LEFT + seconds / self.seconds * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, count: f64) -> f64 {
        HEIGHT - BOTTOM - count / self.count * (HEIGHT - BOTTOM - TOP)
    }

    fn grid(&self, out: &mut String) {
        let (top, bottom, right) = (self.y(self.count), self.y(0.0), self.x(self.seconds));
        for count in marks(self.count) {
            let y = self.y(count);
            let _ = writeln!(
                out,
                "<path d=\"M{LEFT} {y:.1}H{right:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{count}</text>",
                LEFT - 6.0,
                y + 4.0,
            );
        }
        for seconds in marks(self.seconds) {
            let x = self.x(seconds);
            let _ = writeln!(
                out,
                "<path d=\"M{x:.1} {bottom:.1}V{top:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{seconds} s</text>",
                bottom + 18.0,
            );
        }
    }

    fn line(&self, out: &mut String, curve: &Curve) {
        let n_points = curve.seconds.len();
        let stride = n_points.div_ceil(POINTS).max(1);
        let mut path = format!("M{:.1} {:.1}", self.x(0.0), self.y(0.0));
        let mut at = 0.0;
        for (position, &seconds) in curve.seconds.iter().enumerate() {
            let count = position as f64 + 1.0;
            if position % stride == 0 || position + 1 == n_points {
                // Nothing comes between two points: the line is flat until the second one.
                let _ = write!(path, "H{:.1}V{:.1}", self.x(seconds), self.y(count));
                at = seconds;
            }
        }
        if at < self.seconds {
            let _ = write!(path, "H{:.1}", self.x(self.seconds));
        }
        let color = curve.color;
        let _ = writeln!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"{color}\"/>");
    }
}

/// Round numbers from 0 to `end`: 1, 2 or 5 times a power of ten apart.
fn marks(end: f64) -> Vec<f64> {
    let rough = end / STEPS;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|it| it * power).into_iter().find(|it| rough <= *it);
    let step = step.unwrap_or(10.0 * power);
    let n_marks = (end / step + 1e-9).floor() as u32;
    let round = |number: u32| (f64::from(number) * step * 1e6).round() / 1e6;
    (0..=n_marks).map(round).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round() {
        assert_eq!(marks(10_000.0), [0.0, 2000.0, 4000.0, 6000.0, 8000.0, 10_000.0]);
        assert_eq!(marks(0.7), [0.0, 0.2, 0.4, 0.6]);
        assert_eq!(marks(1.0), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
    }

    /// The picture itself: `UPDATE_SNAPSHOT=1` writes it anew, to be looked at in a browser.
    #[test]
    fn the_picture_is_as_it_was() {
        let created = Curve { name: "created", color: "#888", seconds: vec![0.1, 0.2, 0.3, 0.4] };
        let bound = Curve { name: "bound", color: "#06c", seconds: vec![0.2, 0.2, 0.9] };
        let made = svg("2 gangs of 2 pods <on 3 nodes>", &[created, bound]);
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/load.svg");
        if std::env::var_os("UPDATE_SNAPSHOT").is_some() {
            std::fs::write(path, &made).unwrap();
        }
        let wanted = std::fs::read_to_string(path).unwrap_or_default();
        assert!(made == wanted, "{path} differs from\n{made}");
    }

    #[test]
    fn a_long_curve_has_few_points_and_its_end() {
        let seconds: Vec<f64> = (1..=10_000).map(|number| f64::from(number) / 1000.0).collect();
        let made = svg("long", &[Curve { name: "created", color: "red", seconds }]);
        assert!(made.len() < 20_000, "{}", made.len());
        assert!(made.contains("H700.0V40.0\""), "{made}");
    }
}
