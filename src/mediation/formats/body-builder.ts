/** Builds payloads of bodies by content type: bytes in, payload out. */
import { mediaTypeOf, namesSeveralTypes } from '../../http1/media-type.ts'
import type { Payload } from '../message.ts'
import type { XmlElementNode } from '../xml-tree.ts'
import { elementOfBadgerfish } from './badgerfish.ts'
import { bytesOf, type HeldBody, lengthOf, piecesOf } from './body-bytes.ts'
import { bodyFormatOf, isXmlFormat } from './body-types.ts'
import { type Charset, charsetOfMark, charsetParameter, decodeText, pieceDecoder, requiredCharset } from './charset.ts'
import { codingsOf, decodeContent } from './content-coding.ts'
import type { CustomFormats } from './custom-format.ts'
import type { BuildFunction, CustomPayload } from './format-interface.ts'
import { FormatError, requireBytesRoom, requireHeapRoom } from './format-error.ts'
import type { FormatSettings } from './format-settings.ts'
import { readForm, readMultipart } from './forms.ts'
import { jsonOf, parseJsonText } from './json-text.ts'
import { parseXmlText, XmlReader } from './xml-reader.ts'

interface ReceivedBody {
  readonly body: HeldBody
  readonly contentType: string
  /** '' for none. */
  readonly contentEncoding: string
}

/**
 * Bytes of the heap that a flow needs for each byte of a text: the text, its parsed value and what is written again,
 * each with two bytes per character.
 */
const HEAP_PER_BYTE = 6

export class BodyBuilder {
  readonly #settings: FormatSettings
  readonly #custom: CustomFormats['builders']

  constructor(settings: FormatSettings, custom: CustomFormats['builders']) {
    this.#settings = settings
    this.#custom = custom
  }

  /** Null for an empty body. Throws FormatError. */
  build({ body, contentType, contentEncoding }: ReceivedBody): Payload | null {
    if (lengthOf(body) === 0) return null
    if (namesSeveralTypes(contentType)) throw new FormatError('types', 'the body has more than one content type')
    const { limits } = this.#settings
    const custom = this.#custom.get(mediaTypeOf(contentType))
    const format = bodyFormatOf(contentType)
    if (
      custom === undefined &&
      isXmlFormat(format) &&
      body.kind === 'file' &&
      codingsOf(contentEncoding).length === 0
    ) {
      return { kind: 'xml', root: this.#xmlInPieces(body, contentType) }
    }
    const bytes = this.#bytes(body, contentEncoding)
    if (bytes.length === 0) return null
    if (format !== 'binary') requireHeapRoom(HEAP_PER_BYTE * bytes.length)
    if (custom !== undefined) return this.#customPayload(custom, bytes, contentType)
    const text = (): string => decodeText(bytes, charsetOf(contentType))
    switch (format) {
      case 'json':
        return parseJsonText(jsonText(bytes, contentType), limits)
      case 'badgerfish':
        return { kind: 'xml', root: elementOfBadgerfish(jsonOf(parseJsonText(jsonText(bytes, contentType), limits))) }
      case 'xml':
      case 'soap11':
      case 'soap12':
        return { kind: 'xml', root: parseXmlText(decodeText(bytes, xmlCharset(contentType, bytes)), limits) }
      case 'form':
        return { kind: 'xml', root: readForm(text(), charsetOf(contentType), limits) }
      case 'multipart':
        return { kind: 'xml', root: readMultipart(bytes, contentType, limits) }
      case 'text':
        return { kind: 'text', text: text() }
      case 'binary':
        return { kind: 'binary', bytes }
    }
  }

  /** The whole body as one text; see `BodySource`. Throws FormatError. */
  text({ body, contentType, contentEncoding }: ReceivedBody): string {
    const bytes = this.#bytes(body, contentEncoding)
    requireHeapRoom(HEAP_PER_BYTE * bytes.length)
    const format = bodyFormatOf(contentType)
    if (format === 'json' || format === 'badgerfish') return jsonText(bytes, contentType)
    if (isXmlFormat(format)) return decodeText(bytes, xmlCharset(contentType, bytes))
    if (format === 'multipart' || format === 'binary') return decodeText(bytes, 'iso-8859-1')
    return decodeText(bytes, charsetOf(contentType))
  }

  /** The body without its coding. Bytes from a file or a coding are new memory, which the thread limits. */
  #bytes(body: HeldBody, contentEncoding: string): Uint8Array {
    const { limits, pieceSize } = this.#settings
    const isNew = body.kind === 'file' || codingsOf(contentEncoding).length > 0
    // A thread that holds too much decodes no body; the size of a decoded body is known afterwards.
    if (isNew) requireBytesRoom()
    const bytes = decodeContent(bytesOf(body, pieceSize, limits.decodedSize), contentEncoding, limits)
    if (isNew) requireBytesRoom()
    return bytes
  }

  #xmlInPieces(body: HeldBody, contentType: string): XmlElementNode {
    const { limits, pieceSize } = this.#settings
    if (lengthOf(body) > limits.decodedSize) {
      throw new FormatError('limit', `the body has more than ${limits.decodedSize} bytes`)
    }
    requireHeapRoom(HEAP_PER_BYTE * lengthOf(body))
    const reader = new XmlReader(limits)
    let decoder: ReturnType<typeof pieceDecoder> | undefined
    for (const piece of piecesOf(body, pieceSize)) {
      decoder ??= pieceDecoder(xmlCharset(contentType, piece), piece)
      reader.write(decoder.decode(piece, false))
    }
    reader.write(decoder!.decode(new Uint8Array(), true))
    return reader.end()
  }

  #customPayload(build: BuildFunction, bytes: Uint8Array, contentType: string): Payload {
    const { limits } = this.#settings
    let made: CustomPayload
    try {
      made = build(bytes, contentType)
    } catch (error) {
      throw new FormatError('malformed', `the builder of the operator refused the body (${classOf(error)})`)
    }
    if (typeof made !== 'object' || made === null) throw notAPayload()
    if ('xml' in made) return { kind: 'xml', root: parseXmlText(String(made.xml), limits) }
    if ('text' in made) return { kind: 'text', text: String(made.text) }
    if ('bytes' in made && made.bytes instanceof Uint8Array) return { kind: 'binary', bytes: made.bytes }
    const text = 'json' in made ? JSON.stringify(made.json) : undefined
    if (text === undefined) throw notAPayload()
    return parseJsonText(text, limits)
  }
}

function notAPayload(): FormatError {
  return new FormatError('unreadable', 'the builder of the operator returned no payload')
}

/** Class of an error, because its message may quote the body. */
export function classOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error
}

function charsetOf(contentType: string): Charset {
  return requiredCharset(charsetParameter(contentType) || 'utf-8')
}

/** RFC 8259 8.1: UTF-8. A charset that the type names is respected. */
function jsonText(bytes: Uint8Array, contentType: string): string {
  const named = charsetParameter(contentType)
  return decodeText(bytes, named === '' ? (charsetOfMark(bytes) ?? 'utf-8') : requiredCharset(named))
}

const DECLARED = /^<\?xml\s[^>]*?\sencoding\s*=\s*["']([A-Za-z][\w.-]*)["']/

/** A byte order mark, else the parameter of the type, else the declaration of the document (RFC 7303 3.2). */
function xmlCharset(contentType: string, first: Uint8Array): Charset {
  const marked = charsetOfMark(first)
  if (marked !== undefined) return marked
  const named = charsetParameter(contentType)
  if (named !== '') return requiredCharset(named)
  // A document in UTF-16 without a mark begins with < and a zero byte.
  if (first[0] === 0x3c && first[1] === 0) return 'utf-16le'
  if (first[0] === 0 && first[1] === 0x3c) return 'utf-16be'
  const declared = DECLARED.exec(Buffer.from(first.subarray(0, 256)).toString('latin1'))?.[1]
  return declared === undefined ? 'utf-8' : requiredCharset(declared)
}
