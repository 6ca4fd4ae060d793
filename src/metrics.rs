//! The measures of evaluation and their significance tests: numbers in, numbers out.
