/**
 * Transport error codes: base + documented state number (specification, "Transport error codes"). The sum cannot be
 * taken apart again (101507 has seven readings), so everything but the way out carries base and state.
 */

/** Literals that are never summed. */
const LITERAL = new Set([102511, 101510, 900424])

/** The documented code. `base` 0 means no error and stays 0. */
export function transportCode(base: number, state: number): number {
  return base === 0 || LITERAL.has(base) ? base : base + state
}
