/** JSON.parse source text access (ECMAScript 2026), which the types of the compiler do not have yet. */
interface RawJson {
  readonly rawJSON: string
}

interface JSON {
  rawJSON(text: string): RawJson
  isRawJSON(value: unknown): value is RawJson
}
