//! Recorded colour schemes and their results.

use crate::same::same;
use serde_json::{Value, json};
use stackglass_flame::{Color, ColorFunction, FlameColors, Highlight, StackFrameCategory, categories};

/// Converts the arguments of a scheme to its lists.
pub(crate) fn judge(case: &Value) -> Result<(), String> {
    let stored = &case["colors"];
    same(&stored["resolved"], &lists(&flame_colors(stored)?))
}

fn lists(colors: &FlameColors) -> Value {
    let texts = |list: &[Color]| list.iter().map(Color::to_string).collect::<Vec<_>>();
    json!({
        "colors": texts(&colors.colors),
        "colorbg": colors.colorbg.to_string(),
        "colorfont": colors.colorfont.to_string(),
        "colorsrt": texts(&colors.colorsrt),
        "colorsgc": texts(&colors.colorsgc),
    })
}

/// The colour function of a case.
pub(crate) fn function(stored: &Value) -> Result<Box<dyn ColorFunction>, String> {
    let scheme = stored["scheme"].as_str().unwrap_or_default();
    if scheme == "category" {
        return category(&stored["modcat"]);
    }
    let colors = match scheme {
        "explicit" => explicit(&stored["resolved"])?,
        _ => flame_colors(stored)?,
    };
    if stored["resolved"].is_object() {
        same(&stored["resolved"], &lists(&colors))?;
    }
    Ok(Box::new(colors))
}

fn category(modcat: &Value) -> Result<Box<dyn ColorFunction>, String> {
    Ok(match modcat {
        Value::String(name) if name == "default" => Box::new(StackFrameCategory::default()),
        Value::String(_) => Box::new(StackFrameCategory::new(|_| None, categories::default_loccat)),
        list => {
            let list = list.as_array().into_iter().flatten();
            let list = list
                .map(|pair| Ok((pair[0].as_str().unwrap_or_default().to_owned(), color(&pair[1])?)))
                .collect::<Result<Vec<_>, String>>()?;
            let modcat =
                move |module: &str| list.iter().find(|(name, _)| name == module).map(|(_, color)| *color);
            Box::new(StackFrameCategory::new(modcat, categories::default_loccat))
        }
    })
}

fn flame_colors(stored: &Value) -> Result<FlameColors, String> {
    // Negative numbers mean 0.
    let n = stored["n"].as_i64().unwrap_or(2).max(0) as u16;
    let mut builder = FlameColors::builder().n(n).darkmode(stored["darkmode"] == true);
    if let Some(given) = stored.get("colorbg") {
        builder = builder.colorbg(color(given)?);
    }
    if let Some(given) = stored.get("colorfont") {
        builder = builder.colorfont(color(given)?);
    }
    if let Some(given) = stored.get("colorsrt") {
        builder = builder.colorsrt(highlight(given)?);
    }
    if let Some(given) = stored.get("colorsgc") {
        builder = builder.colorsgc(highlight(given)?);
    }
    Ok(builder.build())
}

fn explicit(stored: &Value) -> Result<FlameColors, String> {
    Ok(FlameColors {
        colors: list(&stored["colors"])?,
        colorbg: color(&stored["colorbg"])?,
        colorfont: color(&stored["colorfont"])?,
        colorsrt: list(&stored["colorsrt"])?,
        colorsgc: list(&stored["colorsgc"])?,
    })
}

fn highlight(stored: &Value) -> Result<Highlight, String> {
    Ok(match stored {
        Value::Null => Highlight::None,
        Value::Array(_) => list(stored)?.into(),
        one => color(one)?.into(),
    })
}

fn list(stored: &Value) -> Result<Vec<Color>, String> {
    stored.as_array().into_iter().flatten().map(color).collect()
}

fn color(stored: &Value) -> Result<Color, String> {
    stored.as_str().unwrap_or_default().parse().map_err(|error| format!("{error}\n"))
}
