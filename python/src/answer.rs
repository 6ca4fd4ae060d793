//! Numbers on their way to Python: NumPy arrays, or Arrow with nulls.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, FixedSizeListArray, Float32Array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, FieldRef};
use numpy::ndarray::Array2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use pyo3_arrow::ffi::{to_array_pycapsules, to_schema_pycapsule};

/// A column of answers that libraries take over by Arrow's C data interface, without a copy:
/// `pyarrow.array(column)`, `polars.Series(column)`.
#[pyclass(frozen, module = "cognate_text._native")]
pub(crate) struct ArrowArray {
    array: ArrayRef,
    field: FieldRef,
}

impl ArrowArray {
    fn new(array: ArrayRef) -> Self {
        let field = Arc::new(Field::new("", array.data_type().clone(), true));
        Self { array, field }
    }

    /// A number a row; null where it is not valid.
    pub(crate) fn numbers(numbers: Vec<f32>, valid: Vec<bool>) -> Self {
        Self::new(Arc::new(Float32Array::new(numbers.into(), nulls(valid))))
    }

    /// A vector a row; null where it is not valid.
    pub(crate) fn vectors(vectors: Array2<f32>, valid: Vec<bool>) -> PyResult<Self> {
        let item = Arc::new(Field::new("item", DataType::Float32, false));
        let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
        let width = i32::try_from(vectors.ncols()).map_err(|error| wrong(&error))?;
        let (numbers, _) = vectors.into_raw_vec_and_offset();
        let values: ArrayRef = Arc::new(Float32Array::new(numbers.into(), None));
        let list = FixedSizeListArray::try_new(item, width, values, nulls(valid));
        Ok(Self::new(Arc::new(list.map_err(|error| wrong(&error))?)))
    }
}

fn nulls(valid: Vec<bool>) -> Option<NullBuffer> {
    Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0)
}

#[pymethods]
impl ArrowArray {
    fn __len__(&self) -> usize {
        self.array.len()
    }

    fn __repr__(&self) -> String {
        let (kind, rows) = (self.array.data_type(), self.array.len());
        format!("<cognate ArrowArray: {rows} rows of {kind}, {} null>", self.null_count())
    }

    /// Rows that are null.
    #[getter]
    fn null_count(&self) -> usize {
        self.array.null_count()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let field = Arc::clone(&self.field);
        Ok(to_array_pycapsules(py, field, self.array.as_ref(), requested_schema)?)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.field.as_ref())?)
    }
}
