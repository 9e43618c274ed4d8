/** What a client got: one message after the other taken off a scripted peer, and the documented fault body. */
import assert from 'node:assert/strict'
import type { Peer } from './peers.ts'

interface Answer {
  readonly status: number
  readonly reason: string
  /** By lower-case name; values in order. */
  readonly fields: ReadonlyMap<string, readonly string[]>
  readonly body: string
}

/** Waits for one whole message with a Content-Length and takes it; what stands behind it stays. */
export async function takeAnswer(peer: Peer): Promise<Answer> {
  await peer.untilText('\r\n\r\n')
  const head = peer.text.slice(0, peer.text.indexOf('\r\n\r\n') + 4)
  const { status, reason, fields } = parseHead(head)
  const length = Number(fields.get('content-length')?.[0] ?? 0)
  await peer.untilLength(head.length + length)
  peer.take(head.length)
  return { status, reason, fields, body: peer.take(length) }
}

function parseHead(head: string): Omit<Answer, 'body'> {
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

/** Message and description of each code that a client can see; codes of the transport by their base. */
const TEXTS: Readonly<Record<number, readonly [message: string, description: string]>> = {
  408: ['Request Timeout', 'The request was not received in time'],
  101500: ['Error in Sender', 'The request could not be sent to the back end'],
  101501: ['Error in Sender', 'The response could not be received from the back end'],
  101503: ['Error connecting to the back end', 'Connecting to the back end failed'],
  101504: ['Send timeout', 'The back end did not answer in time'],
  101505: ['Error in Sender', 'The back end closed the connection'],
  101506: ['Error in Sender', 'The back end violated the protocol'],
  101508: ['Error connecting to the back end', 'Connecting to the back end took too long'],
  102511: ['Incomplete payload', 'The payload is too large or was not delivered whole'],
}

/** The documented body, to the byte. */
export function faultBody(base: number, state: number): string {
  const [message, description] = TEXTS[base]!
  const code = base >= 101_000 && base < 102_000 ? base + state : base
  return `{"fault":{"code":${code},"type":"Status report","message":"${message}","description":"${description}"}}`
}

/**
 * A fault of the gateway's own: status, body, media type, and whether it announces the end of the connection.
 * `description`: where the code alone does not say it.
 */
export function assertFault(
  answer: Answer,
  status: number,
  base: number,
  state: number,
  closes: boolean,
  description = TEXTS[base]![1],
): void {
  assert.equal(answer.status, status)
  const late = 'The back end did not answer in time'
  // A full pool has the code of a time-out and a description of its own.
  const body =
    status === 503
      ? faultBody(base, state).replace(late, 'No further connection to the back end')
      : faultBody(base, state).replace(TEXTS[base]![1], description)
  assert.equal(answer.body, body)
  assert.deepEqual(answer.fields.get('content-type'), ['application/json; charset=UTF-8'])
  assert.deepEqual(answer.fields.get('connection'), closes ? ['close'] : undefined)
  assert.equal(answer.fields.get('date')?.length, 1)
  assert.equal(answer.fields.get('activityid')?.length, 1)
}
