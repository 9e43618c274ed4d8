/** Content codings (RFC 9110 8.4) of bodies that are read: decoded within bounds, and applied again. */
import {
  brotliCompressSync,
  brotliDecompressSync,
  constants,
  deflateSync,
  gunzipSync,
  gzipSync,
  inflateRawSync,
  inflateSync,
} from 'node:zlib'
import { showLife } from '../../runtime/signs-of-life.ts'
import type { BodyLimits } from './body-limits.ts'
import { FormatError } from './format-error.ts'

interface Coding {
  decode(bytes: Uint8Array, maxOutputLength: number): Buffer
  encode(bytes: Uint8Array): Buffer
}

const GZIP: Coding = {
  decode: (bytes, maxOutputLength) => gunzipSync(bytes, { maxOutputLength }),
  encode: bytes => gzipSync(bytes),
}
const CODINGS: ReadonlyMap<string, Coding> = new Map([
  ['gzip', GZIP],
  ['x-gzip', GZIP],
  ['deflate', { decode: inflate, encode: bytes => deflateSync(bytes) }],
  [
    'br',
    {
      decode: (bytes, maxOutputLength) => brotliDecompressSync(bytes, { maxOutputLength }),
      encode: bytes => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
    },
  ],
])
/** Codings of one body; each multiplies the work. */
const CODINGS_MAX = 3
const FREE_BYTES = 1024 * 1024

/** zlib format (RFC 1950), or bare deflate, which many senders mean. */
function inflate(bytes: Uint8Array, maxOutputLength: number): Buffer {
  const [first = 0, second = 0] = bytes
  const isZlib = (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0
  return isZlib ? inflateSync(bytes, { maxOutputLength }) : inflateRawSync(bytes, { maxOutputLength })
}

/** Names in the order in which they were applied, without `identity`. */
export function codingsOf(contentEncoding: string): readonly string[] {
  return contentEncoding
    .split(',')
    .map(name => name.trim().toLowerCase())
    .filter(name => name !== '' && name !== 'identity')
}

/** The body without its codings. Throws FormatError for unknown codings, malformed bytes, and beyond the limits. */
export function decodeContent(bytes: Uint8Array, contentEncoding: string, limits: BodyLimits): Uint8Array {
  const names = codingsOf(contentEncoding)
  if (names.length > CODINGS_MAX) throw new FormatError('limit', `the body has more than ${CODINGS_MAX} codings`)
  const codings = names.map(name => CODINGS.get(name))
  if (codings.includes(undefined)) throw new FormatError('coding', 'the content coding of the body is not supported')
  if (codings.length === 0) return bytes
  const allowed = Math.min(limits.decodedSize, Math.max(FREE_BYTES, bytes.length * limits.codingRatio))
  let decoded = bytes
  for (const coding of codings.reverse()) {
    decoded = decodeOne(coding!, decoded, allowed)
    showLife()
  }
  return decoded
}

function decodeOne(coding: Coding, bytes: Uint8Array, allowed: number): Buffer {
  try {
    return coding.decode(bytes, allowed)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ERR_BUFFER_TOO_LARGE') {
      throw new FormatError('limit', `the body has more than ${allowed} bytes without its content coding`)
    }
    throw new FormatError('malformed', `the content coding of the body is malformed (${code ?? 'unknown'})`)
  }
}

interface CodedContent {
  readonly bytes: Uint8Array
  /** Value of Content-Encoding; '' for none. */
  readonly contentEncoding: string
}

/**
 * Applies the codings that a body had. `accepted`: Accept-Encoding of the receiver; null: it takes what its peer sent,
 * as a backend does. A body whose codings are not all accepted goes without any.
 */
export function encodeContent(bytes: Uint8Array, contentEncoding: string, accepted: string | null): CodedContent {
  const names = codingsOf(contentEncoding)
  const isAccepted = names.every(name => CODINGS.has(name) && (accepted === null || acceptsCoding(accepted, name)))
  if (names.length === 0 || !isAccepted) return { bytes, contentEncoding: '' }
  let coded = bytes
  for (const name of names) coded = CODINGS.get(name)!.encode(coded)
  return { bytes: coded, contentEncoding: names.join(', ') }
}

/** RFC 9110 12.5.3. */
export function acceptsCoding(acceptEncoding: string, coding: string): boolean {
  let ofAll = false
  for (const item of acceptEncoding.split(',')) {
    const [name, ...parameters] = item.split(';').map(part => part.trim().toLowerCase())
    const weight = parameters.find(parameter => parameter.startsWith('q='))
    const isWanted = weight === undefined || Number(weight.slice(2)) > 0
    if (name === coding || `x-${name}` === coding || name === `x-${coding}`) return isWanted
    if (name === '*') ofAll = isWanted
  }
  return ofAll
}
