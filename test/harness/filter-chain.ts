/** Requests and plans for gateways with the filter chain of production, and the CORS fields of responses. */
import type { CorsDefinition, ResourceDefinition } from '../../src/apis/api-definition.ts'
import { takeResponse } from './responses.ts'
import type { Peer } from './peers.ts'

/** The default of `[apim.cors]`. */
export const OPEN_CORS: CorsDefinition = {
  enabled: true,
  origins: ['*'],
  methods: ['GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'OPTIONS'],
  headers: ['authorization', 'Content-Type'],
  exposedHeaders: [],
  credentials: false,
  maxAgeS: -1,
}

export const PUBLISHED = { state: 'PUBLISHED', deprecatedAtMs: 0, sunsetMs: 0 } as const

/** An operation from a text such as `GET /pets`. */
export function operation(text: string): ResourceDefinition {
  const [verb = '', template = ''] = text.split(' ')
  return { template, verb, authType: 'None', tier: 'Unlimited', scopes: [] }
}

/** Sends a request and waits for the response; `fields` are whole lines with CRLF. */
export async function sendRequest(peer: Peer, start: string, fields = ''): ReturnType<typeof takeResponse> {
  peer.send(`${start} HTTP/1.1\r\nHost: gateway.test\r\n${fields}\r\n`)
  return takeResponse(peer)
}

/** The CORS fields, Vary and Allow of a response as sorted lines, names in lower case. */
export function corsFields({ fields }: Awaited<ReturnType<typeof takeResponse>>): readonly string[] {
  return [...fields]
    .filter(([name]) => /^(?:access-control-.*|vary|allow)$/.test(name))
    .flatMap(([name, values]) => values.map(value => `${name}: ${value}`))
    .sort()
}

/** Statuses that are heuristically cacheable (RFC 9110 15.1): such a fault varies by Accept. */
export function variesByAccept(status: number): boolean {
  return [404, 405, 410, 414, 501].includes(status)
}

/** The expected CORS fields of a fault: adds Accept to Vary for heuristically cacheable statuses. */
export function withVaryAccept(status: number, expected: readonly string[]): readonly string[] {
  if (!variesByAccept(status)) return [...expected].sort()
  const vary = expected.includes('vary: Origin') ? 'vary: Origin, Accept' : 'vary: Accept'
  return [...expected.filter(line => !line.startsWith('vary:')), vary].sort()
}
