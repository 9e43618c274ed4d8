/** A message as the answer to a client: status, fields and body, in the format that its properties ask for. */
import type { Report } from '../exchange/surroundings.ts'
import { fieldFault, valueFault } from './fields.ts'
import { jsonOfXml } from './json-xml.ts'
import { formatOf, type Format } from './media-type.ts'
import type { Message, Payload } from './message.ts'
import { elementOf } from './payload-tree.ts'
import { bodyOf, envelope, readFault, type SoapVersion, soapVersion, writeFault } from './soap.ts'
import { markupOf, textOf } from './value.ts'
import { writeXml, type XmlElementNode } from './xml-tree.ts'

export interface FormattedAnswer {
  /** 200 to 599. */
  readonly status: number
  /** As a sequence set it (HTTP_SC_DESC); undefined: that of the status. */
  readonly reason: string | undefined
  /** Field lines, each with its CRLF; none that frames the message. */
  readonly lines: string
  readonly body: string
}

/** Longer bodies are left out. */
const BODY_BYTES_MAX = 1024 * 1024
/** All fields together. */
const LINES_MAX = 64 * 1024
const WITHOUT_BODY = [204, 205, 304]
const XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'

/** `report`: what could not be sent as the sequence has it. */
export function formatAnswer(message: Message, report: Report): FormattedAnswer {
  const complain = (cause: string, name: string) =>
    report('warn', 'answer of a sequence', { CAUSE_OF_ERROR: cause, FIELD: name })
  const status = statusOf(message, complain)
  const description = textOf(message.get('axis2', 'HTTP_SC_DESC'))
  const isFit = valueFault(description) === ''
  if (!isFit) complain('has characters that no reason phrase may have', 'HTTP_SC_DESC')
  const mediaType = mediaTypeOf(message)
  const hasBody = textOf(message.get('axis2', 'NO_ENTITY_BODY')) !== 'true' && !WITHOUT_BODY.includes(status)
  let body = hasBody ? bodyText(message, status, mediaType.format) : ''
  if (Buffer.byteLength(body) > BODY_BYTES_MAX) {
    complain(`the body has more than ${BODY_BYTES_MAX} bytes`, 'body')
    body = ''
  }
  const lines = linesOf(message, body === '' ? '' : mediaType.field, complain)
  return { status, reason: isFit && description !== '' ? description : undefined, lines, body }
}

type Complain = (cause: string, name: string) => void

/** 1xx are no answers: a client would wait for the next (RFC 9110 15.2). */
function statusOf(message: Message, complain: Complain): number {
  const given = message.get('axis2', 'HTTP_SC')
  const { payload } = message
  if (given === undefined || given === '') {
    return payload?.kind === 'xml' && soapVersion(payload.root, 'Fault') !== undefined ? 500 : 200
  }
  const text = textOf(given)
  if (/^[2-5]\d\d$/.test(text)) return Number(text)
  complain('is no status of 200 to 599', 'HTTP_SC')
  return 500
}

interface MediaType {
  readonly format: Format
  /** For Content-Type. */
  readonly field: string
}

/**
 * `messageType` says how the payload is written, `ContentType` what is said of it; each stands in for the other, and a
 * field Content-Type for both.
 */
function mediaTypeOf(message: Message): MediaType {
  const [messageType, contentType] = ['messageType', 'ContentType'].map(name => textOf(message.get('axis2', name)))
  const field = [...message.fields()].find(([name]) => name.toLowerCase() === 'content-type')
  const said = contentType || textOf(field?.[1]) || messageType || typeOfPayload(message.payload)
  return { format: formatOf(messageType || said), field: withCharset(said) }
}

function typeOfPayload(payload: Payload | null): string {
  if (payload?.kind === 'json') return 'application/json'
  if (payload?.kind !== 'xml') return 'text/plain'
  const version = soapVersion(payload.root, 'Fault') ?? soapVersion(payload.root, 'Envelope')
  if (version === undefined) return 'application/xml'
  return version === 'soap11' ? 'text/xml' : 'application/soap+xml'
}

/** Bodies are always UTF-8, whatever a sequence says. */
function withCharset(type: string): string {
  return `${type.replace(/;\s*charset\s*=\s*(?:"[^"]*"|[^;\s]*)/gi, '').trim()}; charset=UTF-8`
}

function bodyText(message: Message, status: number, format: Format): string {
  const { payload } = message
  if (format === 'soap11' || format === 'soap12') return soapText(message, status, format)
  if (payload === null) return ''
  if (format === 'json') return jsonText(payload)
  if (format === 'xml') return written(contentOf(payload))
  return payload.kind === 'xml' ? writeXml(contentOf(payload)) : payload.text
}

function jsonText(payload: Payload): string {
  if (payload.kind === 'json') return payload.text
  return JSON.stringify(payload.kind === 'text' ? { text: payload.text } : jsonOfXml(contentOf(payload)))
}

/** Without an Envelope around it. */
function contentOf(payload: Payload): XmlElementNode {
  const root = elementOf(payload)
  if (soapVersion(root, 'Envelope') === undefined) return root
  return bodyOf(root)[0] ?? root
}

function soapText(message: Message, status: number, version: SoapVersion): string {
  const { payload } = message
  if (payload?.kind === 'xml' && soapVersion(payload.root, 'Envelope') === version) return written(payload.root)
  const content = payload === null ? undefined : contentOf(payload)
  const faultVersion = content === undefined ? undefined : soapVersion(content, 'Fault')
  if (content !== undefined && faultVersion !== undefined) {
    const fault = faultVersion === version ? content : writeFault(version, readFault(content))
    return written(envelope(version, [fault]))
  }
  if (status < 400) return content === undefined ? '' : written(envelope(version, [content]))
  const fault = {
    code: status < 500 ? 'Client' : 'Server',
    reason: markupOf(message.get('default', 'ERROR_MESSAGE') ?? ''),
    node: '',
    role: '',
    detail: content === undefined ? [] : [content],
  }
  return written(envelope(version, [writeFault(version, fault)]))
}

function written(root: XmlElementNode): string {
  return XML_DECLARATION + writeXml(root)
}

function linesOf(message: Message, contentType: string, complain: Complain): string {
  let lines = ''
  const add = (name: string, value: string) => {
    const why = valueFault(value)
    if (why !== '') complain(why, name)
    else if (lines.length + value.length > LINES_MAX) complain(`the fields have more than ${LINES_MAX} bytes`, name)
    else lines += `${name}: ${value}\r\n`
  }
  if (contentType !== '') add('Content-Type', contentType)
  for (const [name, value] of message.fields()) {
    const lower = name.toLowerCase()
    if (lower === 'content-type') continue
    const why = fieldFault(name)
    if (why === '') add(name, textOf(value))
    else complain(why, lower)
  }
  return lines
}
