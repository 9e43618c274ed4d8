/** Primitive data types (R4, datatypes.html#primitive): which JSON values they allow. Checks take linear time. */
import { dateInterval, dateTimeInterval, instantInterval } from './date-interval.ts'
import { isNumber, numberText } from './json-text.ts'

/** Characters of a string or a markdown text. */
const STRING_CHARACTERS_MAX = 1_048_576
const CONTROL = /[\0-\x08\x0b\x0c\x0e-\x1f]/
const INT_32 = 2 ** 31

interface PrimitiveFault {
  /** `type`: another type of JSON value. `value`: the right one with a wrong value. */
  readonly kind: 'type' | 'value'
  /** Describes the values of the type. */
  readonly allowed: string
}

interface PrimitiveType {
  readonly json: 'boolean' | 'number' | 'string'
  readonly allowed: string
  readonly allows: (value: never) => boolean
}

const ID = text('1 to 64 letters, digits, "-" and "."', isId)
const STRING = text('text of at most 1,048,576 characters, not white space alone, without control characters', isText)
const URI = text('a URI without white space', value => /^\S+$/.test(value) && isText(value))

const PRIMITIVES: ReadonlyMap<string, PrimitiveType> = new Map(
  Object.entries({
    base64Binary: text('base64', isBase64),
    boolean: { json: 'boolean', allowed: 'true or false', allows: () => true },
    canonical: URI,
    code: text('text without white space at its ends, and single white space within', isCode),
    date: text('YYYY, YYYY-MM or YYYY-MM-DD', value => dateInterval(value) !== undefined),
    dateTime: text(
      'YYYY, YYYY-MM, YYYY-MM-DD or YYYY-MM-DDThh:mm:ss with a time zone',
      value => dateTimeInterval(value) !== undefined,
    ),
    decimal: { json: 'number', allowed: 'a number', allows: () => true },
    id: ID,
    instant: text('YYYY-MM-DDThh:mm:ss with a time zone', value => instantInterval(value) !== undefined),
    integer: integer('a whole number of 32 bits', -INT_32),
    markdown: STRING,
    oid: text('urn:oid: and an OID', value => /^urn:oid:[0-2](?:\.(?:0|[1-9]\d*))+$/.test(value)),
    positiveInt: integer('a whole number from 1 to 2147483647', 1),
    string: STRING,
    time: text('hh:mm:ss', value => /^(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?$/.test(value)),
    unsignedInt: integer('a whole number from 0 to 2147483647', 0),
    uri: URI,
    url: URI,
    uuid: text('urn:uuid: and a UUID in lower case', value =>
      /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(value),
    ),
    // Its content is checked with the narrative.
    xhtml: text('XHTML', value => value.trim() !== ''),
  } satisfies Record<string, PrimitiveType>),
)

/** True if a text has the form of a logical id. */
export function isId(value: string): boolean {
  return /^[A-Za-z0-9\-.]{1,64}$/.test(value)
}

/** Undefined for a value that the type allows. `type`: a primitive type of R4. */
export function primitiveFault(type: string, value: unknown): PrimitiveFault | undefined {
  const primitive = PRIMITIVES.get(type)!
  const json = isNumber(value) ? 'number' : typeof value
  if (json !== primitive.json) return { kind: 'type', allowed: `a JSON ${primitive.json}` }
  return primitive.allows(value as never) ? undefined : { kind: 'value', allowed: primitive.allowed }
}

function text(allowed: string, allows: (value: string) => boolean): PrimitiveType {
  return { json: 'string', allowed, allows }
}

function integer(allowed: string, least: number): PrimitiveType {
  // A number whose text differs from that of its value, such as 1.0, keeps its text and is no integer.
  const allows = (value: unknown): boolean =>
    /^(?:0|-?[1-9]\d*)$/.test(numberText(value)) &&
    Number(numberText(value)) >= least &&
    Number(numberText(value)) < INT_32
  return { json: 'number', allowed, allows }
}

function isText(value: string): boolean {
  return value.length <= STRING_CHARACTERS_MAX && /\S/.test(value) && !CONTROL.test(value) && value.isWellFormed()
}

function isCode(value: string): boolean {
  return /^\S+(?:\s\S+)*$/.test(value) && isText(value)
}

/** White space may stand anywhere. */
function isBase64(value: string): boolean {
  const packed = value.replace(/\s+/g, '')
  return packed !== '' && packed.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(packed)
}
