//! `cel.bind(name, value, expression)`: a name for a value inside an expression. A comprehension
//! over nothing, whose accumulator is the name, evaluates just that.

use cel::common::ast::{ComprehensionExpr, Expr, ListExpr, LiteralValue};
use cel::parser::{Macro, MacroExprHelper};
use cel::{IdedExpr, ParseError};

/// The macro; a `bind` on anything but `cel` is left alone.
pub(crate) fn cel_bind() -> Macro {
    Macro::receiver("bind", 3, |helper, target, args| {
        let of_cel = target
            .as_ref()
            .is_some_and(|target| matches!(&target.expr, Expr::Ident(name) if name == "cel"));
        if of_cel { expand(helper, args) } else { Ok(None) }
    })
}

fn expand(
    helper: &mut MacroExprHelper<'_>,
    args: &mut Vec<IdedExpr>,
) -> Result<Option<IdedExpr>, ParseError> {
    let (Some(result), Some(init), Some(name)) = (args.pop(), args.pop(), args.pop()) else {
        return Ok(None);
    };
    let Expr::Ident(accu_var) = name.expr else {
        return Err(helper.new_error(name.id, "the first argument of cel.bind must be a name"));
    };
    Ok(Some(named(helper, accu_var, init, result)))
}

/// The result, with a name for a value in it.
pub(crate) fn named(
    helper: &mut MacroExprHelper<'_>,
    name: String,
    value: IdedExpr,
    result: IdedExpr,
) -> IdedExpr {
    let loop_step = helper.next_expr(Expr::Ident(name.clone()));
    let loop_cond = helper.next_expr(Expr::Literal(LiteralValue::Boolean(false.into())));
    let iter_range = helper.next_expr(Expr::List(ListExpr::new(Vec::new())));
    helper.next_expr(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range,
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: name,
        accu_init: value,
        loop_cond,
        loop_step,
        result,
    })))
}
