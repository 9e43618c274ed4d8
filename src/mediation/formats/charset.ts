/** Charsets of bodies: UTF-8, UTF-16, ISO-8859-1, US-ASCII. Malformed bytes are errors, never replaced. */
import { showLife } from '../../runtime/signs-of-life.ts'
import { FormatError } from './format-error.ts'

export type Charset = 'utf-8' | 'utf-16' | 'utf-16le' | 'utf-16be' | 'iso-8859-1' | 'us-ascii'

const CHARSETS: ReadonlyMap<string, Charset> = new Map([
  ['utf-8', 'utf-8'],
  ['utf8', 'utf-8'],
  ['utf-16', 'utf-16'],
  ['utf-16le', 'utf-16le'],
  ['utf-16be', 'utf-16be'],
  ['iso-8859-1', 'iso-8859-1'],
  ['latin1', 'iso-8859-1'],
  ['us-ascii', 'us-ascii'],
  ['ascii', 'us-ascii'],
])

/** Charset by its name in any case; undefined for others. */
export function charsetNamed(name: string): Charset | undefined {
  return CHARSETS.get(name.trim().toLowerCase())
}

/** Throws FormatError for names of other charsets. */
export function requiredCharset(name: string): Charset {
  const charset = charsetNamed(name)
  if (charset === undefined) throw new FormatError('charset', 'the charset of the body is not supported')
  return charset
}

/** Value of the charset parameter of a content type (RFC 9110 8.3.2); '' for none. */
export function charsetParameter(contentType: string): string {
  return parameterOf(contentType, 'charset')
}

const PARAMETER = /;\s*([!#$%&'*+.^_`|~\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))/g

/** Value of a parameter of a media type (RFC 9110 5.6.6); '' for none. */
export function parameterOf(value: string, name: string): string {
  for (const [, found, quoted, token] of value.matchAll(PARAMETER)) {
    if (found!.toLowerCase() === name) return quoted === undefined ? token! : quoted.replace(/\\(.)/g, '$1')
  }
  return ''
}

/** The media type with one parameter replaced. */
export function withParameter(contentType: string, name: string, value: string): string {
  return `${withoutParameter(contentType, name)}; ${name}=${value}`
}

export function withoutParameter(contentType: string, name: string): string {
  const others = contentType.replace(new RegExp(`;\\s*${name}\\s*=\\s*(?:"(?:[^"\\\\]|\\\\.)*"|[^;\\s]*)`, 'gi'), '')
  return others.trim()
}

/** Charset that a byte order mark names; undefined without one. */
export function charsetOfMark(bytes: Uint8Array): Charset | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  return bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : undefined
}

/** Decodes a body in pieces. */
interface PieceDecoder {
  /** Throws FormatError at the first piece that is malformed. */
  decode(piece: Uint8Array, isLast: boolean): string
}

/** `first`: the first piece, whose byte order mark decides for UTF-16; big-endian without one (RFC 2781 4.3). */
export function pieceDecoder(charset: Charset, first: Uint8Array): PieceDecoder {
  if (charset === 'iso-8859-1') return { decode: piece => bufferOf(piece).toString('latin1') }
  let at = 0
  const advance = (piece: Uint8Array): void => {
    at += piece.length
  }
  if (charset === 'us-ascii') {
    const decode = (piece: Uint8Array): string => {
      const text = bufferOf(piece).toString('latin1')
      const wrong = text.search(/[^\x00-\x7f]/)
      if (wrong !== -1) throw new FormatError('malformed', `the body is not US-ASCII at byte ${at + wrong}`)
      advance(piece)
      return text
    }
    return { decode }
  }
  const name = charset === 'utf-16' ? (charsetOfMark(first) ?? 'utf-16be') : charset
  const decoder = new TextDecoder(name, { fatal: true })
  return {
    decode: (piece, isLast) => {
      try {
        const text = decoder.decode(piece, { stream: !isLast })
        advance(piece)
        return text
      } catch {
        throw new FormatError('malformed', `the body is not ${name.toUpperCase()} at or after byte ${at}`)
      }
    },
  }
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** The text of a whole body, without a byte order mark. Throws FormatError. */
export function decodeText(bytes: Uint8Array, charset: Charset): string {
  const text = pieceDecoder(charset, bytes).decode(bytes, true)
  showLife()
  return text
}

/** Highest code unit that a charset can write. */
const HIGHEST: Readonly<Partial<Record<Charset, number>>> = { 'iso-8859-1': 0xff, 'us-ascii': 0x7f }

/** Bytes of a text. `replace`: writes a character that the charset lacks; null: such a text is undefined. */
export function encodeText(
  text: string,
  charset: Charset,
  replace: ((character: string) => string) | null,
): Buffer | undefined {
  const highest = HIGHEST[charset]
  if (highest !== undefined) {
    const lacking = highest === 0xff ? /[^\u0000-\u00ff]/gu : /[^\u0000-\u007f]/gu
    if (replace === null && lacking.test(text)) return undefined
    return Buffer.from(replace === null ? text : text.replace(lacking, replace), 'latin1')
  }
  if (charset === 'utf-8') return Buffer.from(text)
  const little = Buffer.from(charset === 'utf-16' ? `\ufeff${text}` : text, 'utf16le')
  return charset === 'utf-16le' ? little : little.swap16()
}
