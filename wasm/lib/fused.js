// Whether this engine's relaxed multiply-add is fused, that is rounded once, as every score of cognate is.

/** A module of one function of three singles, `a * b + c` by `f32x4.relaxed_madd`. */
// prettier-ignore
const PROBE = Uint8Array.of(
  0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, // magic and version
  0x01, 0x08, 0x01, 0x60, 0x03, 0x7d, 0x7d, 0x7d, 0x01, 0x7d, // type: (f32, f32, f32) -> f32
  0x03, 0x02, 0x01, 0x00, // one function of it
  0x07, 0x05, 0x01, 0x01, 0x66, 0x00, 0x00, // exported as "f"
  0x0a, 0x16, 0x01, 0x14, 0x00, // its code, without locals
  0x20, 0x00, 0xfd, 0x13, 0x20, 0x01, 0xfd, 0x13, 0x20, 0x02, 0xfd, 0x13, // all lanes a, b and c
  0xfd, 0x85, 0x02, // f32x4.relaxed_madd
  0xfd, 0x1f, 0x00, 0x0b, // the first lane
);

/** Factors, a third number, and the sum rounded once: products with digits that a second rounding loses, one that
    doubles lose, and one of the smallest numbers. */
const CASES = [
  [1 + 2 ** -12, 1 + 2 ** -12, -(1 + 2 ** -11), 2 ** -24],
  [2 ** -24 * (1 + 2 ** -15), 1 - 2 ** -15, 1 + 2 ** -23, 1 + 2 ** -23],
  [2 ** -75, 2 ** -74, 0, 2 ** -149],
];

/** What was found here holds for the whole run: the choice between fused and not is a global parameter of the
    engine, and "these choices are fixed, that is, parameters are constant during the execution of any given program"
    (WebAssembly Core Specification 3.0, Numerics, Relaxed Operations). */
export function isFused() {
  try {
    const { f } = new WebAssembly.Instance(new WebAssembly.Module(PROBE)).exports;
    return CASES.every(([a, b, c, expected]) => f(a, b, c) === expected);
  } catch (error) {
    // Engines without relaxed vectors know no such instruction.
    if (error instanceof WebAssembly.CompileError) return false;
    throw error;
  }
}
