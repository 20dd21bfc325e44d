//! The types `net.IP` and `net.CIDR` and their functions. Specification: plugins-nodes.md 6.6.

use std::any::Any;
use std::net::IpAddr;

use cel::common::types::{CelBool, CelInt, CelString, Type};
use cel::common::value::{StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};

static IP: Type = Type::new_unspecified_type("net.IP");
static CIDR: Type = Type::new_unspecified_type("net.CIDR");

/// An address; IPv4 ones in the form of IPv6 and zones are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ip(IpAddr);

/// An address with the length of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cidr {
    address: IpAddr,
    n_bits: u8,
}

macro_rules! value {
    ($of:ty, $type:ident) => {
        impl Val for $of {
            fn get_type(&self) -> &Type {
                &$type
            }
            fn cel_type() -> &'static Type {
                &$type
            }
            fn equals(&self, other: &dyn Val) -> bool {
                other.downcast_ref::<Self>().is_some_and(|other| self == other)
            }
            fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
                Box::new(*self)
            }
            fn as_any(&self) -> Option<&dyn Any> {
                Some(self)
            }
        }

        impl StaticVal for $of {}
    };
}

value!(Ip, IP);
value!(Cidr, CIDR);

impl Ip {
    fn parse(text: &str) -> Result<Self, ExecutionError> {
        let wrong = |problem: &str| {
            let text = format!("IP Address {text:?} parse error during conversion: {problem}");
            ExecutionError::function_error("ip", text)
        };
        match text.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
                Err(wrong("IPv4-mapped IPv6 address is not allowed"))
            }
            Ok(address) => Ok(Self(address)),
            Err(error) => Err(wrong(&error.to_string())),
        }
    }
}

impl Cidr {
    fn parse(text: &str) -> Result<Self, ExecutionError> {
        let wrong = || {
            let text = format!("network address parse error during conversion: {text:?}");
            ExecutionError::function_error("cidr", text)
        };
        let (address, length) = text.split_once('/').ok_or_else(wrong)?;
        let Ip(address) = Ip::parse(address).map_err(|_| wrong())?;
        let plain = length == "0" || !length.starts_with(['0', '+']);
        let n_bits = length.parse().ok().filter(|&n_bits| plain && n_bits <= width(address));
        Ok(Self { address, n_bits: n_bits.ok_or_else(wrong)? })
    }

    fn network(self) -> u128 {
        prefix(self.address, self.n_bits)
    }

    fn has(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && prefix(address, self.n_bits) == self.network()
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The first bits of an address as a number, the others 0.
fn prefix(address: IpAddr, n_bits: u8) -> u128 {
    let number = match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    let n_rest = u32::from(width(address) - n_bits);
    number.checked_shr(n_rest).and_then(|kept| kept.checked_shl(n_rest)).unwrap_or(0)
}

/// Adds the functions.
pub(crate) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_type(IP.to_owned())?;
    env.add_type(CIDR.to_owned())?;
    add_overload!(env, fn ip: (CelString) -> Result<Ip>)?;
    add_overload!(env, fn is_ip: (CelString) -> CelBool, name = "isIP")?;
    add_overload!(env, fn is_canonical: (CelString) -> Result<CelBool>, name = "ip.isCanonical")?;
    add_member_overload!(env, fn family: (Ip) -> CelInt)?;
    add_member_overload!(env, fn is_unspecified: (Ip) -> CelBool)?;
    add_member_overload!(env, fn is_loopback: (Ip) -> CelBool)?;
    add_member_overload!(env, fn is_link_local_multicast: (Ip) -> CelBool)?;
    add_member_overload!(env, fn is_link_local_unicast: (Ip) -> CelBool)?;
    add_member_overload!(env, fn is_global_unicast: (Ip) -> CelBool)?;
    add_overload!(env, fn ip_text: (Ip) -> CelString, name = "string")?;
    add_overload!(env, fn cidr: (CelString) -> Result<Cidr>)?;
    add_overload!(env, fn is_cidr: (CelString) -> CelBool, name = "isCIDR")?;
    add_member_overload!(env, fn contains_ip: (Cidr, Ip) -> CelBool, name = "containsIP")?;
    add_member_overload!(env, fn contains_ip_text: (Cidr, CelString) -> Result<CelBool>,
        name = "containsIP")?;
    add_member_overload!(env, fn contains_cidr: (Cidr, Cidr) -> CelBool, name = "containsCIDR")?;
    add_member_overload!(env, fn contains_cidr_text: (Cidr, CelString) -> Result<CelBool>,
        name = "containsCIDR")?;
    add_member_overload!(env, fn ip_of: (Cidr) -> Ip, name = "ip")?;
    add_member_overload!(env, fn masked: (Cidr) -> Cidr)?;
    add_member_overload!(env, fn prefix_length: (Cidr) -> CelInt)?;
    add_overload!(env, fn cidr_text: (Cidr) -> CelString, name = "string")
}

fn ip(text: &CelString<'_>) -> Result<Ip, ExecutionError> {
    Ip::parse(text.inner())
}

fn is_ip(text: &CelString<'_>) -> CelBool {
    Ip::parse(text.inner()).is_ok().into()
}

fn is_canonical(text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    let Ip(address) = Ip::parse(text.inner())?;
    Ok((address.to_string() == *text.inner()).into())
}

fn family(of: &Ip) -> CelInt {
    if of.0.is_ipv4() { 4.into() } else { 6.into() }
}

fn is_unspecified(of: &Ip) -> CelBool {
    of.0.is_unspecified().into()
}

fn is_loopback(of: &Ip) -> CelBool {
    of.0.is_loopback().into()
}

fn is_link_local_multicast(of: &Ip) -> CelBool {
    let is_one = match of.0 {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => {
            let [first, second, ..] = address.octets();
            first == 0xff && second & 0x0f == 0x02
        }
    };
    is_one.into()
}

fn links_locally(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn is_link_local_unicast(of: &Ip) -> CelBool {
    links_locally(of.0).into()
}

fn is_global_unicast(of: &Ip) -> CelBool {
    let address = of.0;
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    let is_special = address.is_unspecified() || address.is_loopback() || address.is_multicast();
    (!is_broadcast && !is_special && !links_locally(address)).into()
}

fn ip_text(of: &Ip) -> CelString<'static> {
    CelString::from(of.0.to_string())
}

fn cidr(text: &CelString<'_>) -> Result<Cidr, ExecutionError> {
    Cidr::parse(text.inner())
}

fn is_cidr(text: &CelString<'_>) -> CelBool {
    Cidr::parse(text.inner()).is_ok().into()
}

fn contains_ip(of: &Cidr, address: &Ip) -> CelBool {
    of.has(address.0).into()
}

fn contains_ip_text(of: &Cidr, text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    Ok(contains_ip(of, &Ip::parse(text.inner())?))
}

fn contains_cidr(of: &Cidr, other: &Cidr) -> CelBool {
    (of.n_bits <= other.n_bits && of.has(other.address)).into()
}

fn contains_cidr_text(of: &Cidr, text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    Ok(contains_cidr(of, &Cidr::parse(text.inner())?))
}

fn ip_of(of: &Cidr) -> Ip {
    Ip(of.address)
}

fn masked(of: &Cidr) -> Cidr {
    let address = match of.address {
        IpAddr::V4(_) => IpAddr::V4(u32::try_from(of.network()).unwrap_or(0).into()),
        IpAddr::V6(_) => IpAddr::V6(of.network().into()),
    };
    Cidr { address, ..*of }
}

fn prefix_length(of: &Cidr) -> CelInt {
    i64::from(of.n_bits).into()
}

fn cidr_text(of: &Cidr) -> CelString<'static> {
    CelString::from(format!("{}/{}", of.address, of.n_bits))
}
