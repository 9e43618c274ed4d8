/**
 * Reads request bodies strictly (RFC 6749 3.2, appendix B): a request that two parsers read differently could be
 * authenticated as one and executed as the other.
 */
import { isUtf8 } from 'node:buffer'
import { isString, type JsonObject, parseStrictJson } from '../../auth/strict-json.ts'
import { OAuthError } from './oauth-error.ts'

const BYTES_MAX = 64 * 1024
const PARAMETERS_MAX = 128
const FORM_TYPE = /^application\/x-www-form-urlencoded[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i
const JSON_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i

/** Form parameters by name. A parameter without a value counts as omitted (RFC 6749 3.1). */
export class Form {
  readonly #values: ReadonlyMap<string, string>

  constructor(values: ReadonlyMap<string, string>) {
    this.#values = values
  }

  /** '' if omitted. */
  text(name: string): string {
    return this.#values.get(name) ?? ''
  }

  /** Throws OAuthError if omitted. */
  required(name: string): string {
    const value = this.text(name)
    if (value === '') throw new OAuthError('invalid_request', `${name} is missing`)
    return value
  }

  entries(): Iterable<readonly [string, string]> {
    return this.#values
  }
}

/** Throws OAuthError. Query parameters are refused because URLs are logged (RFC 6749 2.3.1, 3.2). */
export async function readForm(request: Request): Promise<Form> {
  if (new URL(request.url).search !== '') throw malformed('parameters must be sent in the body')
  if (!FORM_TYPE.test(request.headers.get('content-type') ?? ''))
    throw malformed('the body must be application/x-www-form-urlencoded')
  const bytes = await readBytes(request)
  if (!isUtf8(bytes)) throw malformed('the body is not UTF-8')
  return parseForm(bytes.toString())
}

/** Throws OAuthError. */
export async function readJson(request: Request): Promise<JsonObject> {
  if (!JSON_TYPE.test(request.headers.get('content-type') ?? '')) throw malformed('the body must be application/json')
  const value = parseStrictJson(await readBytes(request))
  if (isString(value)) throw malformed(`body: ${value}`)
  return value
}

/** Parses a body or a query. Throws OAuthError. */
export function parseForm(text: string): Form {
  const values = new Map<string, string>()
  const names = new Set<string>()
  for (const pair of text.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decodePart(equals === -1 ? pair : pair.slice(0, equals))
    if (names.size >= PARAMETERS_MAX) throw malformed('too many parameters')
    if (names.has(name)) throw malformed('a parameter is repeated')
    names.add(name)
    const value = equals === -1 ? '' : decodePart(pair.slice(equals + 1))
    if (value !== '') values.set(name, value)
  }
  return new Form(values)
}

/** The parameters of a form as a query. */
export function queryOf(form: Form): string {
  return String(new URLSearchParams([...form.entries()].map(pair => [...pair])))
}

/** Decodes one name or value of a form. Throws OAuthError. */
export function decodePart(text: string): string {
  try {
    const decoded = decodeURIComponent(text.replaceAll('+', ' '))
    if (!decoded.includes('\0')) return decoded
  } catch {
    // Reported below.
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

function tooLong(): OAuthError {
  return new OAuthError('invalid_request', 'the body is too long', { status: 413 })
}

function malformed(description: string): OAuthError {
  return new OAuthError('invalid_request', description)
}
