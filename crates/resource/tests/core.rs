//! Test cases 19 to 30 of core.md, and the rules that its section 3.1 adds to them.

use vc_resource::{
    Absent::{Infinity, Zero},
    Amount, Dim, Dims, Fractional, Quantity, Resource, Vector, amount,
};

const SCALARS: [&str; 3] = ["nvidia.com/gpu", "hugepages-test", "scalar.test/scalar1"];

struct NamedDims {
    dims: Dims,
    gpu: Dim,
    huge: Dim,
    scalar: Dim,
}

fn names() -> NamedDims {
    let mut dims = Dims::new();
    let [gpu, huge, scalar] = SCALARS.map(|name| dims.intern(name).expect("few names fit"));
    NamedDims { dims, gpu, huge, scalar }
}

fn vector<T: Amount>(cpu: T, memory: T, scalars: &[(Dim, T)]) -> Vector<T> {
    let mut made = Vector::new();
    for &(dim, amount) in [(Dim::CPU, cpu), (Dim::MEMORY, memory)].iter().chain(scalars) {
        made.set(dim, amount);
    }
    made
}

fn collect(dims: impl Iterator<Item = Dim>) -> Vec<Dim> {
    dims.collect()
}

#[test]
fn core_19_reading_a_resource_list() {
    let list = [
        ("cpu", "4m"),
        ("memory", "2000"),
        ("scalar.test/scalar1", "1"),
        ("hugepages-test", "2"),
        ("ephemeral-storage", "3"),
        ("count/pods", "5"),
        ("requests.cpu", "6"),
    ];
    let mut dims = Dims::new();
    let mut read = Resource::new();
    for (name, text) in list {
        if let Some(amount) = amount(name, text.parse::<Quantity>().unwrap()) {
            read.set(dims.intern(name).unwrap(), amount);
        }
    }
    assert_eq!(
        read.text(&dims),
        "cpu 4.00, memory 2000.00, ephemeral-storage 3000.00, hugepages-test 2000.00, \
         scalar.test/scalar1 1000.00"
    );
}

#[test]
fn core_20_set_max() {
    let n = names();
    let mut left = vector(4000, 4000, &[(n.scalar, 1), (n.huge, 2)]);
    left.set_max(&vector(4000, 2000, &[(n.scalar, 4), (n.huge, 5)]));
    assert_eq!(left, vector(4000, 4000, &[(n.scalar, 4), (n.huge, 5)]));
    let mut without = Resource::new();
    without.set_max(&vector(1, 2, &[(n.gpu, -3)]));
    assert_eq!(without, vector(1, 2, &[(n.gpu, -3)]), "scalars only on the right are taken");
}

#[test]
fn core_21_less() {
    let n = names();
    let nothing = Resource::new();
    assert!(nothing.less(&vector(4000, 2000, &[(n.scalar, 1)]), Zero));
    assert!(!nothing.less(&nothing, Zero) && !nothing.less(&nothing, Infinity));
    let left = vector(1000, 1000, &[(n.huge, 1000)]);
    let right = vector(2000, 2000, &[(n.scalar, 1000), (n.huge, 2000)]);
    assert!(!left.less(&right, Infinity) && left.less(&right, Zero));
    let left = vector(1000, 1000, &[(n.scalar, 1000), (n.huge, 1000)]);
    let right = vector(2000, 2000, &[(n.huge, 3000)]);
    assert!(left.less(&right, Infinity) && !left.less(&right, Zero));
}

#[test]
fn core_22_less_equal() {
    let n = names();
    let nothing = Resource::new();
    assert!(nothing.less_equal(&nothing, Zero) && nothing.less_equal(&nothing, Infinity));
    let full = vector(4000, 2000, &[(n.scalar, 1), (n.huge, 2)]);
    assert!(!full.less_equal(&nothing, Zero));
    let failing = full.less_equal_names(&nothing, Zero, &n.dims);
    assert_eq!(failing, Err(vec![Dim::CPU, Dim::MEMORY, n.huge, n.scalar]));
    assert_eq!(full.greater_partly(&nothing, Infinity, &n.dims), [Dim::CPU, Dim::MEMORY]);
    let right = vector(4000, 2000, &[(n.scalar, 1)]);
    assert!(!nothing.less_equal(&right, Infinity));
    assert_eq!(nothing.less_equal_names(&right, Infinity, &n.dims), Ok(()));
    assert!(right.less_equal(&vector(4000, 2000, &[]), Infinity));
}

#[test]
fn core_23_less_equal_dim() {
    let n = names();
    let check = |l: &Resource, r: &Resource, req: &Resource| l.less_equal_dim(r, req, &n.dims);
    let right = vector(4000, 2000, &[]);
    let cpu = vector(1000, 0, &[]);
    let memory = vector(0, 1, &[]);
    let nothing = Resource::new();
    assert_eq!(check(&vector(5000, 0, &[]), &right, &cpu), Err(vec![Dim::CPU]));
    assert_eq!(check(&vector(3000, 3000, &[]), &right, &memory), Err(vec![Dim::MEMORY]));
    assert_eq!(check(&vector(5000, 3000, &[]), &right, &nothing), Ok(()));
    assert_eq!(check(&nothing, &right, &cpu), Ok(()));
    assert_eq!(check(&cpu, &nothing, &vector(1, 1, &[])), Err(vec![Dim::CPU]));
    let left = vector(1000, 0, &[(n.gpu, 1)]);
    assert_eq!(check(&left, &right, &vector(1, 0, &[(n.gpu, 1)])), Err(vec![n.gpu]));
    assert_eq!(check(&left, &right, &vector(1, 0, &[(n.gpu, 0)])), Ok(()));
    let pods = vector(0, 0, &[(Dim::PODS, 1)]);
    assert_eq!(check(&pods, &nothing, &pods), Ok(()), "pods is skipped");
    let lost = vector(0, 0, &[(n.gpu, -1000)]);
    let gpu = vector(0, 0, &[(n.gpu, 1)]);
    assert_eq!(check(&nothing, &lost, &gpu), Ok(()), "no scalars on the left: not looked at");
    assert_eq!(check(&pods, &lost, &gpu), Err(vec![n.gpu]));
}

#[test]
fn less_equal_dim_is_strict_but_for_the_given_tolerance() {
    let n = names();
    let (left, right) = (vector(10.05, 0.0, &[]), vector(10.0, 0.0, &[]));
    assert_eq!(left.less_equal_dim(&right, &left, &n.dims), Err(vec![Dim::CPU]));
    assert_eq!(left.less_equal_dim_within(&right, &left, 0.1, &n.dims), Ok(()));
    let far = vector(10.2, 0.0, &[]);
    assert_eq!(far.less_equal_dim_within(&right, &left, 0.1, &n.dims), Err(vec![Dim::CPU]));
}

#[test]
fn core_24_less_partly() {
    let n = names();
    let nothing = Resource::new();
    let scalar = vector(0, 0, &[(n.scalar, 1)]);
    assert!(!nothing.less_partly(&nothing, Zero));
    assert!(nothing.less_partly(&scalar, Zero) && !nothing.less_partly(&scalar, Infinity));
    assert!(!scalar.less_partly(&nothing, Zero) && scalar.less_partly(&nothing, Infinity));
    assert!(vector(9, 1, &[]).less_partly(&vector(5, 2, &[]), Zero));
    assert!(nothing.less_equal_partly(&nothing, Zero));
    assert!(!vector(9, 2, &[]).less_equal_partly(&vector(5, 1, &[]), Zero));
}

#[test]
fn less_equal_partly_dim_looks_at_requested_dimensions() {
    let n = names();
    let left = vector(5000, 1000, &[(n.gpu, 0), (Dim::PODS, 1)]);
    let right = vector(4000, 2000, &[(Dim::PODS, 9)]);
    let req = vector(1, 1, &[(n.gpu, 1), (Dim::PODS, 1)]);
    assert_eq!(left.less_equal_partly_dim(&right, &req, &n.dims), [Dim::MEMORY, n.gpu]);
    assert_eq!(left.less_equal_partly_dim_nonzero(&right, &req, &n.dims), [Dim::MEMORY]);
    assert_eq!(left.less_equal_partly_dim(&right, &Resource::new(), &n.dims), []);
}

#[test]
fn core_25_greater_partly_relevant() {
    let n = names();
    let (left, right, cpu) = (vector(4000, 0, &[]), Resource::new(), vector(1, 0, &[]));
    assert_eq!(left.greater_partly_relevant(&right, &cpu, &n.dims), []);
    assert_eq!(left.greater_partly_dim(&right, &cpu, &n.dims), [Dim::CPU]);
    let left = vector(0, 0, &[(n.gpu, 2)]);
    let req = vector(0, 0, &[(n.gpu, 1)]);
    let zero = vector(0, 0, &[(n.gpu, 0)]);
    assert_eq!(left.greater_partly_relevant(&zero, &req, &n.dims), [n.gpu]);
    assert_eq!(left.greater_partly_dim(&zero, &req, &n.dims), [n.gpu]);
    assert_eq!(left.greater_partly_relevant(&right, &req, &n.dims), []);
    assert_eq!(left.greater_partly_dim(&right, &req, &n.dims), [n.gpu]);
}

#[test]
fn core_26_diff() {
    let n = names();
    let left = vector(1000, 2000, &[(n.scalar, 1000)]);
    let right = vector(2000, 1000, &[]);
    let (increased, decreased) = left.diff(&right, Zero);
    assert_eq!(increased, vector(0, 1000, &[(n.scalar, 1000)]));
    assert_eq!(decreased, vector(1000, 0, &[]));
    let (increased, decreased) = left.diff(&right, Infinity);
    assert_eq!(increased, vector(0, 1000, &[]));
    assert_eq!(decreased, vector(1000, 0, &[(n.scalar, -1)]));
    assert_eq!(right.diff(&left, Infinity).0, vector(1000, 0, &[(n.scalar, -1)]));
}

#[test]
fn excess_leaves_out_scalars_that_are_not_exceeded() {
    let n = names();
    let left = vector(5, 1, &[(n.gpu, 3), (n.huge, 2)]);
    let right = vector(2, 2, &[(n.gpu, 3), (n.scalar, 7)]);
    assert_eq!(left.excess(&right), vector(3, 0, &[(n.huge, 2)]));
}

#[test]
fn core_27_min_dim() {
    let n = names();
    let left = vector(4000, 2000, &[(n.scalar, 1), (n.huge, 2)]);
    let right = vector(3000, 2000, &[(n.scalar, 0)]);
    let zero = vector(3000, 2000, &[(n.scalar, 0), (n.huge, 0)]);
    let infinity = vector(3000, 2000, &[(n.scalar, 0), (n.huge, 2)]);
    assert_eq!(left.min_dim(&right, Zero), zero);
    assert_eq!(left.min_dim(&right, Infinity), infinity);
    let mut without_memory = Resource::new();
    without_memory.set(Dim::CPU, 3000);
    assert_eq!(left.min_dim(&without_memory, Infinity).get(Dim::MEMORY), 0);
}

#[test]
fn min_has_no_scalars_when_one_side_has_none() {
    let n = names();
    let left = vector(4, 2, &[(n.gpu, 3), (n.huge, 1)]);
    assert_eq!(left.min(&vector(3, 5, &[])), vector(3, 2, &[]));
    assert_eq!(vector(3, 5, &[]).min(&left), vector(3, 2, &[]));
    let right = vector(9, 9, &[(n.gpu, 2)]);
    assert_eq!(left.min(&right), vector(4, 2, &[(n.gpu, 2), (n.huge, 0)]));
}

#[test]
fn max_dim_drops_negative_scalars() {
    let n = names();
    let left = vector(-4, 2, &[(n.gpu, -3), (n.huge, -1), (n.scalar, 0)]);
    let right = vector(-5, 9, &[(n.huge, 7)]);
    assert_eq!(left.max_dim(&right), vector(-4, 9, &[(n.huge, 7), (n.scalar, 0)]));
}

#[test]
fn core_28_equal() {
    let n = names();
    let left = vector(2000, 2000, &[]);
    assert!(left.equal(&vector(2000, 2000, &[(n.scalar, 0)])));
    assert!(left.equal(&vector(2000, 2000, &[(n.scalar, 5)])));
    assert!(!vector(2000, 2000, &[(n.scalar, 5)]).equal(&left));
    assert!(vector(1.05, 0.0, &[]).equal(&vector(1.0, 0.0, &[])));
}

#[test]
fn core_29_text() {
    let n = names();
    assert_eq!(vector(2000, 4096, &[]).text(&n.dims), "cpu 2000.00, memory 4096.00");
    let scalars = vector(2000.5, 4096.0, &[(n.scalar, 1.0), (n.gpu, 1000.0)]);
    assert_eq!(
        scalars.text(&n.dims),
        "cpu 2000.50, memory 4096.00, nvidia.com/gpu 1000.00, scalar.test/scalar1 1.00"
    );
    assert_eq!(Fractional::infinite().text(&n.dims), "cpu maxFloat, memory maxFloat");
}

#[test]
fn core_30_intersection() {
    let mut n = names();
    let fpga = n.dims.intern("example.com/fpga").unwrap();
    let left = vector(0.2, 0.0, &[(fpga, 0.0), (n.gpu, 1.0), (Dim::PODS, 1.0)]);
    let right = vector(1.0, 0.0, &[(fpga, 2.0), (n.gpu, 2.0), (Dim::PODS, 5.0)]);
    assert_eq!(collect(left.intersection(&right)), [Dim::CPU, Dim::PODS, n.gpu]);
    assert_eq!(collect(left.intersection_without_pods(&right)), [Dim::CPU, n.gpu]);
}

#[test]
fn presence_is_not_an_amount() {
    let n = names();
    let mut some = Resource::new();
    assert!(!some.has_scalars() && some.is_empty() && some.is_zero(n.gpu));
    assert_eq!(collect(some.dims()), [Dim::CPU, Dim::MEMORY]);
    some.set(Dim::PODS, 3);
    assert!(some.has(Dim::PODS) && some.has_scalars() && some.is_empty(), "pods do not count");
    some.set(n.gpu, 0);
    assert_eq!(collect(some.dims()), [Dim::CPU, Dim::MEMORY, Dim::PODS, n.gpu]);
    assert_eq!(collect(some.names()), [Dim::PODS]);
    some.remove(n.gpu);
    some.remove(Dim::PODS);
    assert_eq!(some, Resource::new(), "room behind the last dimension does not count");
    some.set(n.gpu, 1);
    assert!(!some.is_empty());
}

#[test]
fn clamped_subtraction_tells_what_was_short() {
    let n = names();
    let mut left = vector(5, 5, &[(n.gpu, 1)]);
    assert!(!left.sub_clamped(&vector(5, 2, &[])));
    assert_eq!(left, vector(0, 3, &[(n.gpu, 1)]));
    assert!(left.sub_clamped(&vector(0, 1, &[(n.gpu, 2), (n.huge, 1)])));
    assert_eq!(left, vector(0, 2, &[(n.gpu, 0), (n.huge, 0)]));
    let mut plain = vector(5, 5, &[]);
    assert!(!plain.sub_clamped(&vector(1, 1, &[(n.gpu, 0)])));
    assert_eq!(plain, vector(4, 4, &[]), "no scalars are made");
    let mut fractional = vector(1.0, 0.0, &[]);
    assert!(!fractional.sub_clamped(&vector(1.05, 0.0, &[])), "within ε is enough");
}

#[test]
fn fits_ignores_dimensions_that_are_not_requested() {
    let n = names();
    let idle = vector(-1000, 4096, &[(Dim::PODS, 7), (n.gpu, -1000)]);
    let memory = vector(0, 4096, &[(Dim::PODS, 1), (n.gpu, 0)]);
    assert!(memory.fits(&idle) && memory.first_lacking(&idle, &n.dims).is_none());
    assert!(!memory.less_equal(&idle, Zero), "the general comparison does look");
    let both = vector(1, 1, &[(n.huge, 1), (Dim::PODS, 8), (n.gpu, 1)]);
    assert!(!both.fits(&idle));
    assert_eq!(both.first_lacking(&idle, &n.dims), Some(Dim::CPU));
    let scalars = vector(0, 1, &[(Dim::PODS, 8), (n.gpu, 1), (n.huge, 1)]);
    assert_eq!(scalars.first_lacking(&idle, &n.dims), Some(n.huge), "report order is by name");
    assert!(!scalars.fits(&Resource::new()), "a scalar the node lacks is 0");
    assert!(vector(1.05, 0.0, &[]).fits(&vector(1.0, -5.0, &[])));
}

#[test]
fn back_to_kubernetes() {
    let mut n = names();
    let volumes = n.dims.intern("attachable-volumes-csi-x").unwrap();
    let scalars = [(Dim::PODS, 3.9), (n.gpu, 2500.0), (n.huge, 2000.0), (volumes, 1.0)];
    let used = vector(1500.9, 4294967296.7, &scalars);
    let want = [
        ("cpu", "1500m"),
        ("memory", "4Gi"),
        ("attachable-volumes-csi-x", "1"),
        ("hugepages-test", "2"),
        ("nvidia.com/gpu", "2500m"),
        ("pods", "3"),
    ];
    let want = want.map(|(name, quantity)| (name.to_owned(), quantity.to_owned()));
    assert_eq!(used.to_quantities(&n.dims), want);
}
