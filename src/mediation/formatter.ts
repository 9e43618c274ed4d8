/** Formats a message as a response: status, fields and body, in the format that its properties name. */
import type { Report } from '../proxy/exchange/connection-context.ts'
import { fieldNameError, fieldValueError } from './field-rules.ts'
import { jsonOfXml, payloadElement, textOfPayload, writtenPayload } from './json-xml.ts'
import { type BodyFormat, bodyFormatOf, namedType, typeOfPayload } from './formats/body-types.ts'
import { asEnvelope, soapContent } from './formats/soap-conversion.ts'
import type { Message, Payload } from './message.ts'
import { defaultStatus, envelope, isSoapFault, type SoapVersion, soapVersion, writeFault } from './soap.ts'
import { markupOf, textOf } from './value.ts'
import { writeXml, type XmlElementNode } from './xml-tree.ts'

export interface FormattedResponse {
  /** 200 to 599. */
  readonly status: number
  /** Reason phrase that the sequence has set (HTTP_SC_DESC); undefined: that of the status. */
  readonly reason: string | undefined
  /** Header lines, each with its CRLF; none of framing. */
  readonly lines: string
  readonly body: string
}

/** The acknowledgement of a dropped message (as on the reference platform). */
export const ACCEPTED: FormattedResponse = { status: 202, reason: undefined, lines: '', body: '' }
/** Longer bodies are dropped. */
const BODY_BYTES_MAX = 1024 * 1024
/** Bytes of all header lines together. */
const LINES_MAX = 64 * 1024
/** Statuses without a body. */
const BODILESS = [204, 205, 304]
const XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'

/** `report`: logs parts of the message that cannot be sent. */
export function formatResponse(message: Message, report: Report): FormattedResponse {
  const warn = (cause: string, name: string) =>
    report('warn', 'response of a sequence', { CAUSE_OF_ERROR: cause, FIELD: name })
  const status = statusOf(message, warn)
  const description = textOf(message.get('axis2', 'HTTP_SC_DESC'))
  const isValid = fieldValueError(description) === ''
  if (!isValid) warn('has characters that a reason phrase cannot have', 'HTTP_SC_DESC')
  const contentType = contentTypeOf(message)
  const hasBody = textOf(message.get('axis2', 'NO_ENTITY_BODY')) !== 'true' && !BODILESS.includes(status)
  let body = hasBody ? bodyText(message, status, contentType.format) : ''
  if (Buffer.byteLength(body) > BODY_BYTES_MAX) {
    warn(`the body has more than ${BODY_BYTES_MAX} bytes`, 'body')
    body = ''
  }
  const lines = linesOf(message, body === '' ? '' : contentType.field, warn)
  return { status, reason: isValid && description !== '' ? description : undefined, lines, body }
}

/**
 * Gives a fault flow that has ended without a body the default one (spec, "Error body shape"). Status and fields of the
 * flow stay.
 */
export function completeFault(message: Message): void {
  if (message.outcome !== 'ended' || message.bodyState === 'replaced') return
  if (textOf(message.get('axis2', 'NO_ENTITY_BODY')) === 'true') return
  const text = (name: string) => textOf(message.get('default', name) ?? '')
  const code = message.get('default', 'ERROR_CODE')
  const description = text('ERROR_DETAIL')
  message.json = {
    fault: {
      code: typeof code === 'number' ? code : textOf(code ?? ''),
      type: 'Status report',
      message: text('ERROR_MESSAGE'),
      description,
    },
  }
  message.set('axis2', 'messageType', 'application/json')
}

type Warn = (cause: string, name: string) => void

/** Excludes 1xx: a client would wait for the final response (RFC 9110 15.2). */
function statusOf(message: Message, warn: Warn): number {
  const given = message.get('axis2', 'HTTP_SC')
  const { payload } = message
  if (given === undefined || given === '') {
    return defaultStatus(payload)
  }
  const text = textOf(given)
  if (/^[2-5]\d\d$/.test(text)) return Number(text)
  warn('is not a status from 200 to 599', 'HTTP_SC')
  return 500
}

interface ContentType {
  readonly format: BodyFormat
  /** Value of Content-Type. */
  readonly field: string
}

/**
 * The property `messageType` selects the format and `ContentType` the field; each is the default of the other, and a
 * field Content-Type is the default of both.
 */
function contentTypeOf(message: Message): ContentType {
  const [messageType, contentType] = ['messageType', 'ContentType'].map(name =>
    namedType(textOf(message.get('axis2', name))),
  )
  const field = [...message.fields()].find(([name]) => name.toLowerCase() === 'content-type')
  const { payload } = message
  // Bytes are written as base64.
  const ofPayload = payload === null || payload.kind === 'binary' ? 'text/plain' : typeOfPayload(payload)
  const type = contentType || namedType(textOf(field?.[1])) || messageType || ofPayload
  return { format: bodyFormatOf(messageType || type), field: withCharset(type) }
}

/** Bodies are always UTF-8, whatever charset a sequence names. */
function withCharset(type: string): string {
  return `${type.replace(/;\s*charset\s*=\s*(?:"[^"]*"|[^;\s]*)/gi, '').trim()}; charset=UTF-8`
}

function bodyText(message: Message, status: number, format: BodyFormat): string {
  const payload = writtenPayload(message, format)
  if (format === 'soap11' || format === 'soap12') return soapText(message, status, format)
  if (payload === null) return ''
  if (format === 'json') return jsonText(payload)
  if (format === 'xml') return xmlDocument(contentOf(payload))
  return payload.kind === 'xml' ? writeXml(contentOf(payload)) : textOfPayload(payload)
}

function jsonText(payload: Payload): string {
  if (payload.kind === 'json') return payload.text
  return JSON.stringify(payload.kind === 'text' ? { text: payload.text } : jsonOfXml(contentOf(payload)))
}

/** Content without its Envelope. */
function contentOf(payload: Payload): XmlElementNode {
  const root = payloadElement(payload)
  return soapContent(root) ?? root
}

/** A message with the status of an error becomes a fault, unless it is one or an Envelope of the version. */
function soapText(message: Message, status: number, version: SoapVersion): string {
  const payload = writtenPayload(message, version)
  const root = payload === null ? undefined : payloadElement(payload)
  const isWhole = root !== undefined && (isSoapFault(payload) || soapVersion(root, 'Envelope') === version)
  if (isWhole || status < 400) return root === undefined ? '' : xmlDocument(asEnvelope(root, version))
  const fault = {
    code: status < 500 ? 'Client' : 'Server',
    reason: markupOf(message.get('default', 'ERROR_MESSAGE') ?? ''),
    node: '',
    role: '',
    detail: payload === null ? [] : [contentOf(payload)],
  }
  return xmlDocument(envelope(version, [writeFault(version, fault)]))
}

function xmlDocument(root: XmlElementNode): string {
  return XML_DECLARATION + writeXml(root)
}

function linesOf(message: Message, contentType: string, warn: Warn): string {
  let lines = ''
  const add = (name: string, value: string) => {
    const why = fieldValueError(value)
    if (why !== '') warn(why, name)
    else if (lines.length + value.length > LINES_MAX) warn(`the fields have more than ${LINES_MAX} bytes`, name)
    else lines += `${name}: ${value}\r\n`
  }
  if (contentType !== '') add('Content-Type', contentType)
  for (const [name, value] of message.fields()) {
    const lower = name.toLowerCase()
    if (lower === 'content-type') continue
    const why = fieldNameError(name)
    if (why === '') add(name, textOf(value))
    else warn(why, lower)
  }
  return lines
}
