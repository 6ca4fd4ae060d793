//! The matrices of a fastText file: the input, as floats or as the codes of a product quantiser, and the
//! output, which is stepped over.
//!
//! A quantised row (Joulin et al. 2016, "FastText.zip", section 3.2) is a code for each part of it:
//! the place of that part among 256 centroids. With `qnorm` its length has a code, too.
//!
//! ```text
//! u8 lengths are quantised; i64 rows, columns; i32 codes; codes times: u8
//! quantiser of the parts
//! if lengths are quantised: rows times: u8; quantiser of the lengths
//!
//! quantiser: i32 dims, parts, numbers of a part, of the last part; f32 256 x dims
//! ```

use crate::readers::ReadError;
use crate::readers::positioned::{Scan, Source};

/// Centroids that a code chooses from.
const CENTROIDS: usize = 256;

/// The input matrix, whose rows are read by position.
#[derive(Debug)]
pub(super) enum Matrix {
    /// Floats from this byte on.
    Floats {
        begin: u64,
        dims: usize,
    },
    Quantised(Quantised),
}

#[derive(Debug)]
pub(super) struct Quantised {
    codes: u64,
    parts: Quantiser,
    lengths: Option<(u64, Quantiser)>,
}

/// Centroids, part after part.
#[derive(Debug)]
struct Quantiser {
    dims: usize,
    part: usize,
    centroids: Vec<f32>,
}

impl Matrix {
    /// Checks the shape and size of the input matrix, of floats or codes, and steps over it.
    pub(super) fn input(scan: &mut Scan, rows: u64, dims: usize) -> Result<Self, ReadError> {
        if flag(scan, "whether the input is quantised")? {
            return Ok(Self::Quantised(Quantised::read(scan, rows, dims)?));
        }
        let (at, shape) = shape(scan, rows, dims)?;
        let begin = scan.position();
        step_over_matrix(scan, at, shape)?;
        Ok(Self::Floats { begin, dims })
    }

    /// Where a row begins. Cannot overflow for a row that there is, because the whole matrix was
    /// found to lie inside the file.
    pub(super) fn row_at(&self, row: u64) -> u64 {
        match self {
            Self::Floats { begin, dims } => begin + row * *dims as u64 * 4,
            Self::Quantised(rows) => rows.codes + row * rows.parts.count() as u64,
        }
    }

    /// Reads a row; `bytes` is space used again.
    pub(super) fn row(
        &self,
        source: &Source,
        row: u64,
        bytes: &mut Vec<u8>,
        out: &mut [f32],
    ) -> Result<(), ReadError> {
        let at = self.row_at(row);
        let rows = match self {
            Self::Floats { .. } => return source.floats_at(at, bytes, out),
            Self::Quantised(rows) => rows,
        };
        let mut length = 1.0;
        if let Some((begin, lengths)) = &rows.lengths {
            let mut code = [0; 1];
            source.read_at(begin + row, &mut code)?;
            lengths.decode(&code, 1.0, std::slice::from_mut(&mut length));
        }
        bytes.resize(rows.parts.count(), 0);
        source.read_at(at, bytes)?;
        rows.parts.decode(bytes, length, out);
        Ok(())
    }
}

impl Quantised {
    fn read(scan: &mut Scan, rows: u64, dims: usize) -> Result<Self, ReadError> {
        let with_lengths = flag(scan, "whether lengths are quantised")?;
        shape(scan, rows, dims)?;
        let at = scan.position();
        let size = scan.i32("the number of codes")?;
        let codes = scan.position();
        let size = u64::try_from(size).ok().filter(|&size| size <= scan.left());
        let Some(size) = size else {
            return Err(scan.source().malformed(at, "more codes than fit in the file"));
        };
        scan.seek(codes + size);
        let parts = Quantiser::read(scan, dims)?;
        if rows.checked_mul(parts.count() as u64) != Some(size) {
            let problem =
                format!("expected {} codes for each of {rows} rows, found {size}", parts.count());
            return Err(scan.source().malformed(at, problem));
        }
        let mut lengths = None;
        if with_lengths {
            let begin = scan.position();
            if rows > scan.left() {
                return Err(scan.source().malformed(begin, "more lengths than fit in the file"));
            }
            scan.seek(begin + rows);
            lengths = Some((begin, Quantiser::read(scan, 1)?));
        }
        Ok(Self { codes, parts, lengths })
    }
}

impl Quantiser {
    fn read(scan: &mut Scan, dims: usize) -> Result<Self, ReadError> {
        let at = scan.position();
        let mut number = |what| scan.i32(what).map(|number| usize::try_from(number).unwrap_or(0));
        let found = [
            number("the dimensions of a quantiser")?,
            number("the parts of a quantiser")?,
            number("the numbers of a part")?,
            number("the numbers of the last part")?,
        ];
        let part = found[2];
        let last = match dims.checked_rem(part) {
            Some(0) => part,
            Some(rest) => rest,
            None => 0,
        };
        if part == 0 || found != [dims, dims.div_ceil(part), part, last] {
            let problem = format!(
                "expected a quantiser of {dims} dimensions and parts that cover them, found \
                 dimensions, parts and their numbers {found:?}"
            );
            return Err(scan.source().malformed(at, problem));
        }
        let begin = scan.position();
        // A row has at most `Budget::dims` numbers.
        let count = CENTROIDS * dims;
        if count as u64 * 4 > scan.left() {
            return Err(scan.source().malformed(begin, "more centroids than fit in the file"));
        }
        let mut centroids = vec![0.0; count];
        scan.source().floats_at(begin, &mut Vec::new(), &mut centroids)?;
        scan.seek(begin + count as u64 * 4);
        Ok(Self { dims, part, centroids })
    }

    /// Parts of a row.
    fn count(&self) -> usize {
        self.dims.div_ceil(self.part)
    }

    /// Writes the centroids that the codes choose, each times `scale`, into `out`.
    fn decode(&self, codes: &[u8], scale: f32, out: &mut [f32]) {
        let blocks = self.centroids.chunks(CENTROIDS * self.part);
        for ((out, block), &code) in out.chunks_mut(self.part).zip(blocks).zip(codes) {
            let begin = usize::from(code) * out.len();
            let centroid = block.get(begin..).unwrap_or_default();
            for (value, number) in out.iter_mut().zip(centroid) {
                *value = scale * number;
            }
        }
    }
}

/// Reads a shape, which must be this one, and gives back where it stands.
fn shape(scan: &mut Scan, rows: u64, dims: usize) -> Result<(u64, (i64, i64)), ReadError> {
    let at = scan.position();
    let shape = (scan.i64("rows")?, scan.i64("columns")?);
    if (u64::try_from(shape.0), usize::try_from(shape.1)) == (Ok(rows), Ok(dims)) {
        return Ok((at, shape));
    }
    let problem = format!(
        "expected an input matrix of {rows} x {dims} (words and buckets by dimensions), \
         found {} x {}",
        shape.0, shape.1
    );
    Err(scan.source().malformed(at, problem))
}

/// The output matrix is not read, but a file that ends inside it is a broken copy.
pub(super) fn check_output(scan: &mut Scan) -> Result<(), ReadError> {
    if flag(scan, "whether the output is quantised")? {
        return Ok(());
    }
    let at = scan.position();
    let shape = (scan.i64("rows")?, scan.i64("columns")?);
    step_over_matrix(scan, at, shape)
}

/// Whether something is so.
fn flag(scan: &mut Scan, what: &str) -> Result<bool, ReadError> {
    let at = scan.position();
    match scan.array(what)? {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => {
            Err(scan.source().malformed(at, format!("expected {what}, 0 or 1, found {other}")))
        }
    }
}

fn step_over_matrix(scan: &mut Scan, at: u64, shape: (i64, i64)) -> Result<(), ReadError> {
    let bytes = u64::try_from(shape.0)
        .ok()
        .zip(u64::try_from(shape.1).ok())
        .and_then(|(rows, columns)| rows.checked_mul(columns)?.checked_mul(4))
        .filter(|&bytes| bytes <= scan.left());
    let Some(bytes) = bytes else {
        let problem = format!(
            "a matrix of {} x {} floats cannot fit in the {} bytes left",
            shape.0,
            shape.1,
            scan.left()
        );
        return Err(scan.source().malformed(at, problem));
    };
    scan.seek(scan.position() + bytes);
    Ok(())
}
