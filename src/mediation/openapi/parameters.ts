/** Parameters of a request, and header fields of a response: their texts, and the values that are validated. */
import type { ParameterContract, Violation } from './api-contract.ts'
import { type Definitions, Shape } from './schema-shape.ts'
import { ABSENT, decodeQuery, pairOf, type Reading, StyledValue, wrong } from './value-styles.ts'

type Pair = readonly [name: string, text: string]

/** The received text of parameters: still with percent-escapes where its place has them. */
export interface ReceivedParameters {
  readonly path: ReadonlyMap<string, string>
  readonly query: readonly Pair[]
  /** `name`: in lower case. */
  header(name: string): string | undefined
  readonly cookies: readonly Pair[]
}

/** Reads one parameter of its messages. */
export class ParameterReader {
  readonly contract: ParameterContract
  readonly #value: StyledValue
  /** True if no other parameter of the same place claims a name. */
  readonly #isFree: (name: string) => boolean

  constructor(contract: ParameterContract, value: StyledValue, isFree: (name: string) => boolean) {
    this.contract = contract
    this.#value = value
    this.#isFree = isFree
  }

  read(received: ReceivedParameters): Reading {
    try {
      return this.#read(received)
    } catch (error) {
      if (error instanceof URIError) return wrong('must have well-formed percent-escapes')
      throw error
    }
  }

  /** Throws URIError. */
  #read({ path, query, header, cookies }: ReceivedParameters): Reading {
    const { name, place } = this.contract
    if (place === 'query') return this.#value.ofPairs(query, this.#isFree)
    if (place === 'cookie') {
      return this.#value.ofPairs(this.#value.isExplodedList ? withJoined(cookies, name) : cookies, this.#isFree)
    }
    const text = place === 'path' ? path.get(name) : header(name.toLowerCase())
    return text === undefined ? ABSENT : this.#value.ofText(text)
  }
}

/** Readers of the parameters of one operation, or of the header fields of one response. */
export function parameterReaders(
  parameters: readonly ParameterContract[],
  definitions: Definitions,
): readonly ParameterReader[] {
  const values = parameters.map(contract => {
    return new StyledValue(contract, Shape.named(contract.schema, definitions), contract.place)
  })
  return parameters.map((contract, at) => {
    const others = values.filter((_, other) => other !== at && parameters[other]!.place === contract.place)
    return new ParameterReader(contract, values[at]!, name => !others.some(other => other.claims(name)))
  })
}

/** Violations of one parameter. `where`: its place. `of`: of its value, by the schema. */
export function parameterViolations(
  reader: ParameterReader,
  received: ReceivedParameters,
  where: string,
  of: (schema: string, value: unknown) => readonly Violation[],
): readonly Violation[] {
  const { isRequired, schema } = reader.contract
  const reading = reader.read(received)
  if (reading.kind === 'wrong') return [{ place: where, rule: reading.rule }]
  if (reading.kind === 'absent') return isRequired ? [{ place: where, rule: 'is required' }] : []
  return reading.kind === 'empty' ? [] : of(schema, reading.value)
}

/** The header fields of a message or a part, alone. `header`: by name in lower case. */
export function receivedHeaders(header: ReceivedParameters['header']): ReceivedParameters {
  return { path: new Map(), query: [], header, cookies: [] }
}

/** A list in one cookie, as templates of URIs write it: `ids=1&ids=2` (OpenAPI 3.1.1 appendix D). */
function withJoined(cookies: readonly Pair[], name: string): readonly Pair[] {
  return cookies.flatMap(([each, text]) =>
    each === name ? text.split(`&${name}=`).map(part => [each, part] as const) : [[each, text] as const],
  )
}

/** Names are decoded, texts are not. A malformed name is kept as it is. */
export function queryPairs(target: string): readonly Pair[] {
  const at = target.indexOf('?')
  return at < 0 ? [] : formPairs(target.slice(at + 1))
}

/** The pairs of a URL-encoded form, as `queryPairs` has them. */
export function formPairs(text: string): readonly Pair[] {
  return text
    .split('&')
    .filter(pair => pair !== '')
    .map(pair => {
      const [name, value] = pairOf(pair)
      try {
        return [decodeQuery(name), value] as const
      } catch {
        return [name, value] as const
      }
    })
}

/** Pairs of a Cookie field (RFC 6265 4.2.1). */
export function cookiesOf(field: string): readonly Pair[] {
  return field.split(';').map(text => pairOf(text.trim()))
}
