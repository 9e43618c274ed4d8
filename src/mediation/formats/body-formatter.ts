/** Writes payloads as bytes, by content type. */
import { mediaTypeOf } from '../../http1/media-type.ts'
import { payloadElement, textOfPayload } from '../json-xml.ts'
import type { Payload } from '../message.ts'
import type { SoapVersion } from '../soap.ts'
import type { Json } from '../value.ts'
import { element, elementsOf, localName, textWithin, writeXml, type XmlElementNode } from '../xml-tree.ts'
import { badgerfishOf } from './badgerfish.ts'
import { classOf } from './body-builder.ts'
import { type BodyFormat, bodyFormatOf, isXmlFormat } from './body-types.ts'
import { type Charset, charsetNamed, charsetParameter, encodeText, parameterOf, withParameter } from './charset.ts'
import type { CustomFormats } from './custom-format.ts'
import type { CustomPayload, FormatFunction } from './format-interface.ts'
import { FormatError, requireHeapRoom } from './format-error.ts'
import type { FormatSettings } from './format-settings.ts'
import { writeForm, writeMultipart } from './forms.ts'
import { asEnvelope, soapContent } from './soap-conversion.ts'
import { primitivesBy, XmlToJson } from './xml-to-json.ts'

interface WantedFormat {
  /** Selects the format (`messageType`). */
  readonly messageType: string
  /** Value of Content-Type (`ContentType`). */
  readonly contentType: string
  /** SOAPAction of the message, with or without quotes; '' for none. */
  readonly soapAction: string
}

export interface WrittenBody {
  readonly bytes: Uint8Array
  readonly contentType: string
  /** Value of SOAPAction; null: the message has none. */
  readonly soapAction: string | null
}

/** A text with what replaces a character that the charset lacks; null: the text is then UTF-8. */
interface WrittenText {
  readonly text: string
  readonly replace: ((character: string) => string) | null
}

export class BodyFormatter {
  readonly #settings: FormatSettings
  readonly #custom: CustomFormats['formatters']
  readonly #toJson: XmlToJson

  constructor(settings: FormatSettings, custom: CustomFormats['formatters']) {
    this.#settings = settings
    this.#custom = custom
    this.#toJson = new XmlToJson(settings.conversion, primitivesBy(settings.conversion))
  }

  /** Throws FormatError. */
  format(payload: Payload, wanted: WantedFormat): WrittenBody {
    const custom = this.#custom.get(mediaTypeOf(wanted.messageType))
    if (custom !== undefined) return this.#writeCustom(custom, payload, wanted)
    const format = bodyFormatOf(wanted.messageType)
    const { contentType } = wanted
    if (format === 'binary') return { bytes: this.#bytes(payload), contentType, soapAction: null }
    if (format === 'multipart') {
      const { bytes, boundary } = writeMultipart(this.elementOf(payload))
      return { bytes, contentType: withParameter(contentType, 'boundary', `"${boundary}"`), soapAction: null }
    }
    requireHeapRoom(heapOf(payload))
    const { text, replace } = this.#write(payload, format)
    requireHeapRoom(2 * text.length)
    if (format === 'form') return { bytes: Buffer.from(text), contentType: inUtf8(contentType), soapAction: null }
    const document = (charset: Charset) =>
      isXmlFormat(format) ? `<?xml version="1.0" encoding="${nameOf(charset)}"?>${text}` : text
    const named = charsetNamed(charsetParameter(contentType)) ?? 'utf-8'
    const encoded = encodeText(document(named), named, replace)
    const type = withParameter(contentType, 'charset', nameOf(encoded === undefined ? 'utf-8' : named))
    return {
      bytes: encoded ?? Buffer.from(document('utf-8')),
      contentType: format === 'soap12' ? withAction(type, wanted.soapAction) : type,
      soapAction: format === 'soap11' ? `"${unquoted(wanted.soapAction)}"` : null,
    }
  }

  /** Any payload as one element. */
  elementOf(payload: Payload): XmlElementNode {
    if (payload.kind === 'xml') return soapContent(payload.root) ?? element('jsonObject', [])
    return payloadElement(payload, this.#settings.conversion, Infinity)
  }

  /** Any payload as JSON text. */
  jsonOf(payload: Payload): string {
    if (payload.kind === 'json') return payload.text
    if (payload.kind === 'text') return JSON.stringify({ text: payload.text })
    if (payload.kind === 'binary') return JSON.stringify({ binary: textOfPayload(payload) })
    return this.#toJson.convert(this.elementOf(payload))
  }

  #write(payload: Payload, format: Exclude<BodyFormat, 'binary' | 'multipart'>): WrittenText {
    switch (format) {
      case 'json':
        return { text: this.jsonOf(payload), replace: escapeInJson }
      case 'badgerfish':
        return { text: JSON.stringify(badgerfishOf(this.elementOf(payload))), replace: escapeInJson }
      case 'xml':
        return { text: writeXml(this.elementOf(payload)), replace: null }
      case 'soap11':
      case 'soap12':
        return { text: writeXml(this.#envelope(payload, format)), replace: null }
      case 'form':
        return { text: writeForm(this.elementOf(payload)), replace: null }
      case 'text':
        return { text: this.#text(payload), replace: null }
    }
  }

  #envelope(payload: Payload, version: SoapVersion): XmlElementNode {
    if (payload.kind !== 'xml') return asEnvelope(this.elementOf(payload), version)
    return asEnvelope(payload.root, version)
  }

  #text(payload: Payload): string {
    if (payload.kind !== 'xml') return textOfPayload(payload)
    const content = this.elementOf(payload)
    const isText = localName(content.name) === 'text' && elementsOf(content).length === 0
    return isText ? textWithin(content) : writeXml(content)
  }

  #bytes(payload: Payload): Uint8Array {
    if (payload.kind === 'binary') return payload.bytes
    if (payload.kind !== 'xml') return Buffer.from(payload.text)
    const content = this.elementOf(payload)
    const isBinary = localName(content.name) === 'binary' && elementsOf(content).length === 0
    return isBinary ? Buffer.from(textWithin(content), 'base64') : Buffer.from(this.#text(payload))
  }

  #writeCustom(format: FormatFunction, payload: Payload, { contentType }: WantedFormat): WrittenBody {
    let made: unknown
    try {
      made = format(customPayload(payload), contentType)
    } catch (error) {
      throw new FormatError('unwritable', `the formatter of the operator failed (${classOf(error)})`)
    }
    if (typeof made === 'string') made = Buffer.from(made)
    if (!(made instanceof Uint8Array)) {
      throw new FormatError('unwritable', 'the formatter of the operator returned neither bytes nor text')
    }
    return { bytes: made, contentType, soapAction: null }
  }
}

/** Bytes that the text of a payload needs at most; an element has asked for its own when it was read. */
function heapOf(payload: Payload): number {
  if (payload.kind === 'xml') return 0
  if (payload.kind === 'binary') return BASE64_HEAP * payload.bytes.length
  // A character that JSON escapes becomes six.
  return (payload.kind === 'text' && NEEDS_ESCAPE.test(payload.text) ? 6 : 2) * payload.text.length
}
const BASE64_HEAP = 4
const NEEDS_ESCAPE = /[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]/

function customPayload(payload: Payload): CustomPayload {
  if (payload.kind === 'json') return { json: JSON.parse(payload.text) as Json }
  if (payload.kind === 'xml') return { xml: writeXml(payload.root) }
  return payload.kind === 'text' ? { text: payload.text } : { bytes: payload.bytes }
}

function escapeInJson(character: string): string {
  return Array.from({ length: character.length }, (_, at) => {
    return `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`
  }).join('')
}

function nameOf(charset: Charset): string {
  return charset.toUpperCase()
}

/** The type, without the name of another charset. */
function inUtf8(contentType: string): string {
  return charsetParameter(contentType) === '' ? contentType : withParameter(contentType, 'charset', nameOf('utf-8'))
}

/** SOAP 1.2 carries the action in the type (RFC 3902), SOAP 1.1 in a field. */
function withAction(contentType: string, soapAction: string): string {
  const action = unquoted(soapAction)
  return action === '' || parameterOf(contentType, 'action') !== '' ? contentType : `${contentType}; action="${action}"`
}

function unquoted(text: string): string {
  return text
    .trim()
    .replace(/^"(.*)"$/, '$1')
    .replace(/["\\\r\n]/g, '')
}
