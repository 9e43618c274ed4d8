/** Responses as a scripted client receives them, and the documented fault body. */
import assert from 'node:assert/strict'
import type { Peer } from './peers.ts'

interface TakenResponse {
  readonly status: number
  readonly reason: string
  /** Values in order, by lower-case field name. */
  readonly fields: ReadonlyMap<string, readonly string[]>
  readonly body: string
}

/** Waits for one complete response with a Content-Length and takes it; the bytes after it stay. */
export async function takeResponse(peer: Peer): Promise<TakenResponse> {
  await peer.untilText('\r\n\r\n')
  const head = peer.text.slice(0, peer.text.indexOf('\r\n\r\n') + 4)
  const { status, reason, fields } = parseHead(head)
  const length = Number(fields.get('content-length')?.[0] ?? 0)
  await peer.untilLength(head.length + length)
  peer.take(head.length)
  return { status, reason, fields, body: peer.take(length) }
}

function parseHead(head: string): Omit<TakenResponse, 'body'> {
  const [start = '', ...lines] = head.trimEnd().split('\r\n')
  const match = /^HTTP\/1\.1 (\d{3}) (.*)$/.exec(start)
  assert.ok(match, `not a status line: ${start}`)
  const fields = new Map<string, string[]>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    fields.set(name, [...(fields.get(name) ?? []), line.slice(colon + 1).trim()])
  }
  return { status: Number(match[1]), reason: match[2]!, fields }
}

/** Message and description of fault codes; transport codes by base code. */
const TEXTS: Readonly<Record<number, readonly [message: string, description: string]>> = {
  408: ['Request Timeout', 'The request was not received in time'],
  101500: ['Error in Sender', 'The request could not be sent to the backend'],
  101501: ['Error in Sender', 'The response could not be received from the backend'],
  101503: ['Error connecting to the backend', 'Connecting to the backend failed'],
  101504: ['Send timeout', 'The backend did not answer in time'],
  101505: ['Error in Sender', 'The backend closed the connection'],
  101506: ['Error in Sender', 'The backend violated the protocol'],
  101508: ['Error connecting to the backend', 'Connecting to the backend took too long'],
  101510: ['Error in Sender', 'The response could not be processed'],
  101600: ['Connection limit reached', 'Every allowed connection to the backend is in use'],
  101601: ['Out of memory', 'The gateway has no memory for the request'],
  102511: ['Incomplete payload', 'The payload is too large or was not delivered whole'],
}

/** The documented fault body, to the byte. */
export function faultBody(base: number, state: number): string {
  const [message, description] = TEXTS[base]!
  const code = base >= 101_000 && base < 101_600 ? base + state : base
  return `{"fault":{"code":${code},"type":"Status report","message":"${message}","description":"${description}"}}`
}

/**
 * Asserts a fault: status, body, media type, and whether the response has `Connection: close`. `description` overrides
 * the description of the code.
 */
export function assertFault(
  response: TakenResponse,
  status: number,
  base: number,
  state: number,
  closes: boolean,
  description = TEXTS[base]![1],
): void {
  assert.equal(response.status, status)
  assert.equal(response.body, faultBody(base, state).replace(TEXTS[base]![1], description))
  assert.deepEqual(response.fields.get('content-type'), ['application/json; charset=UTF-8'])
  assert.deepEqual(response.fields.get('connection'), closes ? ['close'] : undefined)
  assert.equal(response.fields.get('date')?.length, 1)
  assert.equal(response.fields.get('activityid')?.length, 1)
}
