//! Kubernetes quantities: parsing to an exact amount, and formatting (core.md 3.1). Amounts are in
//! billionths of the unit; finer digits round up, away from zero. Amounts beyond 2^63 − 1 units
//! saturate, as in Kubernetes.

use std::ops::{Add, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const NANO_PER_UNIT: i128 = 1_000_000_000;
const NANO_PER_MILLI: i128 = 1_000_000;
/// The largest quantity, 2^63 − 1 units.
const LARGEST: i128 = i64::MAX as i128 * NANO_PER_UNIT;

/// An exact amount in billionths of the unit.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Quantity {
    nano: i128,
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// There is no number at the start.
    #[error("quantity without a number: {0:?}\nhint: write a number such as 500m, 2 or 4Gi")]
    NoNumber(String),
    /// What follows the number is neither a known suffix nor an exponent.
    #[error(
        "unknown quantity suffix: {0:?}\n\
         hint: use one of n u m k M G T P E Ki Mi Gi Ti Pi Ei or an exponent such as e3"
    )]
    UnknownSuffix(String),
}

impl Quantity {
    /// Returns a quantity of whole units.
    pub fn from_value(value: i64) -> Self {
        Quantity { nano: i128::from(value) * NANO_PER_UNIT }
    }

    /// Returns the units, rounded up away from zero.
    pub fn value(self) -> i64 {
        self.rounded_up(NANO_PER_UNIT)
    }

    /// Returns the thousandths, rounded up away from zero, saturating.
    pub fn milli(self) -> i64 {
        self.rounded_up(NANO_PER_MILLI)
    }

    /// Returns the units as a float.
    pub fn to_f64(self) -> f64 {
        self.nano as f64 / NANO_PER_UNIT as f64
    }

    /// True if the quantity is below zero.
    pub fn is_negative(self) -> bool {
        self.nano < 0
    }

    /// Returns the canonical text for a resource name, such as `1500m`, `2` or `3k`. For memory and
    /// storage it is the binary text (`4Gi`) if that is shorter.
    pub fn text(self, name: &str) -> String {
        const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        let decimal = with_suffix(self.nano, 1000, &DECIMAL);
        let is_bytes = ["memory", "storage", "hugepages-"].iter().any(|part| name.contains(part));
        if !is_bytes || self.nano % NANO_PER_UNIT != 0 {
            return decimal;
        }
        let binary = format_binary(self.value());
        if binary.len() < decimal.len() { binary } else { decimal }
    }

    fn rounded_up(self, nano_per: i128) -> i64 {
        let rest = self.nano % nano_per;
        let up = self.nano / nano_per + rest.signum();
        i64::try_from(up).unwrap_or(if up < 0 { i64::MIN } else { i64::MAX })
    }

    fn saturated(nano: i128) -> Self {
        Quantity { nano: nano.clamp(-LARGEST, LARGEST) }
    }
}

impl Add for Quantity {
    type Output = Quantity;

    fn add(self, other: Quantity) -> Quantity {
        Quantity::saturated(self.nano + other.nano)
    }
}

impl Sub for Quantity {
    type Output = Quantity;

    fn sub(self, other: Quantity) -> Quantity {
        Quantity::saturated(self.nano - other.nano)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => split_digits(rest),
            None => ("", rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(QuantityError::NoNumber(text.to_owned()));
        }
        let scale =
            Scale::parse(suffix).ok_or_else(|| QuantityError::UnknownSuffix(text.to_owned()))?;
        let magnitude = nano_of(whole, fraction, scale);
        Ok(Quantity { nano: if negative { -magnitude } else { magnitude } })
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|c| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// A suffix as `10^ten * 2^two`.
#[derive(Clone, Copy)]
struct Scale {
    ten: i64,
    two: u32,
}

impl Scale {
    fn parse(suffix: &str) -> Option<Scale> {
        let decimal = |ten| Some(Scale { ten, two: 0 });
        let binary = |two| Some(Scale { ten: 0, two });
        match suffix {
            "n" => decimal(-9),
            "u" => decimal(-6),
            "m" => decimal(-3),
            "" => decimal(0),
            "k" => decimal(3),
            "M" => decimal(6),
            "G" => decimal(9),
            "T" => decimal(12),
            "P" => decimal(15),
            "E" => decimal(18),
            "Ki" => binary(10),
            "Mi" => binary(20),
            "Gi" => binary(30),
            "Ti" => binary(40),
            "Pi" => binary(50),
            "Ei" => binary(60),
            _ => decimal(parse_exponent(suffix)?),
        }
    }
}

/// Returns the number after `e` or `E`. Returns `None` if there is none, or if it exceeds 32 bits.
fn parse_exponent(suffix: &str) -> Option<i64> {
    let number = suffix.strip_prefix(['e', 'E'])?;
    number.parse::<i32>().ok().map(i64::from)
}

/// Returns `whole.fraction * scale` in billionths, rounded up, at most `LARGEST`.
fn nano_of(whole: &str, fraction: &str, scale: Scale) -> i128 {
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|c| c - b'0').collect();
    let n_leading = digits.iter().take_while(|&&digit| digit == 0).count();
    let digits = &digits[n_leading..];
    if digits.is_empty() {
        return 0;
    }
    // Position of the decimal point in `digits` when the number is written in billionths. Lengths
    // of texts and 32-bit exponents are far below the range of i64.
    let point = whole.len() as i64 - n_leading as i64 + scale.ten + 9;
    // A first digit that is not 0 puts the number between 10^(point - 1) and 10^point.
    match point {
        41.. => LARGEST,
        ..=-40 => 1,
        _ => split_nano_of(digits, point, scale.two),
    }
}

/// Returns `0.digits * 10^point * 2^two`, rounded up, at most `LARGEST`.
fn split_nano_of(digits: &[u8], point: i64, two: u32) -> i128 {
    let at = |position: i64| usize::try_from(position).ok().and_then(|p| digits.get(p)).copied();
    let mut whole: i128 = 0;
    for position in 0..point {
        let digit = i128::from(at(position).unwrap_or(0));
        whole = whole.saturating_mul(10).saturating_add(digit);
    }
    // The loop starts at the last digit. The integer part of a nested fraction loses only the
    // remainders, which matter only for rounding.
    let mut part: i128 = 0;
    let mut inexact = false;
    for position in (point..digits.len() as i64).rev() {
        let sum = part + (i128::from(at(position).unwrap_or(0)) << two);
        inexact |= sum % 10 != 0;
        part = sum / 10;
    }
    whole.saturating_mul(1 << two).saturating_add(part + i128::from(inexact)).min(LARGEST)
}

/// Returns the canonical decimal text of thousandths, such as `1500m`, `2` or `3k`.
pub fn format_milli(milli: i64) -> String {
    with_suffix(milli.into(), 1000, &["m", "", "k", "M", "G", "T", "P"])
}

/// Returns the canonical decimal text of whole units, such as `110` or `3k`.
pub(crate) fn format_whole(units: i64) -> String {
    with_suffix(units.into(), 1000, &["", "k", "M", "G", "T", "P", "E"])
}

/// Returns the canonical binary text of bytes, such as `4Gi` or `1536Mi`, or a plain number if not
/// divisible. Kubernetes writes numbers below 1024 as decimal quantities.
pub fn format_binary(bytes: i64) -> String {
    if bytes.unsigned_abs() < 1024 {
        return format_whole(bytes);
    }
    with_suffix(bytes.into(), 1024, &["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
}

/// Returns the number as text. Factors of `base` move into the suffix as long as that is exact.
fn with_suffix(number: i128, base: i128, suffixes: &[&str]) -> String {
    if number == 0 {
        return "0".to_owned();
    }
    let (mut mantissa, mut position) = (number, 0);
    while mantissa % base == 0 && position + 1 < suffixes.len() {
        mantissa /= base;
        position += 1;
    }
    format!("{mantissa}{}", suffixes[position])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nano(text: &str) -> i128 {
        text.parse::<Quantity>().unwrap_or_else(|error| panic!("{error}")).nano
    }

    #[test]
    fn every_suffix_and_exponent() {
        let cases: [(&str, i128); 24] = [
            ("1n", 1),
            ("1u", 1_000),
            ("1m", 1_000_000),
            ("1", NANO_PER_UNIT),
            ("1k", 1_000 * NANO_PER_UNIT),
            ("1M", 1_000_000 * NANO_PER_UNIT),
            ("1G", 1_000_000_000 * NANO_PER_UNIT),
            ("1T", 1_000_000_000_000 * NANO_PER_UNIT),
            ("1P", 1_000_000_000_000_000 * NANO_PER_UNIT),
            ("1E", 1_000_000_000_000_000_000 * NANO_PER_UNIT),
            ("1Ki", NANO_PER_UNIT << 10),
            ("1Mi", NANO_PER_UNIT << 20),
            ("1Gi", NANO_PER_UNIT << 30),
            ("1Ti", NANO_PER_UNIT << 40),
            ("1Pi", NANO_PER_UNIT << 50),
            ("1Ei", NANO_PER_UNIT << 60),
            ("12e3", 12_000 * NANO_PER_UNIT),
            ("12E+3", 12_000 * NANO_PER_UNIT),
            ("12e-3", 12_000_000),
            ("+1.5", 1_500_000_000),
            ("-1.5Ki", -1536 * NANO_PER_UNIT),
            (".5", 500_000_000),
            ("5.", 5 * NANO_PER_UNIT),
            ("0001.500", 1_500_000_000),
        ];
        for (text, want) in cases {
            assert_eq!(nano(text), want, "{text}");
        }
    }

    #[test]
    fn finer_than_a_billionth_rounds_away_from_zero() {
        let cases = [
            ("0.1n", 1),
            ("-0.1n", -1),
            ("1.0000000001", NANO_PER_UNIT + 1),
            ("1e-2000000000", 1),
            ("0.000000000000Ki", 0),
            ("0.00000000000000000000000000000000000000000000000000001Ei", 1),
            // 2^60 / 10^18 = 1.152921504606846976: the product, not the factor, is rounded.
            ("0.000000000000000001Ei", 1_152_921_505),
            ("0.0000000000000000010Ei", 1_152_921_505),
        ];
        for (text, want) in cases {
            assert_eq!(nano(text), want, "{text}");
        }
    }

    #[test]
    fn out_of_range_saturates() {
        for text in ["8Ei", "10E", "1e30", "1e2000000000", "99999999999999999999999999999999999"] {
            let quantity: Quantity = text.parse().unwrap();
            assert_eq!((quantity.value(), quantity.milli()), (i64::MAX, i64::MAX), "{text}");
        }
        let lowest: Quantity = "-9Ei".parse().unwrap();
        assert_eq!((lowest.value(), lowest.milli()), (-i64::MAX, i64::MIN));
        assert_eq!(lowest - Quantity::from_value(1), lowest);
    }

    #[test]
    fn value_and_milli_round_up_away_from_zero() {
        let cases = [("1", 1, 1000), ("1500m", 2, 1500), ("-1500m", -2, -1500), ("1n", 1, 1)];
        for (text, value, milli) in cases {
            let quantity: Quantity = text.parse().unwrap();
            assert_eq!((quantity.value(), quantity.milli()), (value, milli), "{text}");
        }
    }

    #[test]
    fn wrong_texts_say_what_is_wrong() {
        for text in ["", "-", ".", "Ki", "--1", "+-1", " 1", "x"] {
            let want = QuantityError::NoNumber(text.to_owned());
            assert_eq!(text.parse::<Quantity>(), Err(want));
        }
        for text in ["1 ", "1x", "1ki", "1K", "1i", "1e", "1e1.5", "1e3m", "1.1.1", "1e9999999999"]
        {
            let want = QuantityError::UnknownSuffix(text.to_owned());
            assert_eq!(text.parse::<Quantity>(), Err(want));
        }
    }

    #[test]
    fn texts_by_the_kind_of_the_name() {
        for (text, name, want) in [
            ("20G", "memory", "20G"),
            ("2048Mi", "limits.memory", "2Gi"),
            ("1.5Gi", "requests.storage", "1536Mi"),
            ("1500m", "cpu", "1500m"),
            ("0.5", "memory", "500m"),
            ("1024", "pods", "1024"),
            ("1024", "count/pods", "1024"),
            ("1n", "cpu", "1n"),
            ("-2", "cpu", "-2"),
            ("0", "memory", "0"),
        ] {
            assert_eq!(text.parse::<Quantity>().unwrap().text(name), want, "{text} {name}");
        }
    }

    #[test]
    fn canonical_texts() {
        let milli = [(0, "0"), (1500, "1500m"), (2000, "2"), (3_000_000, "3k"), (-1, "-1m")];
        for (number, want) in milli {
            assert_eq!(format_milli(number), want);
        }
        let binary = [
            (0, "0"),
            (4 << 30, "4Gi"),
            (1536 << 20, "1536Mi"),
            (-2048, "-2Ki"),
            (4_000_000_001, "4000000001"),
            (1000, "1k"),
            (1025, "1025"),
        ];
        for (number, want) in binary {
            assert_eq!(format_binary(number), want);
        }
        assert_eq!(format_milli(i64::MIN), "-9223372036854775808m");
        assert_eq!(format_binary(i64::MIN), "-8Ei");
    }
}
