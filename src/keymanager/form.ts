/**
 * Bodies of requests, read strictly (RFC 6749 3.2, appendix B): of two readings of one request the client must not be
 * able to choose which one is authenticated and which one is acted on.
 */
import { isUtf8 } from 'node:buffer'
import { isText, type JsonObject, strictObject } from '../structure/strict-json.ts'
import { OAuthRefusal } from './oauth-refusal.ts'

const BYTES_MAX = 64 * 1024
const PARAMETERS_MAX = 128
const FORM_TYPE = /^application\/x-www-form-urlencoded[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i
const JSON_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i

/** Parameters by name. A parameter without a value is one that was not sent (RFC 6749 3.1). */
export class Form {
  readonly #values: ReadonlyMap<string, string>

  constructor(values: ReadonlyMap<string, string>) {
    this.#values = values
  }

  /** '' where it was not sent. */
  text(name: string): string {
    return this.#values.get(name) ?? ''
  }

  /** Throws OAuthRefusal where it was not sent. */
  required(name: string): string {
    const value = this.text(name)
    if (value === '') throw new OAuthRefusal('invalid_request', `${name} is missing`)
    return value
  }

  entries(): Iterable<readonly [string, string]> {
    return this.#values
  }
}

/** Throws OAuthRefusal. Parameters in the address are refused: addresses are logged (RFC 6749 2.3.1, 3.2). */
export async function readForm(request: Request): Promise<Form> {
  if (new URL(request.url).search !== '') throw malformed('parameters belong into the body')
  if (!FORM_TYPE.test(request.headers.get('content-type') ?? ''))
    throw malformed('the body must be application/x-www-form-urlencoded')
  const bytes = await readBytes(request)
  if (!isUtf8(bytes)) throw malformed('the body is not UTF-8')
  return parseForm(bytes.toString())
}

/** Throws OAuthRefusal. */
export async function readJson(request: Request): Promise<JsonObject> {
  if (!JSON_TYPE.test(request.headers.get('content-type') ?? '')) throw malformed('the body must be application/json')
  const value = strictObject(await readBytes(request))
  if (isText(value)) throw malformed(`body: ${value}`)
  return value
}

/** Of a body or a query. Throws OAuthRefusal. */
export function parseForm(text: string): Form {
  const values = new Map<string, string>()
  const names = new Set<string>()
  for (const pair of text.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decodePart(equals === -1 ? pair : pair.slice(0, equals))
    if (names.size >= PARAMETERS_MAX) throw malformed('there are too many parameters')
    if (names.has(name)) throw malformed('a parameter was sent twice')
    names.add(name)
    const value = equals === -1 ? '' : decodePart(pair.slice(equals + 1))
    if (value !== '') values.set(name, value)
  }
  return new Form(values)
}

/** One name or value of a form. Throws OAuthRefusal. */
export function decodePart(text: string): string {
  try {
    const decoded = decodeURIComponent(text.replaceAll('+', ' '))
    if (!decoded.includes('\0')) return decoded
  } catch {
    // Said below.
  }
  throw malformed('a parameter is not well-formed UTF-8')
}

async function readBytes(request: Request): Promise<Buffer> {
  if (Number(request.headers.get('content-length') ?? 0) > BYTES_MAX) throw tooLong()
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of request.body ?? []) {
    bytes += part.length
    if (bytes > BYTES_MAX) throw tooLong()
    parts.push(part)
  }
  return Buffer.concat(parts)
}

function tooLong(): OAuthRefusal {
  return new OAuthRefusal('invalid_request', 'the body is too long', { status: 413 })
}

function malformed(description: string): OAuthRefusal {
  return new OAuthRefusal('invalid_request', description)
}
