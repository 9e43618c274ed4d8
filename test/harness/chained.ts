/** Gateways whose requests pass the handlers of production, and what a client sees of them. */
import type { CorsDefinition, ResourceDefinition } from '../../src/config/api-definition.ts'
import { takeAnswer } from './answers.ts'
import type { Peer } from './peers.ts'

/** As `[apim.cors]` is by default. */
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

/** `GET /pets`. */
export function operation(text: string): ResourceDefinition {
  const [verb = '', template = ''] = text.split(' ')
  return { template, verb, authType: 'None', tier: 'Unlimited', scopes: [] }
}

/** `fields` are whole lines, each with its CRLF. */
export async function ask(peer: Peer, start: string, fields = ''): ReturnType<typeof takeAnswer> {
  peer.send(`${start} HTTP/1.1\r\nHost: gateway.test\r\n${fields}\r\n`)
  return takeAnswer(peer)
}

/** What an answer says of CORS and of methods, as lines; names in lower case, in alphabetical order. */
export function saidOfCors({ fields }: Awaited<ReturnType<typeof takeAnswer>>): readonly string[] {
  return [...fields]
    .filter(([name]) => /^(?:access-control-.*|vary|allow)$/.test(name))
    .flatMap(([name, values]) => values.map(value => `${name}: ${value}`))
    .sort()
}

/** RFC 9110 15.1: faults of these statuses may be stored by a cache that was not told to. */
export function variesByAccept(status: number): boolean {
  return [404, 405, 410, 414, 501].includes(status)
}

/** What a fault of a status says, in order: one field Vary names all that it varies by. */
export function withAccept(status: number, said: readonly string[]): readonly string[] {
  if (!variesByAccept(status)) return [...said].sort()
  const varied = said.includes('vary: Origin') ? 'vary: Origin, Accept' : 'vary: Accept'
  return [...said.filter(line => !line.startsWith('vary:')), varied].sort()
}
