//! Laws that hold for all vectors and quantities.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use proptest::prelude::*;
use vc_resource::{Absent, Dim, Dims, Quantity, Resource, format_binary, format_milli};

/// Ten of the names, in and behind the first word of a mask.
const USED: [&str; N_DIMS] =
    ["cpu", "memory", "pods", "x/003", "x/062", "x/063", "x/064", "x/065", "x/128", "x/139"];
const N_DIMS: usize = 10;

fn dims() -> Dims {
    let mut dims = Dims::new();
    for n in 3..140 {
        dims.intern(&format!("x/{n:03}")).expect("so many names fit");
    }
    dims
}

fn used() -> [Dim; N_DIMS] {
    let dims = dims();
    USED.map(|name| dims.get(name).expect("it was made"))
}

/// A vector over ten dimensions, some of them missing.
fn resource(amounts: impl Strategy<Value = i64> + Clone) -> impl Strategy<Value = Resource> {
    prop::collection::vec(prop::option::of(amounts), N_DIMS).prop_map(|amounts| {
        let mut made = Resource::new();
        for (dim, amount) in used().into_iter().zip(amounts) {
            if let Some(amount) = amount {
                made.set(dim, amount);
            }
        }
        made
    })
}

fn small() -> impl Strategy<Value = Resource> {
    resource(-3..4i64)
}

fn hash(resource: &Resource) -> u64 {
    let mut hasher = DefaultHasher::new();
    resource.hash(&mut hasher);
    hasher.finish()
}

proptest! {
    #[test]
    fn sub_undoes_add(a in resource(any::<i64>()), b in resource(any::<i64>())) {
        let mut sum = a.clone();
        sum.add(&b);
        sum.sub(&b);
        for dim in used() {
            prop_assert_eq!(sum.get(dim), a.get(dim));
            prop_assert_eq!(sum.has(dim), a.has(dim) || b.has(dim));
        }
    }

    #[test]
    fn add_commutes(a in resource(any::<i64>()), b in resource(any::<i64>())) {
        let (mut left, mut right) = (a.clone(), b.clone());
        left.add(&b);
        right.add(&a);
        prop_assert_eq!(left, right);
    }

    #[test]
    fn equal_vectors_hash_alike_whatever_their_room(a in small(), dim in 0..N_DIMS) {
        let dim = used()[dim];
        let (mut roomy, mut plain) = (a.clone(), a);
        roomy.set(dim, 1);
        roomy.remove(dim);
        plain.remove(dim);
        prop_assert_eq!(&roomy, &plain);
        prop_assert_eq!(hash(&roomy), hash(&plain));
    }

    #[test]
    fn fits_agrees_with_its_explanation(a in small(), idle in small()) {
        prop_assert_eq!(a.fits(&idle), a.first_lacking(&idle, &dims()).is_none());
        if idle.dims().all(|dim| idle.get(dim) >= 0) {
            prop_assert_eq!(a.fits(&idle), a.less_equal(&idle, Absent::Zero));
        }
    }

    #[test]
    fn fits_until_it_is_taken(a in resource(0..4i64), idle in resource(0..4i64)) {
        let mut rest = idle.clone();
        let short = rest.sub_clamped(&a);
        prop_assert_eq!(short, !a.fits(&idle));
        prop_assert!(rest.dims().all(|dim| rest.get(dim) >= 0));
    }

    #[test]
    fn names_and_booleans_agree(a in small(), b in small()) {
        let named = a.less_equal_names(&b, Absent::Zero, &dims());
        prop_assert_eq!(a.less_equal(&b, Absent::Zero), named.is_ok());
        let requested = a.less_equal_dim(&b, &a, &dims()).err().unwrap_or_default();
        prop_assert_eq!(requested, a.greater_partly_dim(&b, &a, &dims()));
    }

    #[test]
    fn excess_and_minimum_make_the_whole(a in resource(0..9i64), b in resource(0..9i64)) {
        let mut sum = a.excess(&b);
        sum.add(&a.min_dim(&b, Absent::Zero));
        prop_assert_eq!(sum, a);
    }

    #[test]
    fn integers_and_fractions_compare_alike(a in small(), b in small()) {
        let (x, y) = (a.to_fractional(), b.to_fractional());
        for absent in [Absent::Zero, Absent::Infinity] {
            prop_assert_eq!(a.less(&b, absent), x.less(&y, absent));
            prop_assert_eq!(a.less_equal(&b, absent), x.less_equal(&y, absent));
            prop_assert_eq!(a.less_partly(&b, absent), x.less_partly(&y, absent));
            prop_assert_eq!(a.less_equal_partly(&b, absent), x.less_equal_partly(&y, absent));
        }
        prop_assert_eq!(a.is_empty(), x.is_empty());
        prop_assert_eq!(a.fits(&b), x.fits(&y));
        prop_assert_eq!(a.multi(0.5), x.multi(0.5));
    }

    #[test]
    fn formatted_quantities_read_back(number in any::<i64>(), shift in 0..63u32) {
        let number = number >> shift << (shift / 2);
        prop_assert_eq!(format_milli(number).parse::<Quantity>().unwrap().milli(), number);
        let bytes = number.max(-i64::MAX);
        prop_assert_eq!(format_binary(bytes).parse::<Quantity>().unwrap().value(), bytes);
        prop_assert_eq!(Quantity::from_value(bytes).value(), bytes);
    }

    #[test]
    fn decimals_are_exact(whole in 0..1_000_000i64, milli in 0..1000i64, places in 0..30usize) {
        let text = format!("{whole}.{milli:03}{}", "0".repeat(places));
        prop_assert_eq!(text.parse::<Quantity>().unwrap().milli(), whole * 1000 + milli);
    }

    #[test]
    fn no_text_breaks_the_parser(text in "[+-]?[0-9.]{0,50}[a-zA-Z]{0,2}[+-]?[0-9]{0,12}") {
        if let Ok(quantity) = text.parse::<Quantity>() {
            let (value, milli) = (quantity.value(), quantity.milli());
            prop_assert!(milli == i64::MAX || milli == i64::MIN || value.abs() <= milli.abs());
        }
    }
}
