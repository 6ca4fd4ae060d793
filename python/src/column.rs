//! A column of texts, as Python has them: lists, NumPy arrays, Series of pandas or Polars, Arrow.
//!
//! Arrow is asked for by its C data interface and read where it lies. Everything else becomes a list
//! of `str` objects, whose bytes are read where they lie, too. What is missing (`None`, a float NaN,
//! `pandas.NA`, a null) is no text; anything else that is not a `str` is refused by its place.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyList, PyString, PyTuple};
use pyo3_arrow::PyChunkedArray;

/// A column of texts, kept alive while they are read.
pub(crate) struct Column<'py> {
    /// What the argument is called.
    argument: &'static str,
    values: Values<'py>,
}

enum Values<'py> {
    /// Python's own strings.
    Objects(Vec<Option<Bound<'py, PyString>>>),
    /// The chunks of an Arrow column.
    Arrow(Vec<ArrayRef>),
}

impl<'py> Column<'py> {
    /// Takes what was passed as the argument of that name.
    pub(crate) fn new(object: &Bound<'py, PyAny>, argument: &'static str) -> PyResult<Self> {
        Ok(Self { argument, values: values(object, argument)? })
    }

    /// The texts, in order; nothing where one is missing.
    pub(crate) fn texts(&self) -> PyResult<Vec<Option<&str>>> {
        match &self.values {
            Values::Objects(objects) => {
                let numbered = objects.iter().enumerate();
                let texts = numbered.map(|(index, object)| {
                    let text = object.as_ref().map(|text| text.to_str()).transpose();
                    text.map_err(|error| {
                        PyValueError::new_err(format!("{}[{index}]: {error}", self.argument))
                    })
                });
                texts.collect()
            }
            Values::Arrow(chunks) => {
                let mut texts = Vec::with_capacity(chunks.iter().map(Array::len).sum());
                for chunk in chunks {
                    read_chunk(chunk.as_ref(), &mut texts);
                }
                Ok(texts)
            }
        }
    }
}

/// One text, passed as the argument of that name.
pub(crate) fn text<'o>(object: &'o Bound<'_, PyAny>, argument: &str) -> PyResult<Cow<'o, str>> {
    match object.cast::<PyString>() {
        Ok(text) => Ok(text.to_string_lossy()),
        Err(_) => Err(unfit(argument, "str", &object.get_type())),
    }
}

/// A text of a question, read as texts of columns are.
pub(crate) struct OwnText(pub(crate) String);

impl<'py> FromPyObject<'_, 'py> for OwnText {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(object.cast::<PyString>()?.to_string_lossy().into_owned()))
    }
}

/// The same string with U+FFFD for lone surrogates: `str` may hold them, as of an emoji that was cut
/// in JSON, and a text may not.
fn without_surrogates(text: Bound<'_, PyString>) -> Bound<'_, PyString> {
    match text.to_str() {
        Ok(_) => text,
        Err(_) => PyString::new(text.py(), &text.to_string_lossy()),
    }
}

fn values<'py>(object: &Bound<'py, PyAny>, argument: &str) -> PyResult<Values<'py>> {
    if let Ok(list) = object.cast::<PyList>() {
        return objects(list.iter(), argument);
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return objects(tuple.iter(), argument);
    }
    let alone = object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>();
    if alone || object.is_instance_of::<PyDict>() {
        return Err(unfit(argument, "a column of texts", &object.get_type()));
    }
    if speaks_arrow(object)? {
        // A Series of pandas needs pyarrow to speak Arrow, and Polars sends nulls with a buffer.
        if let Ok(column) = chunks(object) {
            return arrow(column, argument);
        }
    }
    if object.hasattr("tolist")? {
        let list = object.call_method0("tolist")?;
        return match list.cast::<PyList>() {
            Ok(list) => objects(list.iter(), argument),
            Err(_) => Err(unfit(argument, "a column of texts", &object.get_type())),
        };
    }
    let items = object.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    objects(items.into_iter(), argument)
}

/// An argument of another type than it must have.
pub(crate) fn unfit(
    argument: &str,
    expected: &str,
    found: &Bound<'_, pyo3::types::PyType>,
) -> PyErr {
    let found = found.name().map_or_else(|_| "something else".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{argument}: expected {expected}, got {found}"))
}

fn objects<'py>(
    items: impl ExactSizeIterator<Item = Bound<'py, PyAny>>,
    argument: &str,
) -> PyResult<Values<'py>> {
    let mut texts = Vec::with_capacity(items.len());
    for (index, item) in items.enumerate() {
        texts.push(match item.cast_into::<PyString>() {
            Ok(text) => Some(without_surrogates(text)),
            Err(error) => {
                let item = error.into_inner();
                if !is_missing(&item)? {
                    return Err(unfit(&format!("{argument}[{index}]"), "str", &item.get_type()));
                }
                None
            }
        });
    }
    Ok(Values::Objects(texts))
}

/// What Python's libraries write where there is no text.
fn is_missing(item: &Bound<'_, PyAny>) -> PyResult<bool> {
    if item.is_none() {
        return Ok(true);
    }
    if let Ok(number) = item.cast::<PyFloat>() {
        return Ok(number.value().is_nan());
    }
    let name = item.get_type().name()?;
    Ok(name == "NAType" || name == "NaTType")
}

/// Whether a column is to be had by Arrow's C data interface. Series of pandas that hold `str`
/// objects are not: pandas would copy them first.
fn speaks_arrow(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if !(object.hasattr("__arrow_c_stream__")? || object.hasattr("__arrow_c_array__")?) {
        return Ok(false);
    }
    let Ok(dtype) = object.getattr("dtype") else { return Ok(true) };
    Ok(dtype.get_type().fully_qualified_name()? != "numpy.dtypes.ObjectDType")
}

fn chunks(object: &Bound<'_, PyAny>) -> PyResult<PyChunkedArray> {
    if object.hasattr("__arrow_c_array__")? {
        let array: pyo3_arrow::PyArray = object.extract()?;
        let (array, field) = array.into_inner();
        return PyChunkedArray::try_new(vec![array], field);
    }
    object.extract()
}

fn arrow<'py>(column: PyChunkedArray, argument: &str) -> PyResult<Values<'py>> {
    let (chunks, _) = column.into_inner();
    match chunks.iter().find(|chunk| !is_text(chunk.data_type())) {
        None => Ok(Values::Arrow(chunks)),
        Some(_) if chunks.iter().all(|chunk| is_all_missing(chunk.as_ref())) => {
            Ok(Values::Objects(vec![None; chunks.iter().map(Array::len).sum()]))
        }
        Some(chunk) => {
            let found = chunk.data_type();
            let message = format!("{argument}: expected a column of strings, got {found}");
            Err(PyTypeError::new_err(message))
        }
    }
}

/// Whether all numbers of a column are missing: columns without any text come as numbers.
fn is_all_missing(chunk: &dyn Array) -> bool {
    match chunk.data_type() {
        DataType::Float64 => chunk.as_primitive::<Float64Type>().iter().flatten().all(f64::is_nan),
        _ => chunk.null_count() == chunk.len(),
    }
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

fn read_chunk<'c>(chunk: &'c dyn Array, texts: &mut Vec<Option<&'c str>>) {
    match chunk.data_type() {
        DataType::Utf8 => texts.extend(chunk.as_string::<i32>()),
        DataType::LargeUtf8 => texts.extend(chunk.as_string::<i64>()),
        DataType::Utf8View => texts.extend(chunk.as_string_view()),
        DataType::Dictionary(_, _) => {
            let coded = chunk.as_any_dictionary();
            let mut values = Vec::new();
            read_chunk(coded.values().as_ref(), &mut values);
            if values.is_empty() {
                texts.extend(std::iter::repeat_n(None, chunk.len()));
                return;
            }
            let keys = coded.normalized_keys().into_iter().enumerate();
            texts.extend(keys.map(|(index, key)| {
                if coded.is_null(index) { None } else { values.get(key).copied().flatten() }
            }));
        }
        // `is_text` let nothing else through: nulls alone.
        _ => texts.extend(std::iter::repeat_n(None, chunk.len())),
    }
}
