/** Limits of a body that is read; a body that nothing reads has none of these. */

export interface BodyLimits {
  /** Nested elements, objects and arrays. */
  readonly depth: number
  /** Elements and attributes of XML; members and items of JSON; parts and fields of forms. */
  readonly items: number
  /** Characters of a name, and of a JSON number. */
  readonly nameLength: number
  /** Characters of one text. */
  readonly textLength: number
  /** Bytes without content coding. */
  readonly decodedSize: number
  /** Decoded bytes for each coded byte, beyond the first MiB of decoded bytes. */
  readonly codingRatio: number
}

/** Defaults of the keys `body.max_…` of `[mediation]`. */
export const DEFAULT_LIMITS: BodyLimits = {
  depth: 200,
  items: 500_000,
  nameLength: 1024,
  textLength: 33_554_432,
  decodedSize: 67_108_864,
  codingRatio: 250,
}
