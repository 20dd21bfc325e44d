//! What an expression may cost: bounded from its form before it is ever evaluated, so that no
//! selector can hold up a cycle or take all memory. Specification: plugins-nodes.md 6.6 (cost
//! limit).

use cel::IdedExpr;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue};

/// The limit of Kubernetes, for evaluations and for the size of any value.
const LIMIT: u64 = 1_000_000;

/// Longest expression that an API server stores.
const LONGEST: usize = 10 << 10;

/// Elements of what a comprehension goes over, where the expression does not say: a device has at
/// most 32 attributes and capacities.
const ELEMENTS: u64 = 32;

/// Longest text that an attribute or a name of a device has.
const TEXT: u64 = 64;

/// Comprehensions inside each other; with one element each they would still be bounded.
const DEEPEST: usize = 6;

/// Functions whose value is one number, truth value or object, whatever they are given.
const SCALARS: &[&str] = &[
    "!_",
    "-_",
    "@in",
    "@not_strictly_false",
    "_!=_",
    "_%_",
    "_&&_",
    "_*_",
    "_-_",
    "_/_",
    "_<=_",
    "_<_",
    "_==_",
    "_>=_",
    "_>_",
    "_||_",
    "compareTo",
    "contains",
    "endsWith",
    "indexOf",
    "isCIDR",
    "isIP",
    "isQuantity",
    "isSemver",
    "isURL",
    "isGreaterThan",
    "isLessThan",
    "isSorted",
    "lastIndexOf",
    "matches",
    "sets.contains",
    "sets.equivalent",
    "sets.intersects",
    "size",
    "startsWith",
];

/// Characters of what may be wrong with the format of a text, without the text.
const PROBLEMS: u64 = 1_000;

/// Characters that cost as much as one evaluation.
const CHARACTERS: u64 = 10;

/// Parts of an expression inside each other: evaluation takes stack for each.
const MOST_LEVELS: usize = 48;

/// Whether the text is short enough to be parsed.
pub(crate) fn is_short(expression: &str) -> bool {
    expression.len() <= LONGEST
}

/// What keeps the expression from being evaluated, if anything does.
pub(crate) fn problem(expression: &IdedExpr) -> Option<&'static str> {
    if !is_flat(expression) {
        return Some("the expression is nested too deeply");
    }
    let is_dear = LIMIT < Names::default().bound(expression).cost;
    is_dear.then_some("the expression may cost too much")
}

/// Whether evaluation does not go too deep; asked without going there itself.
fn is_flat(expression: &IdedExpr) -> bool {
    let mut level = vec![expression];
    for _ in 0..MOST_LEVELS {
        if level.is_empty() {
            return true;
        }
        level = level.into_iter().flat_map(parts).collect();
    }
    false
}

/// The expressions directly inside of one.
fn parts(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(loops) => vec![
            &loops.iter_range,
            &loops.accu_init,
            &loops.loop_cond,
            &loops.loop_step,
            &loops.result,
        ],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Struct(of) => of.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        _ => Vec::new(),
    }
}

fn entry_parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    }
}

/// What an expression takes at most.
#[derive(Clone, Copy, Debug)]
struct Bound {
    /// Evaluations of nodes of the expression.
    cost: u64,
    /// Characters and elements of the value, those inside of it too.
    size: u64,
    /// Elements that a comprehension over the value goes through.
    n_elements: u64,
}

/// Variables in force, innermost last, with the bounds of their values.
#[derive(Default)]
struct Names<'a> {
    known: Vec<(&'a str, Bound)>,
    /// Comprehensions that go through something.
    depth: usize,
}

/// A value of this size that costs nothing.
fn sized(size: u64) -> Bound {
    Bound { cost: 0, size, n_elements: size }
}

/// Something of a device.
const OF_DEVICE: Bound = Bound { cost: 0, size: TEXT, n_elements: ELEMENTS };

/// More than anything may take.
const ENDLESS: Bound = Bound { cost: u64::MAX, size: u64::MAX, n_elements: u64::MAX };

impl<'a> Names<'a> {
    fn bound(&mut self, expression: &'a IdedExpr) -> Bound {
        let inner = match &expression.expr {
            Expr::Literal(LiteralValue::String(text)) => sized(text.inner().len() as u64),
            Expr::Literal(LiteralValue::Bytes(bytes)) => sized(bytes.inner().len() as u64),
            Expr::Ident(name) => {
                let known = self.known.iter().rev().find(|(known, _)| known == name);
                known.map_or(OF_DEVICE, |(_, bound)| Bound { cost: 0, ..*bound })
            }
            Expr::Select(select) => self.bound(&select.operand),
            Expr::List(list) => {
                let sum = self.sum(&list.elements);
                Bound { n_elements: list.elements.len() as u64, ..sum }
            }
            Expr::Map(map) => {
                let sum = self.sum(parts(expression));
                Bound { n_elements: map.entries.len() as u64, ..sum }
            }
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(loops) => self.comprehension(loops),
            _ => sized(1),
        };
        // What is too large must not be made.
        match inner.size <= LIMIT && inner.cost <= LIMIT {
            true => Bound { cost: inner.cost + 1, size: inner.size + 1, ..inner },
            false => ENDLESS,
        }
    }

    /// All of them, one after the other.
    fn sum(&mut self, parts: impl IntoIterator<Item = &'a IdedExpr>) -> Bound {
        parts.into_iter().map(|part| self.bound(part)).fold(sized(0), Bound::and)
    }

    fn call(&mut self, call: &'a CallExpr) -> Bound {
        let parts = call.target.as_deref().into_iter().chain(&call.args);
        let parts: Vec<Bound> = parts.map(|part| self.bound(part)).collect();
        let sum = parts.iter().copied().fold(sized(0), Bound::and);
        let times = |product: u64, part: &Bound| product.saturating_mul(part.size);
        let product = parts.iter().fold(1, times);
        let name = call.func_name.as_str();
        let work = match name {
            "find" | "findAll" | "format" | "join" | "matches" | "replace" | "sets.contains"
            | "sets.equivalent" | "sets.intersects" => product,
            _ => sum.size,
        };
        let cost = sum.cost.saturating_add(work / CHARACTERS);
        match name {
            _ if SCALARS.contains(&name) => Bound { cost, ..sized(1) },
            // One of the two is the value.
            "_?_:_" => {
                let either = parts[1..].iter().copied().fold(sized(0), Bound::or);
                Bound { cost, ..either }
            }
            "format" | "join" | "replace" => Bound { cost, ..sized(product) },
            "_+_" | "_[_]" | "_[?_]" | "_?._" | "orValue" | "@pairs" | "@mapInsert" => {
                Bound { cost, ..sum }
            }
            // Every character may become three.
            "getEscapedPath" | "strings.quote" => {
                Bound { cost, ..sized(sum.size.saturating_mul(3)) }
            }
            // With what is wrong.
            "validate" => Bound { cost, ..sized(sum.size.saturating_add(PROBLEMS)) },
            _ => Bound { cost, ..sized(sum.size) },
        }
    }

    fn comprehension(&mut self, loops: &'a ComprehensionExpr) -> Bound {
        let (range, init) = (self.bound(&loops.iter_range), self.bound(&loops.accu_init));
        let n_names = self.known.len();
        let (once, accumulated) = match range.n_elements {
            // A name for a value: nothing is gone through.
            0 => (0, init),
            n_elements => self.steps(loops, range.size, n_elements, init),
        };
        self.known.push((&loops.accu_var, accumulated));
        let result = self.bound(&loops.result);
        self.known.truncate(n_names);
        let steps = once.saturating_mul(range.n_elements);
        let cost = [init.cost, result.cost, steps];
        Bound { cost: cost.into_iter().fold(range.cost, u64::saturating_add), ..result }
    }

    /// What a step costs, and the accumulator after the last one.
    fn steps(
        &mut self,
        loops: &'a ComprehensionExpr,
        range_size: u64,
        n_elements: u64,
        init: Bound,
    ) -> (u64, Bound) {
        if self.depth == DEEPEST {
            return (u64::MAX, ENDLESS);
        }
        self.depth += 1;
        let n_names = self.known.len();
        let variables = std::iter::once(&loops.iter_var).chain(&loops.iter_var2);
        self.known.extend(variables.map(|name| (name.as_str(), sized(range_size))));
        let mut step = |size: u64| {
            self.known.push((&loops.accu_var, sized(size)));
            let cost = self.bound(&loops.loop_cond).cost;
            let after = self.bound(&loops.loop_step);
            self.known.pop();
            (cost.saturating_add(after.cost), after.size)
        };
        // A step adds to the accumulator; a multiple of it would grow without bound.
        let much = LIMIT / 4;
        let ((_, growth), (_, after)) = (step(0), step(much));
        let growth = if after <= growth.saturating_add(much) { growth } else { u64::MAX };
        let grown = growth.saturating_mul(n_elements);
        let (once, _) = step(init.size.saturating_add(grown));
        self.known.truncate(n_names);
        self.depth -= 1;
        let size = init.size.saturating_add(grown);
        (once, Bound { cost: 0, size, n_elements: size })
    }
}

impl Bound {
    fn and(self, other: Self) -> Self {
        Self {
            cost: self.cost.saturating_add(other.cost),
            size: self.size.saturating_add(other.size),
            n_elements: self.n_elements.saturating_add(other.n_elements),
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            cost: self.cost.max(other.cost),
            size: self.size.max(other.size),
            n_elements: self.n_elements.max(other.n_elements),
        }
    }
}
